package loop

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/urgency"
)

// hooks are the lifecycle hooks that the repository has: git's own hook scripts, named tilth-<name>. Which
// there are is found out once per run; a repository without them pays nothing.
type hooks struct {
	r      *run
	wt     gitx.Worktree
	exists map[string]bool
}

// The lifecycle hooks.
const (
	preTool  = "pre-tool"  // before a tool of the builtin worker; non-zero blocks it, the output is the reason
	postEdit = "post-edit" // after a file was written, with its path
	postTask = "post-task" // after a task's commit, with its id and sha
	postRun  = "post-run"  // after the stop, with its reason
)

func (r *run) findHooks(ctx context.Context, wt gitx.Worktree) (hooks, error) {
	h := hooks{r: r, wt: wt, exists: map[string]bool{}}
	for _, name := range []string{preTool, postEdit, postTask, postRun} {
		ok, err := r.Git.HasHook(ctx, wt, "tilth-"+name)
		if err != nil {
			return h, err
		}
		h.exists[name] = ok
	}
	return h, nil
}

// run runs one hook and logs it with emit.
func (h hooks) run(ctx context.Context, emit func(record.Event) error, name, tool string, input any,
	args ...string) (code int, output string) {
	if !h.exists[name] {
		return 0, ""
	}
	var stdin []byte
	if input != nil {
		stdin, _ = json.Marshal(input)
	}
	inBox := name == preTool || name == postEdit
	code, output, err := h.r.Git.RunHook(ctx, h.wt, name, inBox, stdin, []string{h.r.S.Mark()}, args...)
	outcome, reason := "ok", strings.TrimSpace(output)
	switch {
	case err != nil && ctx.Err() != nil:
		outcome, reason, code, output = "interrupted", "ended by a signal", -1, "it was interrupted"
	case err != nil:
		// What guards must not let pass because it could not be asked.
		outcome, reason, code, output = "error", err.Error(), -1, err.Error()
	case code != 0 && name == preTool:
		outcome = "block"
	case code != 0:
		outcome = "failed"
	}
	_ = emit(&record.HookRun{Hook: name, Outcome: outcome, Tool: record.Optional(tool), Reason: clip(reason, 2000)})
	return code, output
}

// preTool asks the hook about a tool call.
func (h hooks) preTool(ctx context.Context, a *attempt, name, args string) (reason string, blocked bool) {
	if !h.exists[preTool] {
		return "", false
	}
	code, output := h.run(ctx, a.emit, preTool, name, map[string]string{"tool": name, "args": args}, name)
	if code == 0 {
		return "", false
	}
	if reason = strings.TrimSpace(output); reason == "" {
		reason = "the repository's tilth-pre-tool hook refused it"
	}
	return reason, true
}

func (h hooks) postEdit(ctx context.Context, a *attempt, tool, path string) {
	h.run(ctx, a.emit, postEdit, tool, nil, path)
}

// postTask ends with the first signal: the commit is on disk and on record, and nothing waits for the hook. After a
// signal it is not begun.
func (h hooks) postTask(ctx context.Context, a *attempt, sha string) {
	if ctx.Err() == nil {
		h.run(ctx, a.emit, postTask, "", nil, a.task.ID, sha)
	}
}

// postRun runs after every stop, that of an interruption included. The next signal ends it, the first or the second:
// the stop is on record, and the hook's own hook_run is all that is still written.
func (h hooks) postRun(ctx context.Context, s Stop) {
	if h.r == nil || !h.exists[postRun] {
		return
	}
	if ctx.Err() != nil {
		if ctx = urgency.UntilSecond(ctx); ctx.Err() != nil {
			return
		}
		h.r.Say("interrupted; the tilth-post-run hook is waited for, a second signal ends it")
	}
	h.run(ctx, h.r.Record.Append, postRun, "", nil, s.Reason)
}
