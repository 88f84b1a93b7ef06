package session

import (
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// OpenRecord opens the record of the session, made if it is missing, after what a crash left at its end, and at the end
// of the ledgers, the transcripts and the interview, was repaired and logged.
func (s *Session) OpenRecord(opts record.Options) (*record.Record, error) {
	others := []string{s.Path(InterviewFile)}
	for _, dir := range []string{ledgerDir, ConversationDir} {
		more, _ := filepath.Glob(filepath.Join(text.GlobQuote(s.Path(dir)), "*.jsonl"))
		others = append(others, more...)
	}
	return record.Open(s.Path(RecordFile), opts, others...)
}

// ScanRecord hands fn every event line of events.jsonl from the byte offset from on; see jsonl.Scan.
func (s *Session) ScanRecord(from int64, fn func(off int64, line []byte) error) (end int64, skipped int, err error) {
	return jsonl.Scan(s.Path(RecordFile), from, fn)
}

// TailRecord hands fn the event lines of events.jsonl from the last one backwards; see jsonl.Tail.
func (s *Session) TailRecord(fn func(off int64, line []byte) (more bool)) (skipped int, err error) {
	return jsonl.Tail(s.Path(RecordFile), fn)
}
