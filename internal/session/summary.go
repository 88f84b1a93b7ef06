package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// summaryVersion is the version of summary.json's shape.
const summaryVersion = 1

// Summary is the roll-up of the record: it counts the events that are fed to it. Times are as the record has them;
// empty is null in the file. It is not safe for concurrent use.
type Summary struct {
	Version       int                         `json:"version"`
	SessionID     string                      `json:"session_id"`
	StartedAt     *string                     `json:"started_at"`      // session_start of the run
	PrepStartedAt *string                     `json:"prep_started_at"` // session_start of prep-feature
	LastEventAt   *string                     `json:"last_event_at"`
	Tokens        summaryTokens               `json:"tokens"`
	Cost          float64                     `json:"cost"`  // dollars
	Usage         Usage                       `json:"usage"` // by role, from the record
	Tasks         map[string]*taskSummary     `json:"tasks"`
	ToolHistogram map[string]int64            `json:"tool_histogram"`
	HookOutcomes  map[string]map[string]int64 `json:"hook_outcomes"` // by hook, then outcome
	Evaluator     verdictCounts               `json:"evaluator"`
	Stop          *record.LastStop            `json:"stop,omitempty"` // nil if work continued after it
	Events        int64                       `json:"events"`         // lines of the record
	Skipped       int64                       `json:"skipped"`        // lines that are not events
	Resumes       int64                       `json:"resumes"`
	Limits        json.RawMessage             `json:"limits,omitempty"` // of the last session_start that has them
	Models        map[string]string           `json:"models"`           // by role, of the last start
	SeedSHA       string                      `json:"seed_sha,omitempty"`
	TotalSeen     bool                        `json:"total_seen,omitempty"` // the record has running totals of tokens

	State *record.State `json:"-"` // basis of decisions

	// RolledUp is the mark of the stored counts. It is set in the file only.
	RolledUp json.RawMessage `json:"rolled_up,omitempty"`
}

// summaryTokens counts tokens to and from the models. Total is tokens_used of the record.
type summaryTokens struct {
	Prompt int64 `json:"prompt"`
	Eval   int64 `json:"eval"`
	Cached int64 `json:"cached"` // prompt tokens from a provider's cache, not in Total
	Total  int64 `json:"total"`
}

// taskSummary is the roll-up of one task over all of its attempts.
type taskSummary struct {
	Status        string           `json:"status"` // pending, running, done, failed or skipped
	Iterations    int64            `json:"iterations"`
	Tokens        int64            `json:"tokens"` // tokens that count against the cap, of all roles
	Cost          float64          `json:"cost"`
	ToolCalls     map[string]int64 `json:"tool_calls"`
	HookBlocks    int64            `json:"hook_blocks"`
	Evaluator     verdictCounts    `json:"evaluator"`
	FailureReason string           `json:"failure_reason,omitempty"`
	Attempts      int64            `json:"attempts"`
	Iter          int64            `json:"iter"` // the last iteration of the last attempt
	StartedAt     string           `json:"started_at,omitempty"`
	EndedAt       string           `json:"ended_at,omitempty"`
	Commit        string           `json:"commit,omitempty"`
}

// verdictCounts counts the evaluator's verdicts.
type verdictCounts struct {
	Accepts             int64            `json:"accepts"`
	Rejects             int64            `json:"rejects"`
	RejectionCategories map[string]int64 `json:"rejection_categories"`
}

// mark is the position of the fold in the record, stored in summary.json with the counts.
type mark struct {
	Offset      int64         `json:"offset"`      // bytes of the record that are counted
	Fingerprint string        `json:"fingerprint"` // hash of their beginning and end
	State       *record.State `json:"state"`
	// Fold is the version of the fold: the counts of another one are made again.
	Fold int `json:"fold"`
	// Sum is the SHA-256 of the file with zeros in its place; a file that anyone else changed is discarded.
	Sum string `json:"sum"`
}

const foldVersion = 10

var noSum = strings.Repeat("0", 2*sha256.Size)

// Summarize counts the record. It continues from the counts in summary.json, so its cost depends only on new events.
// It starts again if the record was rewound or replaced. It writes nothing.
func (s *Session) Summarize() (*Summary, error) {
	sum, begin := s.storedSummary()
	_, err := s.feed(sum, begin)
	return sum, err
}

// State returns the session's state by the record.
func (s *Session) State() (state *record.State, err error) {
	err = s.follow(func(rolled *Summary) { state = rolled.State.Clone() })
	return state, err
}

// rolled caches a session's Summary and the position up to which the record was read.
type rolled struct {
	sync.Mutex
	sum   *Summary    // nil for none
	of    fs.FileInfo // the record at the last read
	end   int64
	print string // hash of the read data
}

