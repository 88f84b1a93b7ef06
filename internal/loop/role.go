package loop

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// Role is a worker or evaluator: a model at an endpoint, or an agent program.
type Role struct {
	Model string // recorded name; empty for a program's default
	// UnsetModel is the command that unsets the role's model.
	UnsetModel string
	Client     *model.Client  // client of a model; nil if only a program is configured
	Program    *agent.Program // nil for a model
	// Others are the agents that take over in order if this one is unavailable.
	Others []Role
}

// Name returns the agent's name for the record and for people.
func (r Role) Name() string {
	if r.Program != nil {
		return r.Program.Name
	}
	return "builtin"
}

// who returns the name of the model or program.
func (r Role) who() string {
	if r.Program != nil {
		return r.Program.Name
	}
	return cmp.Or(r.Model, r.Name())
}

// toolEnv returns the environment of commands that run in a directory. It has no keys, a git that cannot leave the
// directory, and a variable that tells a nested git tilth about the run.
func (a *attempt) toolEnv(ctx context.Context, dir string) []string {
	return append(agent.ToolEnv(a.run.Git.Environ(ctx, dir), a.run.o.KeepEnv), a.at.environ()...)
}

// programEnv returns the environment of an agent program. It is toolEnv with the program's own keys.
func (a *attempt) programEnv(ctx context.Context, p *agent.Program, dir string) []string {
	return append(p.Environ(a.run.Git.Environ(ctx, dir), a.run.o.KeepEnv), a.at.environ()...)
}

// protected returns the directories that the worker's commands must not access: this session's and those of all
// others, unless the sessions root has other files as well.
func (a *attempt) protected(wt gitx.Worktree) []string {
	root := filepath.Dir(a.run.S.Dir)
	home := proc.Getenv(a.run.Environ, "HOME")
	for _, shared := range []string{os.TempDir(), wt.Common, a.run.Checkpoint.Source, home} {
		if rel, err := filepath.Rel(root, shared); shared != "" && err == nil && filepath.IsLocal(rel) {
			return []string{a.run.S.Dir}
		}
	}
	return []string{a.run.S.Dir, root}
}
