package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
)

// The lifecycle hooks are git hooks named tilth-<name>. A run looks for them once.
const (
	preTool  = "pre-tool"  // before a tool of the builtin worker; a non-zero exit blocks the call
	postEdit = "post-edit" // after the builtin worker wrote a file, with its path
	postTask = "post-task" // after a task's commit, with the task's id and the commit
	postRun  = "post-run"  // after the run stopped, with the reason
)

// findHooks finds the repository's hooks and the worktree in which they run.
func (g *workspace) findHooks(ctx context.Context, wt gitx.Worktree) error {
	_, has, err := g.run.Git.Hooks(ctx, wt)
	if err == nil {
		g.hooked = wt
		g.hooks = slices.DeleteFunc([]string{preTool, postEdit, postTask, postRun},
			func(name string) bool { return !has("tilth-" + name) })
	}
	return err
}

func (g *workspace) hasHook(name string) bool { return slices.Contains(g.hooks, name) }

// runHook runs a hook, if it exists, and records it with emit.
func (g *workspace) runHook(ctx context.Context, emit func(record.Event) error, name, tool string, input any,
	args ...string) (code int, output string) {
	if !g.hasHook(name) {
		return 0, ""
	}
	var stdin []byte
	if input != nil {
		stdin, _ = json.Marshal(input)
	}
	output, err := g.run.Git.RunHook(ctx, g.hooked, "tilth-"+name, stdin, []string{g.run.S.Mark()}, args...)
	if ctx.Err() == nil && gitx.ExitCode(err) > 0 { // a non-zero exit is an answer
		code, err = gitx.ExitCode(err), nil
	}
	outcome, reason := "ok", strings.TrimSpace(output)
	switch {
	case err != nil && ctx.Err() != nil:
		outcome, reason, code, output = "interrupted", "ended by a signal", -1, "it was interrupted"
	case err != nil:
		// A hook that cannot run blocks the call.
		outcome, reason, code, output = "error", err.Error(), -1, err.Error()
	case code != 0 && name == preTool:
		outcome = "block"
	case code != 0:
		outcome = "failed"
	}
	_ = emit(&record.HookRun{Hook: name, Outcome: outcome, Tool: record.Optional(tool),
		Reason: g.run.forRecord(reason, 2000)})
	return code, output
}

// askHook runs the pre-tool hook before a tool call.
func (a *attempt) askHook(ctx context.Context, name, args string) (reason string, blocked bool) {
	code, output := a.at.runHook(ctx, a.emit, preTool, name, map[string]string{"tool": name, "args": args}, name)
	if code == 0 {
		return "", false
	}
	return cmp.Or(strings.TrimSpace(output), "the repository's tilth-pre-tool hook refused it"), true
}

// runLastHook runs the post-run hook after every stop, also after an interrupt. The next signal ends the hook. The
// stop is already recorded.
func (g *workspace) runLastHook(ctx context.Context, s Stop) {
	if g.hasHook(postRun) && ctx.Err() != nil {
		if ctx = proc.IgnoreFirstSignal(ctx); ctx.Err() != nil {
			return
		}
		g.run.Say("interrupted; waiting for the tilth-post-run hook, a second signal ends it")
	}
	g.runHook(ctx, g.run.Record.Append, postRun, "", nil, s.Reason)
}
