package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// claudeStore reads $CLAUDE_CONFIG_DIR/projects/<directory>/<id>.jsonl, one message a line.
type claudeStore struct{}

func (claudeStore) root(h *history) string {
	if dir := proc.Getenv(h.env, "CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, "projects")
	}
	return filepath.Join(homeIn(h.env), ".claude", "projects")
}

func (c claudeStore) state(_ context.Context, h *history) StoreState {
	// The directory's name is cut and hashed in a way that changed between versions, so that every one is looked in.
	paths, _ := filepath.Glob(filepath.Join(text.GlobQuote(c.root(h)), "*", h.id+".jsonl"))
	if len(paths) == 0 {
		return StoreState{Missing, "claude has no transcript of it (it removes them after 30 days)"}
	}
	state := StoreState{Empty, "its transcript is empty"}
	for _, path := range paths {
		head, err := readClaudeHead(path)
		switch {
		case err != nil:
			state = StoreState{Unknown, "its transcript cannot be read: " + err.Error()}
		case head.messages == 0:
		case head.cwd != "" && realPath(head.cwd) != h.dir:
			state = StoreState{Missing, "its transcript belongs to the directory " + head.cwd}
		default:
			return StoreState{Present, "claude has its transcript"}
		}
	}
	return state
}

func (c claudeStore) newest(_ context.Context, h *history, since time.Time, except map[string]bool) (string, error) {
	paths, err := filepath.Glob(filepath.Join(text.GlobQuote(c.root(h)), "*", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		return "", errNoStore
	}
	return newestOf(h, paths, since, except, func(path string) (transcriptHead, error) {
		head, err := readClaudeHead(path)
		head.id = trimExt(filepath.Base(path))
		return head, err
	}), nil
}

// transcriptHead is what the first lines of a transcript tell.
type transcriptHead struct {
	id       string
	cwd      string
	began    time.Time
	messages int // at least this many
}

// headLines bounds how much of a transcript is read: what is looked for stands at its beginning.
const headLines = 50

func readClaudeHead(path string) (transcriptHead, error) {
	var head transcriptHead
	err := eachLine(path, headLines, func(line []byte) {
		var e struct {
			Type string    `json:"type"`
			Cwd  string    `json:"cwd"`
			Time time.Time `json:"timestamp"`
		}
		if !decode(line, &e) {
			return
		}
		if head.cwd == "" {
			head.cwd = e.Cwd
		}
		if head.began.IsZero() {
			head.began = e.Time
		}
		if e.Type == "user" || e.Type == "assistant" {
			head.messages++
		}
	})
	return head, err
}

// eachLine calls fn for the first n lines of a file, 0 for all. A line of any length is read, but no more than
// maxStoreLine of it.
func eachLine(path string, n int, fn func([]byte)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for count := 0; n == 0 || count < n; count++ {
		line, err := readLine(r)
		if len(line) > 0 {
			fn(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const maxStoreLine = 4 << 20

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		if room := maxStoreLine - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if err != nil || !more {
			return line, err
		}
	}
}

// candidate keeps the newest conversation that it is offered.
type candidate struct {
	id    string
	began time.Time
}

// newestOf returns the newest conversation among files of which each holds one, "" for none.
func newestOf(
	h *history, paths []string, since time.Time, except map[string]bool, read func(string) (transcriptHead, error),
) string {
	var best candidate
	for _, path := range paths {
		if olderThan(path, since) {
			continue
		}
		head, err := read(path)
		if err == nil && head.messages > 0 && realPath(head.cwd) == h.dir && !except[head.id] && h.program.valid(head.id) {
			best.offer(head.id, head.began, since)
		}
	}
	return best.id
}

// offer takes a conversation that began in the right directory. One without a time or from before since is not the
// session's.
func (c *candidate) offer(id string, began, since time.Time) {
	if began.IsZero() || began.Before(since) || !began.After(c.began) {
		return
	}
	c.id, c.began = id, began
}

// olderThan says that a file was last written before since, so that what it holds must have begun before.
func olderThan(path string, since time.Time) bool {
	info, err := os.Stat(path)
	return err != nil || info.ModTime().Before(since)
}

func trimExt(name string) string { return name[:len(name)-len(filepath.Ext(name))] }
