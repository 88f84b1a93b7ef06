package agent

import (
	"path/filepath"
	"time"

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

func (c codexStore) state(h *history) StoreState {
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

func (c codexStore) newest(h *history, since time.Time, except map[string]bool) (string, error) {
	paths := c.files(h, "")
	if len(paths) == 0 {
		return "", errNoStore
	}
	var best candidate
	for _, path := range paths {
		if olderThan(path, since) {
			continue
		}
		head, err := readCodexHead(path)
		if err != nil || head.messages == 0 || except[head.id] || realPath(head.cwd) != h.dir || !h.program.ValidID.MatchString(head.id) {
			continue
		}
		best.offer(head.id, head.began, since)
	}
	return best.id, nil
}

type codexHead struct {
	transcriptHead
	id string
}

type codexLine struct {
	Type    string `json:"type"`
	Payload struct {
		Type string    `json:"type"`
		ID   string    `json:"id"`
		Cwd  string    `json:"cwd"`
		Time time.Time `json:"timestamp"`
		Info *struct {
			Total *codexUsage `json:"total_token_usage"`
		} `json:"info"`
		Thread *codexUsage `json:"thread_token_usage"`
	} `json:"payload"`
}

func readCodexHead(path string) (codexHead, error) {
	var head codexHead
	err := eachLine(path, headLines, func(line []byte) {
		var e codexLine
		if !decode(line, &e) {
			return
		}
		switch {
		case e.Type == "session_meta" && head.id == "":
			head.id, head.cwd, head.began = e.Payload.ID, e.Payload.Cwd, e.Payload.Time
		case e.Type == "response_item":
			head.messages++
		}
	})
	return head, err
}

// codexFinish takes the thread's tokens from its rollout when the run was ended before it could say them. Newer versions
// record each answer at once, but count on from the last token_count when they resume, which may be behind by one answer:
// so the one is what was spent, and the other what the next run's total has to be compared with.
func codexFinish(s *stream, h *history) {
	if s.totalKnown || h.id == "" {
		return
	}
	for _, path := range (codexStore{}).files(h, "-"+h.id) {
		// A file that cannot be read leaves the usage unknown, which is what it was.
		_ = eachLine(path, 0, func(line []byte) {
			var e codexLine
			switch {
			case !decode(line, &e):
			case e.Type == "token_usage_record" && e.Payload.Thread != nil:
				s.spent = e.Payload.Thread.usage()
			case e.Payload.Type == "token_count" && e.Payload.Info != nil && e.Payload.Info.Total != nil:
				s.total, s.totalKnown = e.Payload.Info.Total.usage(), true
			}
		})
	}
}
