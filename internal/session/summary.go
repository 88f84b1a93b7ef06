package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// summaryVersion is the version of summary.json's shape.
const summaryVersion = 1

// Summary is the roll-up of the record. Times are as the record has them; empty is null in the file.
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
	Stop          *Stop                       `json:"stop,omitempty"` // none if work went on after it
	Events        int64                       `json:"events"`         // lines of the record
	Skipped       int64                       `json:"skipped"`        // lines that are no events
	Resumes       int64                       `json:"resumes"`
	Limits        json.RawMessage             `json:"limits,omitempty"` // of the last session_start that has them
	Models        map[string]string           `json:"models"`           // by role, from session_start
	SeedSHA       string                      `json:"seed_sha,omitempty"`
}

// summaryTokens counts what went to the models and came back. Total is tokens_used as the record has it.
type summaryTokens struct {
	Prompt int64 `json:"prompt"`
	Eval   int64 `json:"eval"`
	Total  int64 `json:"total"`
}

// taskSummary is the roll-up of one task over all of its attempts.
type taskSummary struct {
	Status        string           `json:"status"` // pending, running, done or failed
	Iterations    int64            `json:"iterations"`
	Tokens        int64            `json:"tokens"` // prompt and eval, all roles
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

// verdictCounts counts what the evaluator said.
type verdictCounts struct {
	Accepts             int64            `json:"accepts"`
	Rejects             int64            `json:"rejects"`
	RejectionCategories map[string]int64 `json:"rejection_categories"`
}

// Stop is how the last run ended.
type Stop struct {
	Reason string `json:"reason"`
	TS     string `json:"ts"`
}

// mark is where a roll-up stands in the record, kept in summary.json beside what was counted.
type mark struct {
	Offset      int64  `json:"offset"`      // bytes of the record that are counted
	Fingerprint string `json:"fingerprint"` // of what they begin and end with
	TotalSeen   bool   `json:"total_seen"`  // the record carries running totals of tokens
}

const markKey = "rolled_up"

// Summarize rolls the record up. It goes on from what summary.json has counted, so that it costs what is new, and
// starts again when the record was rewound or replaced. It writes nothing.
func (s *Session) Summarize() (*Summary, error) {
	r, _, err := s.rollUp()
	if err != nil {
		return nil, err
	}
	return r.Summary(), nil
}

// WriteSummary is Summarize, and replaces summary.json by the result. Only the lock's holder may call it.
func (s *Session) WriteSummary() error {
	r, others, err := s.rollUp()
	if err != nil {
		return err
	}
	at := r.mark
	if at.Fingerprint, err = s.fingerprint(at.Offset); err != nil {
		return err
	}
	if others == nil {
		others = extra{}
	}
	if others[markKey], err = encodeJSON(at); err != nil {
		return err
	}
	text, err := encodeObject(r.Summary(), others)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(SummaryFile), err)
	}
	data, err := indentJSON(json.RawMessage(text))
	if err != nil {
		return err
	}
	return WriteFileAtomic(s.Path(SummaryFile), data)
}

// rollUp brings the roll-up in summary.json up to date, in memory. others are the members of the file that are no part
// of a summary.
func (s *Session) rollUp() (r *Rollup, others extra, err error) {
	r, others = s.storedRollup()
	if r == nil {
		r = NewRollup(s.ID)
	}
	end, skipped, err := s.ScanRecord(r.mark.Offset, func(_ int64, line []byte) error {
		r.Feed(line)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	r.mark.Offset = end
	r.sum.Skipped += int64(skipped)
	return r, others, nil
}

// storedRollup is the roll-up in summary.json, nil if there is none that the record still agrees with. A damaged
// summary.json is no error: it can be made again.
func (s *Session) storedRollup() (*Rollup, extra) {
	data, err := jsonl.ReadFile(s.Path(SummaryFile))
	if err != nil {
		return nil, nil
	}
	r := NewRollup(s.ID)
	others, err := decodeObject(data, &r.sum)
	if err != nil || json.Unmarshal(others[markKey], &r.mark) != nil || r.mark.Offset < 0 ||
		r.sum.Version != summaryVersion {
		return nil, others
	}
	now, err := s.fingerprint(r.mark.Offset)
	if err != nil || now != r.mark.Fingerprint {
		return nil, others
	}
	r.sum.SessionID = s.ID
	r.complete()
	return r, others
}

// fingerprint identifies the first n bytes of the record by how they begin and end. Events carry their time to the
// millisecond and random ids, so a record that was cut and has grown past n again ends differently there.
func (s *Session) fingerprint(n int64) (string, error) {
	const part = 4096
	h := sha256.New()
	if n > 0 {
		f, err := jsonl.OpenFile(s.Path(RecordFile), os.O_RDONLY)
		if err != nil {
			return "", err
		}
		defer f.Close()
		head := io.NewSectionReader(f, 0, min(n, part))
		tail := io.NewSectionReader(f, max(n-part, 0), min(n, part))
		for _, r := range []*io.SectionReader{head, tail} {
			if got, err := io.Copy(h, r); err != nil {
				return "", err
			} else if got != r.Size() {
				return "", jsonl.ErrShrunk
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
