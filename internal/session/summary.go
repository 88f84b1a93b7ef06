package session

import (
	"encoding/json"

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

	Mark mark `json:"-"`
	kept
}

// summaryTokens counts what went to the models and came back. Total is tokens_used as the record has it.
type summaryTokens struct {
	Prompt int64 `json:"prompt"`
	Eval   int64 `json:"eval"`
	Cached int64 `json:"cached"` // of the prompt's: read from a provider's cache, and not in Total
	Total  int64 `json:"total"`
}

// taskSummary is the roll-up of one task over all of its attempts.
type taskSummary struct {
	Status        string           `json:"status"` // pending, running, done or failed
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
	// Ledger is how many verdicts the ledger has to hold, -1 where a rewind or an undo left that open.
	Ledger int64 `json:"ledger,omitempty"`
	// Uncommitted is set between task_done and its commit.
	Uncommitted bool `json:"uncommitted,omitempty"`
}

// verdictCounts counts what the evaluator said.
type verdictCounts struct {
	Accepts             int64            `json:"accepts"`
	Rejects             int64            `json:"rejects"`
	RejectionCategories map[string]int64 `json:"rejection_categories"`
}

// mark is where a roll-up stands in the record, kept in summary.json beside what was counted.
type mark struct {
	Offset      int64  `json:"offset"`      // bytes of the record that are counted
	Fingerprint string `json:"fingerprint"` // of what they begin and end with
	TotalSeen   bool   `json:"total_seen"`  // the record carries running totals of tokens
	// Begins is where the lines lie that record.ReadBegun needs; nil where an earlier build has not counted them.
	Begins []int64 `json:"begins"`
	// Fold is the version of the counting: what an earlier build has counted otherwise is counted again.
	Fold int `json:"fold"`
}

const foldVersion = 2

const markKey = "rolled_up"

// Summarize rolls the record up. It goes on from what summary.json has counted, so that it costs what is new, and
// starts again when the record was rewound or replaced. It writes nothing.
func (s *Session) Summarize() (*Summary, error) {
	sum := s.storedSummary()
	end, skipped, err := record.Scan(s.Path(RecordFile), sum.Mark.Offset, func(l record.Line) error {
		sum.Feed(l)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum.Mark.Offset = end
	sum.Skipped += int64(skipped)
	return sum, nil
}

// WriteSummary is Summarize, and replaces summary.json by the result. Only the lock's holder may call it.
func (s *Session) WriteSummary() error {
	sum, err := s.Summarize()
	if err != nil {
		return err
	}
	if sum.Mark.Fingerprint, err = record.Fingerprint(s.Path(RecordFile), sum.Mark.Offset); err != nil {
		return err
	}
	sum.others[markKey] = record.JSON(sum.Mark)
	text, err := indentJSON(sum)
	return save(s.Path(SummaryFile), text, err)
}

// storedSummary is the roll-up in summary.json, an empty one if there is none that the record still agrees with. A
// damaged summary.json is no error: it can be made again.
func (s *Session) storedSummary() *Summary {
	stored, empty := &Summary{}, NewSummary(s.ID)
	data, err := jsonl.ReadFile(s.Path(SummaryFile))
	if err != nil {
		return empty
	}
	if err = decode(data, stored); stored.others == nil {
		return empty
	}
	empty.others = stored.others
	if err != nil || json.Unmarshal(stored.others[markKey], &stored.Mark) != nil || stored.Mark.Offset < 0 ||
		stored.Version != summaryVersion || stored.Mark.Begins == nil ||
		stored.Mark.Fold != foldVersion {
		return empty
	}
	now, err := record.Fingerprint(s.Path(RecordFile), stored.Mark.Offset)
	if err != nil || now != stored.Mark.Fingerprint {
		return empty
	}
	stored.SessionID = s.ID
	stored.complete()
	return stored
}
