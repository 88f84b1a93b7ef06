package session

import (
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// OpenRecord opens the record of the session, made if it is missing, after what a crash left at its end, and at the end
// of the ledgers, the transcripts and the interview, was repaired and logged.
func (s *Session) OpenRecord(opts record.Options) (*record.Record, error) {
	others := []string{s.Path(InterviewFile)}
	for _, dir := range []string{LedgerDir, ConversationDir} {
		more, _ := filepath.Glob(filepath.Join(text.GlobQuote(s.Path(dir)), "*.jsonl"))
		if s.checkDir(dir) == nil {
			others = append(others, more...)
		}
	}
	return record.Open(s.Path(RecordFile), opts, others...)
}
