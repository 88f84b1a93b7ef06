package gitx

import (
	"os"
	"path/filepath"
	"slices"
)

// ownDirs are the directories that git and Git LFS make in a repository's common directory (gitrepository-layout(5)).
var ownDirs = []string{"branches", "hooks", "info", "lfs", "logs", "modules", "objects", "rebase-apply", "rebase-merge",
	"refs", "reftable", "remotes", "rr-cache", "sequencer", "worktrees"}

// LinkForeign links the directories in common that are not git's own into the git directory dir. The links lead to them
// at the path by. Filters such as git-crypt look for their files below `git rev-parse --git-dir`.
func LinkForeign(common, by, dir string) error {
	names, err := os.ReadDir(common)
	for _, e := range names {
		at := filepath.Join(dir, e.Name())
		if err == nil && e.IsDir() && !slices.Contains(ownDirs, e.Name()) && absent(at) {
			err = os.Symlink(filepath.Join(by, e.Name()), at)
		}
	}
	return err
}

// linkForeign does the same for the entry of a new worktree, which sandboxes show at another path.
func linkForeign(common, path string) error {
	admin, found := AdminDir(common, path)
	if !found {
		return nil
	}
	return LinkForeign(common, "../..", admin)
}
