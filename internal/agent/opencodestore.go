package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// openCodeStore asks the program itself: its database is its own affair.
type openCodeStore struct{}

// askLimit bounds how long a question to the program may take.
const askLimit = time.Minute

func (openCodeStore) ask(ctx context.Context, h *history, keep int, args ...string) (proc.Outcome, error) {
	env := ScrubEnv(h.env)
	bin, err := proc.LookPath(h.program.Binary, h.dir, env)
	if err != nil {
		return proc.Outcome{}, &NotInstalledError{Program: h.program}
	}
	return proc.Run(ctx, proc.Cmd{Argv: append([]string{bin}, args...), Dir: h.dir, Env: env,
		Timeout: askLimit, OutputCap: keep, SeparateStderr: true})
}

func (o openCodeStore) state(ctx context.Context, h *history) StoreState {
	res, err := o.ask(ctx, h, 64<<20, "export", h.id)
	if err != nil {
		return StoreState{Unknown, err.Error()}
	}
	text := string(res.Output) + string(res.Stderr)
	var said struct {
		Info struct {
			ID        string `json:"id"`
			Directory string `json:"directory"`
		} `json:"info"`
		Messages []json.RawMessage `json:"messages"`
	}
	start := strings.IndexByte(string(res.Output), '{')
	switch {
	case strings.Contains(text, "Session not found"):
		return StoreState{Missing, "opencode has no conversation with this id"}
	case res.ExitCode != 0 || start < 0:
		return StoreState{Unknown, askFailed("export", res).Error()}
	case json.Unmarshal(res.Output[start:], &said) != nil || said.Info.ID != h.id:
		return StoreState{Unknown, "what opencode export says is not understood"}
	case realPath(said.Info.Directory) != h.dir:
		return StoreState{Missing, "its conversation belongs to the directory " + said.Info.Directory}
	case len(said.Messages) == 0:
		return StoreState{Empty, "its conversation is empty"}
	}
	return StoreState{Present, "opencode has its conversation"}
}

func askFailed(what string, res proc.Outcome) error {
	return fmt.Errorf("opencode %s ended with exit status %d: %s", what, res.ExitCode, oneLine(string(res.Stderr)))
}

func (o openCodeStore) newest(
	ctx context.Context, h *history, since time.Time, except map[string]bool,
) (string, error) {
	res, err := o.ask(ctx, h, 8<<20, "session", "list", "--format", "json")
	if err != nil {
		return "", err
	}
	var list []struct {
		ID        string `json:"id"`
		Directory string `json:"directory"`
		Created   int64  `json:"created"` // milliseconds
	}
	start := strings.IndexByte(string(res.Output), '[')
	if res.ExitCode == 0 && start < 0 {
		return "", errNoStore
	}
	if res.ExitCode != 0 || json.Unmarshal(res.Output[start:], &list) != nil {
		return "", askFailed("session list", res)
	}
	var best candidate
	for _, s := range list {
		if s.Directory != "" && realPath(s.Directory) == h.dir && !except[s.ID] && h.program.valid(s.ID) {
			best.offer(s.ID, time.UnixMilli(s.Created), since)
		}
	}
	return best.id, nil
}
