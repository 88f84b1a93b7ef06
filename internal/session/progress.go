package session

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/text"
)

// AppendProgress adds a line to progress.txt: id TAB state TAB title. It is not durable by itself: prd.json, which is
// written before, says the same.
func (s *Session) AppendProgress(task, state, title string) error {
	line := ProgressLine(task, state, title) + "\n"
	// A line without its newline is never whole: the title may have been cut.
	return jsonl.AppendOnce(s.Path(ProgressFile), []byte(line), func([]byte) bool { return false }, false)
}

// ProgressLine is a line of progress.txt.
func ProgressLine(task, state, title string) string {
	return text.OneLine(task) + "\t" + text.OneLine(state) + "\t" + text.VisibleLine(text.OneLine(title))
}

// SettleProgress writes progress.txt anew where it does not hold these lines and nothing else.
func (s *Session) SettleProgress(lines []string) error {
	want := strings.Join(append(lines, ""), "\n")
	have, err := jsonl.ReadFile(s.Path(ProgressFile))
	if string(have) == want && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	if want == "" {
		return os.Remove(s.Path(ProgressFile))
	}
	return jsonl.WriteFile(s.Path(ProgressFile), []byte(want))
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
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	if n > 0 {
		lines = lines[max(len(lines)-n, 0):]
	}
	return lines, nil
}
