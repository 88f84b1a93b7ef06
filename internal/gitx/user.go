package gitx

import (
	"errors"
	"os"
	"os/exec"
	"slices"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Terminal is what a command of the user's own is attached to.
type Terminal struct{ In, Out, Err *os.File }

// ForUser runs git on the user's terminal as if the user had typed it there: with their settings, pager, hooks and
// credential dialogs. It works on the repository at common or, if wt is one, in that worktree. With objects, those of
// that git directory can be read too. failed is true where git ended with an error, which it has printed.
func (g *Git) ForUser(t Terminal, common string, wt Worktree, objects string, args ...string) (failed bool, err error) {
	env := without(g.env.raw, func(name string) bool { return slices.Contains(localVars, name) })
	env = append(env, "GIT_DIR="+common)
	if wt.Path != "" {
		env = append(env, "GIT_DIR="+wt.AdminDir, "GIT_COMMON_DIR="+wt.Common, "GIT_WORK_TREE="+wt.Path)
	}
	if objects != "" {
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objects)
	}
	err = proc.Attach(append([]string{g.program}, args...), env, t.In, t.Out, t.Err)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return true, nil
	}
	return false, err
}
