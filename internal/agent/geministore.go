package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// geminiStore reads ~/.gemini/tmp/<slug>/chats/session-<time>-<first 8 of the id>.jsonl. The slug of a directory
// stands in ~/.gemini/projects.json.
type geminiStore struct{}

func (geminiStore) home(h *history) string {
	if dir := getenv(h.env, "GEMINI_CLI_HOME"); dir != "" {
		return filepath.Join(dir, ".gemini")
	}
	return filepath.Join(homeIn(h.env), ".gemini")
}

// chats returns the directory with the conversations of exactly h.dir.
func (g geminiStore) chats(h *history) (string, error) {
	data, err := os.ReadFile(filepath.Join(g.home(h), "projects.json"))
	if os.IsNotExist(err) {
		return "", errNoStore
	}
	if err != nil {
		return "", err
	}
	var known struct {
		Projects map[string]string `json:"projects"`
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return "", err
	}
	slug := known.Projects[h.dir]
	if slug == "" || slug != filepath.Base(slug) || slug == ".." {
		return "", errNoStore
	}
	return filepath.Join(g.home(h), "tmp", slug, "chats"), nil
}

func (g geminiStore) state(h *history) StoreState {
	dir, err := g.chats(h)
	if err == errNoStore {
		return StoreState{Missing, "gemini has no conversation of this directory"}
	}
	if err != nil {
		return StoreState{Unknown, "gemini's store cannot be read: " + err.Error()}
	}
	paths, _ := filepath.Glob(filepath.Join(globQuote(dir), "session-*-"+h.id[:8]+".json*"))
	state := StoreState{Missing, "gemini has no conversation with this id for this directory"}
	for _, path := range paths {
		head, err := readGeminiHead(path)
		switch {
		case err != nil:
			return StoreState{Unknown, "its conversation cannot be read: " + err.Error()}
		case head.id != h.id:
		case head.messages == 0:
			state = StoreState{Empty, "its conversation is empty"}
		default:
			return StoreState{Present, "gemini has its conversation"}
		}
	}
	return state
}

func (g geminiStore) newest(h *history, since time.Time, except map[string]bool) (string, error) {
	dir, err := g.chats(h)
	if err != nil {
		return "", err
	}
	paths, _ := filepath.Glob(filepath.Join(globQuote(dir), "session-*.json*"))
	var best candidate
	for _, path := range paths {
		if olderThan(path, since) {
			continue
		}
		head, err := readGeminiHead(path)
		if err == nil && head.messages > 0 && !except[head.id] && h.program.ValidID.MatchString(head.id) {
			best.offer(head.id, head.began, since)
		}
	}
	return best.id, nil
}

// readGeminiHead reads a conversation: a description and then a message on each line.
func readGeminiHead(path string) (codexHead, error) {
	var head codexHead
	err := eachLine(path, headLines, func(line []byte) {
		var e struct {
			SessionID string    `json:"sessionId"`
			Start     time.Time `json:"startTime"`
			Type      string    `json:"type"`
		}
		if !decode(line, &e) {
			return
		}
		if head.id == "" && e.SessionID != "" {
			head.id, head.began = e.SessionID, e.Start
		}
		if e.Type == "user" || e.Type == "gemini" {
			head.messages++
		}
	})
	return head, err
}
