package session

import (
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// OpenRecord opens the session's record and creates it if it is missing. It first repairs and logs damage of a crash at
// the end of the record, the ledgers, the transcripts and the interview.
func (s *Session) OpenRecord(opts record.Options) (*record.Record, error) {
	sum, end := s.storedSummary()
	opts.Hashed = record.Hashed{Size: end, State: sum.hash}
	others := []string{s.Path(InterviewFile)}
	for _, dir := range []string{LedgerDir, ConversationDir} {
		more, _ := filepath.Glob(filepath.Join(text.GlobQuote(s.Path(dir)), "*.jsonl"))
		if s.checkDir(dir) == nil {
			others = append(others, more...)
		}
	}
	return record.Open(s.Path(RecordFile), opts, others...)
}
