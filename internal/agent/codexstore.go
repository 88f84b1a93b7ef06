package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// codexStore reads $CODEX_HOME/sessions/Y/M/D/rollout-<time>-<id>.jsonl, whose first line describes the thread.
type codexStore struct{}

func (codexStore) root(h *history) string {
	if dir := proc.Getenv(h.env, "CODEX_HOME"); dir != "" {
		return filepath.Join(dir, "sessions")
	}
	return filepath.Join(homeIn(h.env), ".codex", "sessions")
}

func (c codexStore) files(h *history, id string) []string {
	paths, _ := filepath.Glob(filepath.Join(text.GlobQuote(c.root(h)), "*", "*", "*", "rollout-*"+id+".jsonl"))
	return paths
}

func (c codexStore) state(_ context.Context, h *history) StoreState {
	paths := c.files(h, "-"+h.id)
	if len(paths) == 0 {
		return StoreState{Missing, "codex has no rollout of it"}
	}
	head, err := readCodexHead(paths[0])
	switch {
	case err != nil:
		return StoreState{Unknown, "its rollout cannot be read: " + err.Error()}
	case head.messages == 0:
		return StoreState{Empty, "its rollout is empty"}
	case head.cwd != "" && realPath(head.cwd) != h.dir:
		return StoreState{Missing, "its rollout belongs to the directory " + head.cwd}
	}
	return StoreState{Present, "codex has its rollout"}
}

func (c codexStore) newest(_ context.Context, h *history, since time.Time, except map[string]bool) (string, error) {
	paths := c.files(h, "")
	if len(paths) == 0 {
		return "", errNoStore
	}
	return newestOf(h, paths, since, except, readCodexHead), nil
}

type codexLine struct {
	Type    string `json:"type"`
	Payload struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		Cwd     string          `json:"cwd"`
		Time    time.Time       `json:"timestamp"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Info    *struct {
			Total *codexUsage `json:"total_token_usage"`
		} `json:"info"`
		Thread *codexUsage `json:"thread_token_usage"`
	} `json:"payload"`
}

// said reports whether the line is something that somebody said: an answer of the model, or a message to it that is not
// one of those with which the program itself begins a thread.
func (l *codexLine) said() bool {
	if l.Type != "response_item" || l.Payload.Role == "developer" || l.Payload.Role == "system" {
		return false
	}
	return l.Payload.Role != "user" || !codexOwn.MatchString(textOf(l.Payload.Content))
}

var codexOwn = pattern.New(
	`^\s*(?:$|<(?:environment_context|user_instructions|permissions|skills?_|plugins?_|apps?_)|# AGENTS\.md)`)

func readCodexHead(path string) (transcriptHead, error) {
	var head transcriptHead
	err := eachLine(path, headLines, func(line []byte) {
		var e codexLine
		if !decode(line, &e) {
			return
		}
		switch {
		case e.Type == "session_meta" && head.id == "":
			head.id, head.cwd, head.began = e.Payload.ID, e.Payload.Cwd, e.Payload.Time
		case e.said():
			head.messages++
		}
	})
	return head, err
}

// codexFinish takes the thread's tokens from its rollout. Newer versions write down there what the whole thread has
// used, answer by answer. What they say at a run's end, and all that older versions write, is counted on from the
// last run's token_count, which can be one answer behind.
func codexFinish(s *stream, h *history) {
	if h.id == "" {
		return
	}
	var thread, count *codexUsage
	for _, path := range (codexStore{}).files(h, "-"+h.id) {
		// A file that cannot be read leaves the usage what the events said.
		_ = eachLine(path, 0, func(line []byte) {
			var e codexLine
			switch {
			case !decode(line, &e):
			case e.Type == "token_usage_record" && e.Payload.Thread != nil:
				thread = e.Payload.Thread
			case e.Payload.Type == "token_count" && e.Payload.Info != nil && e.Payload.Info.Total != nil:
				count = e.Payload.Info.Total
			}
		})
	}
	switch {
	case thread != nil && thread.Input >= s.total.Prompt:
		s.total, s.totalKnown = thread.usage(), true
	case count != nil && !s.totalKnown:
		s.total, s.totalKnown = count.usage(), true
	}
}
