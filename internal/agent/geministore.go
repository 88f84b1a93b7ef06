package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// geminiStore reads ~/.gemini/tmp/<slug>/chats/session-<time>-<first 8 of the id>.jsonl. The slug of a directory
// stands in ~/.gemini/projects.json.
type geminiStore struct{}

func (geminiStore) home(h *history) string {
	if dir := proc.Getenv(h.env, "GEMINI_CLI_HOME"); dir != "" {
		return filepath.Join(dir, ".gemini")
	}
	return filepath.Join(homeIn(h.env), ".gemini")
}

// geminiHome makes a home for a run that judges. Of a directory that is not trusted the program loads nothing; but
// without a person at hand it refuses to run there, unless trust is switched off, which only a settings file of the
// user can do. So it gets the user's own files but for the settings, which have that in them, and for its
// conversations.
func geminiHome(env []string, private string) error {
	theirs := geminiStore{}.home(&history{env: env})
	home := filepath.Join(private, "home", ".gemini")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(theirs)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	settings := map[string]any{}
	for _, e := range entries {
		path := filepath.Join(theirs, e.Name())
		switch e.Name() {
		case "settings.json":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if json.Unmarshal(data, &settings) != nil {
				return fmt.Errorf("%s is not plain JSON; take the comments out of it", path)
			}
		case "tmp", "history", "projects.json", "trustedFolders.json":
		default:
			if err := os.Symlink(path, filepath.Join(home, e.Name())); err != nil {
				return err
			}
		}
	}
	security, _ := settings["security"].(map[string]any)
	if security == nil {
		security = map[string]any{}
	}
	security["folderTrust"], settings["security"] = map[string]any{"enabled": false}, security
	data, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "settings.json"), data, 0o600)
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

func (g geminiStore) state(_ context.Context, h *history) StoreState {
	dir, err := g.chats(h)
	if err == errNoStore {
		return StoreState{Missing, "gemini has no conversation of this directory"}
	}
	if err != nil {
		return StoreState{Unknown, "gemini's store cannot be read: " + err.Error()}
	}
	paths, _ := filepath.Glob(filepath.Join(text.GlobQuote(dir), "session-*-"+h.id[:8]+".json*"))
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

func (g geminiStore) newest(_ context.Context, h *history, since time.Time, except map[string]bool) (string, error) {
	dir, err := g.chats(h)
	if err != nil {
		return "", err
	}
	paths, _ := filepath.Glob(filepath.Join(text.GlobQuote(dir), "session-*.json*"))
	return newestOf(h, paths, since, except, func(path string) (transcriptHead, error) {
		head, err := readGeminiHead(path)
		head.cwd = h.dir // the chats of each directory are kept apart
		return head, err
	}), nil
}

// geminiFinish adds up the tokens of a run that was ended before it could: each answer in the conversation carries
// its own.
func geminiFinish(s *stream, h *history) {
	if s.usageSaid || len(h.id) < 8 {
		return
	}
	dir, err := geminiStore{}.chats(h)
	if err != nil {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(text.GlobQuote(dir), "session-*-"+h.id[:8]+".json*"))
	for _, path := range paths {
		// What cannot be read leaves the usage unknown, which is what it was.
		_ = eachLine(path, 0, func(line []byte) { s.geminiTokens(line) })
	}
}

// geminiTokens takes one line of a conversation. An answer is written again when its tools are done.
func (s *stream) geminiTokens(line []byte) {
	var e struct {
		ID     string    `json:"id"`
		Type   string    `json:"type"`
		Time   time.Time `json:"timestamp"`
		Tokens *struct {
			Input    int64 `json:"input"`
			Output   int64 `json:"output"`
			Cached   int64 `json:"cached"`
			Thoughts int64 `json:"thoughts"`
		} `json:"tokens"`
	}
	// The times are cut to milliseconds.
	if !decode(line, &e) || e.Type != "gemini" || e.Tokens == nil || e.Time.Before(s.began.Truncate(time.Millisecond)) {
		return
	}
	t := e.Tokens
	s.spend(e.ID, Usage{Prompt: t.Input, Eval: t.Output + t.Thoughts, Cached: t.Cached, Reasoning: t.Thoughts})
}

// readGeminiHead reads a conversation: a description and then a message on each line.
func readGeminiHead(path string) (transcriptHead, error) {
	var head transcriptHead
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
