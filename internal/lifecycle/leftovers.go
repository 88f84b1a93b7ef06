package lifecycle

import (
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// endLeftovers ends what a killed git-tilth has left running in worktrees at these paths: its worker's commands, and
// git with its hooks, which would go on in the middle of what comes now, or bring back what is removed. Only the
// lock's holder may call it. Temporary directories of killed processes go too.
func endLeftovers(paths ...string) {
	for _, path := range paths {
		real := path
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			real = filepath.Join(dir, filepath.Base(path))
		}
		proc.EndStale(real) // by the name without links, which cannot be asked for once the directory is gone
	}
	proc.ClearTemp()
}