// follow updates the summary to the end of the record and passes it to use, which must not retain it.
func (s *Session) follow(use func(*Summary)) error {
	r, path := &s.rolled, s.Path(RecordFile)
	r.Lock()
	defer r.Unlock()
	now, err := os.Stat(path)
	if err == nil && r.sum != nil && os.SameFile(now, r.of) && now.Size() == r.of.Size() &&
		now.ModTime().Equal(r.of.ModTime()) {
		use(r.sum)
		return nil
	}
	if print, err := record.Fingerprint(path, r.end); r.sum == nil || err != nil || print != r.print {
		r.sum, r.end = s.storedSummary()
	}
	if r.end, err = s.feed(r.sum, r.end); err == nil {
		r.print, err = record.Fingerprint(path, r.end)
	}
	if err != nil {
		r.sum = nil
		return err
	}
	r.of = now
	use(r.sum)
	return nil
}

// feed counts the events after offset from, and returns the offset up to which it read.
func (s *Session) feed(sum *Summary, from int64) (end int64, err error) {
	end, skipped, err := record.Scan(s.Path(RecordFile), from, func(l record.Line) error {
		sum.Feed(l)
		return nil
	})
	sum.Skipped += int64(skipped)
	return end, err
}

// WriteSummary updates summary.json from the record. The caller holds the lock. The file is not synced: if a power cut
// damages it, its hash does not match and it is written again.
func (s *Session) WriteSummary() error {
	sum, begin := s.storedSummary()
	end, err := s.feed(sum, begin)
	if err != nil {
		return err
	}
	m := mark{Offset: end, State: sum.State, Fold: foldVersion, Sum: noSum}
	if m.Fingerprint, err = record.Fingerprint(s.Path(RecordFile), end); err != nil {
		return err
	}
	sum.RolledUp = record.JSON(m)
	old, _ := jsonl.ReadFile(s.Path(SummaryFile))
	text, err := encode(sum, old)
	if err != nil {
		return err
	}
	text = bytes.Replace(text, []byte(noSum), []byte(sumOf(text)), 1)
	err = jsonl.Put(s.Path(SummaryFile), text, false)
	if errors.Is(err, jsonl.ErrIrregular) {
		return nil // a directory with files: the record is read instead
	}
	return err
}

