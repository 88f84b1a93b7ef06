package loop

import (
	"context"
	"os"
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// openSandbox gives what the run starts a directory of its own for temporary files, which a kill leaves to be cleared
// like the others of proc.
func (r *run) openSandbox(ctx context.Context, wt gitx.Worktree) (err error) {
	if r.o.Sandbox == nil {
		return nil
	}
	layers := r.S.Path(sandbox.LayersDir)
	if err := os.MkdirAll(layers, 0o700); err != nil {
		return err
	}
	left, _ := filepath.Glob(filepath.Join(text.GlobQuote(layers), agent.TurnDir+"*")) // by a run that was killed
	for _, turn := range left {
		if err := proc.RemoveAll(turn); err != nil {
			return err
		}
	}
	temp, remove, err := proc.TempDir("run")
	if err != nil {
		return err
	}
	r.box, r.removeTemp = r.o.Sandbox.In(temp), remove
	for _, role := range append(r.o.Worker.all(), r.o.Evaluator.all()...) {
		if role.Program != nil {
			role.Program.Box = r.workBox(wt)
		}
	}
	return nil
}

// workBox is what the worker may do: change the worktree.
func (r *run) workBox(wt gitx.Worktree) *sandbox.Box {
	return r.box.Of(wt.Path).With(wt.Path).Interpreters(wt.Path).Reading(wt.Common)
}

// judgingBox is what may be done where a change is judged. What the worktree lends is read there.
func (a *attempt) judgingBox(j *judged) *sandbox.Box {
	return a.box.Of(j.dir).With(j.dir).Interpreters(j.wt.Path).Reading(j.wt.Path, j.wt.Common)
}

// judgingPlace is where validators run.
func (a *attempt) judgingPlace(ctx context.Context, j *judged) validator.Place {
	return validator.Place{Dir: j.dir, Env: a.toolEnv(ctx, j.dir), Box: a.judgingBox(j),
		Dropped: agent.Dropped(a.Environ, a.o.KeepEnv)}
}
