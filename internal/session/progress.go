package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// AppendProgress adds a line to progress.txt: id TAB state TAB title. It is not durable by itself: prd.json, which is
// written before, says the same.
func (s *Session) AppendProgress(task, state, title string) error {
	line := text.OneLine(task) + "\t" + text.OneLine(state) + "\t" + text.VisibleLine(text.OneLine(title)) + "\n"
	// A line without its newline is never whole: the title may have been cut.
	return jsonl.AppendOnce(s.Path(ProgressFile), []byte(line), func([]byte) bool { return false }, false)
}

// ProgressTail is the last n lines of progress.txt, oldest first; all of them if n is 0 or less. A missing file is an
// empty one.
func (s *Session) ProgressTail(n int) ([]string, error) {
	data, err := jsonl.ReadFile(s.Path(ProgressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text := strings.ToValidUTF8(string(data[:bytes.LastIndexByte(data, '\n')+1]), "\uFFFD")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	if n > 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return lines, nil
}

// AppendLearning adds what the worker proposes to remember after a task to proposed-learnings.md.
func (s *Session) AppendLearning(now time.Time, task, title, learning string) error {
	path := s.Path(LearningsFile)
	var b strings.Builder
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		b.WriteString("# Proposed learnings\n\nFor a person to review; nothing reads this file.\n")
	}
	fmt.Fprintf(&b, "\n## %s: %s\n\n%s, %s\n\n%s\n", task, text.VisibleLine(text.OneLine(title)),
		s.ID, record.FormatTime(now), text.Visible(strings.TrimSpace(learning)))
	return jsonl.AppendOnce(path, []byte(b.String()), func([]byte) bool { return true }, false)
}
