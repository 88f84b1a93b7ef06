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
	Stop          *record.LastStop            `json:"stop,omitempty"` // none if work went on after it
	Events        int64                       `json:"events"`         // lines of the record
	Skipped       int64                       `json:"skipped"`        // lines that are no events
	Resumes       int64                       `json:"resumes"`
	Limits        json.RawMessage             `json:"limits,omitempty"` // of the last session_start that has them
	Models        map[string]string           `json:"models"`           // by role, from session_start
	SeedSHA       string                      `json:"seed_sha,omitempty"`

	State     *record.State `json:"-"` // what is decided by
	TotalSeen bool          `json:"-"` // the record carries running totals of tokens
	hash      []byte        // the state of the hash of the record that was counted, as stored

	others extra
}

// summaryTokens counts tokens to and from the models. Total is tokens_used of the record.
type summaryTokens struct {
	Prompt int64 `json:"prompt"`
	Eval   int64 `json:"eval"`
	Cached int64 `json:"cached"` // of the prompt's: read from a provider's cache, and not in Total
	Total  int64 `json:"total"`
}

// taskSummary is the roll-up of one task over all of its attempts.
type taskSummary struct {
	Status        string           `json:"status"` // pending, running, done, failed or skipped
	Iterations    int64            `json:"iterations"`
	Tokens        int64            `json:"tokens"` // as the cap counts them, all roles
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
	Fingerprint string        `json:"fingerprint"` // of what they begin and end with
	Hash        []byte        `json:"hash"`        // the state of their hash, which a resume continues
	TotalSeen   bool          `json:"total_seen"`
	State       *record.State `json:"state"`
	// Fold is the version of the fold: the counts of another one are made again.
	Fold int `json:"fold"`
	// Sum is the SHA-256 of the file with zeros in its place; a file that anyone else changed is discarded.
	Sum string `json:"sum"`
}

const foldVersion = 6

const markKey = "rolled_up"

var noSum = strings.Repeat("0", 2*sha256.Size)

// Summarize counts the record. It continues from its earlier counts, or those of summary.json, so its cost depends on
// the new events only. It starts again if the record was rewound or replaced. It writes nothing.
func (s *Session) Summarize() (sum *Summary, err error) {
	err = s.follow(func(rolled *Summary) { sum = rolled.clone() })
	return sum, err
}

// State returns the session's state by the record.
func (s *Session) State() (state *record.State, err error) {
	err = s.follow(func(rolled *Summary) { state = rolled.State.Clone() })
	return state, err
}

// rolled is the roll-up of a session that this process has made, up to where the record was read.
type rolled struct {
	sync.Mutex
	sum   *Summary    // nil for none
	of    fs.FileInfo // the record as it was before
	end   int64
	print string // of what was read
}

// follow brings the roll-up to the end of the record and hands it out; nobody may keep it.
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

// WriteSummary calls Summarize and replaces summary.json with the result. Only the lock's holder may call it. The file
// is not synced: after a power cut its hash is wrong, and it is made again.
func (s *Session) WriteSummary() error {
	sum, begin := s.storedSummary()
	end, err := s.feed(sum, begin)
	if err != nil {
		return err
	}
	hashed, err := record.Hash(s.Path(RecordFile), record.Hashed{Size: begin, State: sum.hash}, end)
	if err != nil {
		return err
	}
	m := mark{Offset: end, Hash: hashed.State, TotalSeen: sum.TotalSeen, State: sum.State, Fold: foldVersion,
		Sum: noSum}
	if m.Fingerprint, err = record.Fingerprint(s.Path(RecordFile), end); err != nil {
		return err
	}
	sum.others[markKey] = record.JSON(m)
	text, err := indent(encode(sum, sum.others))
	if err == nil {
		text = bytes.Replace(text, []byte(noSum), []byte(sumOf(text)), 1)
	}
	err = save(s.Path(SummaryFile), text, err, false)
	if errors.Is(err, jsonl.ErrIrregular) {
		return nil // a directory with somebody's files in it: the record is read instead
	}
	return err
}

func sumOf(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// storedSummary is the roll-up in summary.json and up to where it has counted, an empty one if there is none that the
// record still agrees with. A damaged summary.json is no error: it can be made again.
func (s *Session) storedSummary() (sum *Summary, end int64) {
	stored, empty, m := &Summary{}, NewSummary(s.ID), mark{}
	data, err := jsonl.ReadFile(s.Path(SummaryFile))
	if err != nil {
		return empty, 0
	}
	if err = decode(data, stored, &stored.others); stored.others == nil {
		return empty, 0
	}
	empty.others = stored.others
	if err != nil || json.Unmarshal(stored.others[markKey], &m) != nil || m.Offset < 0 || m.State == nil ||
		stored.Version != summaryVersion || m.Fold != foldVersion ||
		sumOf(bytes.Replace(data, []byte(m.Sum), []byte(noSum), 1)) != m.Sum {
		return empty, 0
	}
	now, err := record.Fingerprint(s.Path(RecordFile), m.Offset)
	if err != nil || now != m.Fingerprint {
		return empty, 0
	}
	stored.SessionID, stored.State, stored.TotalSeen, stored.hash = s.ID, m.State, m.TotalSeen, m.Hash
	stored.complete()
	return stored, m.Offset
}
