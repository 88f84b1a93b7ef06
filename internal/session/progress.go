package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/text"
)

// AppendProgress adds a line to progress.txt: id TAB state TAB title. It is not durable by itself: prd.json, which is
// written before, says the same.
func (s *Session) AppendProgress(task, state, title string) error {
	line := text.OneLine(task) + "\t" + text.OneLine(state) + "\t" + text.VisibleLine(text.OneLine(title)) + "\n"
	return jsonl.AppendOnce(s.Path(ProgressFile), []byte(line), isProgress, false)
}

// isProgress is never sure that a line without its newline is whole: the title may have been cut.
func isProgress([]byte) bool { return false }

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
	text, _, _ := cutLast(strings.ToValidUTF8(string(data), "\uFFFD"), "\n")
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

// cutLast is strings.Cut at the last occurrence of sep; without one, before is empty.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// AppendLearning adds what the worker proposes to remember after a task to proposed-learnings.md.
func (s *Session) AppendLearning(now time.Time, task, title, learning string) error {
	path := s.Path(LearningsFile)
	var b strings.Builder
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		b.WriteString("# Proposed learnings\n\nFor a person to review; nothing reads this file.\n")
	}
	fmt.Fprintf(&b, "\n## %s: %s\n\n%s, %s\n\n%s\n", task, text.VisibleLine(text.OneLine(title)),
		s.ID, FormatTime(now), text.Visible(strings.TrimSpace(learning)))
	return jsonl.AppendOnce(path, []byte(b.String()), func([]byte) bool { return true }, false)
}
