package held

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Place describes a tree of the session to the sandbox, with the user's checkouts (the source and the main worktree of
// its repository) and their installed dependencies. A bare repository has no main worktree.
func (h *Handle) Place(ctx context.Context, tree string) sandbox.Place {
	h.placeOnce.Do(func() {
		main, hasMain := strings.CutSuffix(h.Common, "/.git")
		for _, dir := range []string{h.Checkpoint.Source, main} {
			if !filepath.IsAbs(dir) || dir == h.Common || dir == main && !hasMain || slices.Contains(h.checkouts, dir) {
				continue
			}
			h.checkouts = append(h.checkouts, dir)
			ignored, _ := h.Git.List(ctx, h.Git.In(dir, "ls-files", "-z", "--others", "--ignored", "--exclude-standard",
				"--directory")) // an unlistable directory is not shown
			for _, name := range ignored {
				if at := filepath.Join(dir, name); strings.HasSuffix(name, "/") && project.IsInstalled(at) {
					h.dependencies = append(h.dependencies, at)
				}
			}
		}
	})
	return sandbox.Place{Tree: tree, Checkouts: h.checkouts, Git: h.Common, Installed: h.dependencies}
}