func sumOf(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// storedSummary returns the roll-up in summary.json and its offset in the record, or an empty one if the file is
// missing or does not match the record. A damaged summary.json is not an error, because it can be made again.
func (s *Session) storedSummary() (sum *Summary, end int64) {
	stored, empty, m := &Summary{}, NewSummary(s.ID), mark{}
	data, err := jsonl.ReadFile(s.Path(SummaryFile))
	if err != nil {
		return empty, 0
	}
	if decode(data, stored) != nil || json.Unmarshal(stored.RolledUp, &m) != nil || m.Offset < 0 || m.State == nil ||
		stored.SessionID != s.ID || stored.Version != summaryVersion || m.Fold != foldVersion ||
		sumOf(bytes.Replace(data, []byte(m.Sum), []byte(noSum), 1)) != m.Sum {
		return empty, 0
	}
	now, err := record.Fingerprint(s.Path(RecordFile), m.Offset)
	if err != nil || now != m.Fingerprint {
		return empty, 0
	}
	stored.RolledUp, stored.State = nil, m.State
	return stored, m.Offset
}

// NewSummary returns the roll-up of an empty record.
func NewSummary(sessionID string) *Summary {
	return &Summary{Version: summaryVersion, SessionID: sessionID, State: &record.State{},
		Tasks: map[string]*taskSummary{}, ToolHistogram: map[string]int64{}, Models: map[string]string{},
		HookOutcomes: map[string]map[string]int64{}, Evaluator: newCounts()}
}

func newCounts() verdictCounts { return verdictCounts{RejectionCategories: map[string]int64{}} }

// Feed counts one line of the record, as a scan hands it out, in the order of the record. Lines that are not events
// count as skipped.
func (s *Summary) Feed(l record.Line) {
	if l.Type == "" {
		s.Skipped++
		return
	}
	s.Events++
	if l.TS != "" {
		s.LastEventAt = &l.TS
	}
	e := l.Brief()
	s.State.Apply(l, e)
	s.count(l.TS, e)
	s.Stop, s.SeedSHA = s.State.Stop, ""
	if s.State.Seed != nil {
		s.SeedSHA = s.State.Seed.SHA
	}
}

// count adds an event to the counts. The statuses of tasks come from the record's State.
func (s *Summary) count(ts string, e record.Event) {
	t := s.task(e.Common().TaskID, int64(e.Common().Iter))
	switch e := e.(type) {
	case *record.SessionStart:
		s.start(ts, e)
	case *record.SessionResume:
		s.Resumes++
		if s.StartedAt == nil {
			s.StartedAt = &ts
		}
		if e.Agents != nil {
			s.agents(*e.Agents)
		}
	case *record.ContextReset:
		t.Attempts++
		t.Iter = 0
		if t.StartedAt == "" {
			t.StartedAt = ts
		}
	case *record.ModelCall:
		s.modelCall(t, e)
	case *record.ToolCall:
		bump(s.ToolHistogram, e.Tool)
		bump(t.ToolCalls, e.Tool)
	case *record.PreToolBlock:
		t.HookBlocks++
	case *record.HookRun:
		if e.Hook != "" && e.Outcome != "" {
			if s.HookOutcomes[e.Hook] == nil {
				s.HookOutcomes[e.Hook] = map[string]int64{}
			}
			bump(s.HookOutcomes[e.Hook], e.Outcome)
		}
	case *record.EvaluatorVerdict:
		s.Evaluator.count(e)
		t.Evaluator.count(e)
	}
	switch e.(type) {
	case *record.SessionStart, *record.SessionResume, *record.SessionRewound, *record.SessionUndone:
		for id := range s.State.Tasks {
			s.task(id, 0).setState(s.State.Tasks[id], ts)
		}
	}
	now, known := s.State.Tasks[e.Common().TaskID]
	if !known { // removed from the plan
		delete(s.Tasks, e.Common().TaskID)
		return
	}
	t.setState(now, ts)
}

// setState sets the task's state; since is the time of the change.
func (t *taskSummary) setState(now record.Task, since string) {
	switch {
	case now.Status == record.Working || now.Status == record.Pending:
		t.EndedAt = ""
	case t.Status != now.Status:
		t.EndedAt = since
	}
	t.Status, t.FailureReason, t.Commit = now.Status, now.FailureReason, now.Commit
}

// task returns the entry of an event's task, updated to its iteration. An event without a task gets an unused entry.
func (s *Summary) task(id string, iter int64) *taskSummary {
	t := s.Tasks[id]
	if t == nil {
		t = &taskSummary{Status: record.Working, ToolCalls: map[string]int64{}, Evaluator: newCounts()}
		if id != "" {
			s.Tasks[id] = t
		}
	}
	if iter > t.Iter {
		t.Iterations += iter - t.Iter
		t.Iter = iter
	}
	return t
}

func (s *Summary) start(ts string, e *record.SessionStart) {
	if e.Phase == "prep-feature" || e.Phase == "fork" {
		s.PrepStartedAt = &ts
	} else {
		s.StartedAt = &ts
	}
	s.agents(e.Agents)
}

func (s *Summary) agents(e record.Agents) {
	if len(e.Limits) > 0 {
		s.Limits = record.JSON(e.Limits)
	}
	said := map[string]*string{record.RoleWorker: e.WorkerModel, record.RoleEvaluator: e.EvaluatorModel}
	for role, model := range said {
		if model != nil && *model != "" {
			s.Models[role] = *model
		}
	}
}

func (s *Summary) modelCall(t *taskSummary, e *record.ModelCall) {
	call := RoleUsage{Calls: 1, PromptTokens: jsonl.Tokens(e.PromptTokens), EvalTokens: jsonl.Tokens(e.EvalTokens),
		CachedTokens: jsonl.Tokens(e.CachedTokens), ReasoningTokens: jsonl.Tokens(e.ReasoningTokens)}
	s.Tokens.Prompt += call.PromptTokens
	s.Tokens.Eval += call.EvalTokens
	s.Tokens.Cached += call.CachedTokens
	if e.Cost != nil {
		call.Cost, _ = jsonl.Dollars(*e.Cost)
	}
	s.Cost += call.Cost
	t.Tokens += call.Total()
	t.Cost += call.Cost
	s.Usage.Role(e.Phase).Add(call)
	if e.TokensUsedTotal > 0 {
		s.TotalSeen = true
		s.Tokens.Total = max(s.Tokens.Total, e.TokensUsedTotal)
	} else if !s.TotalSeen {
		s.Tokens.Total = max(0, s.Tokens.Prompt-s.Tokens.Cached) + s.Tokens.Eval
	}
}

func (v *verdictCounts) count(e *record.EvaluatorVerdict) {
	if e.Accepted() {
		v.Accepts++
		return
	}
	v.Rejects++
	if e.RejectionCategory != nil {
		bump(v.RejectionCategories, *e.RejectionCategory)
	}
}

func bump(m map[string]int64, key string) {
	if key != "" {
		m[key]++
	}
}
