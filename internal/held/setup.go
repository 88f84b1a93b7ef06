package held

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/packages"
)

// Setup sets up a new worktree by tilth.setup and tilth.copy.
type Setup struct {
	Copy       []string // patterns of ignored files of the source
	Configured bool     // set by tilth.setup, not by a lock file
	Setting    packages.SetupSetting
	// Commands returns the commands for the tree in a directory. It is nil if no tree needs any.
	Commands func(dir string) []string
	// Run runs the setup commands in the worktree, with additional variables. The error has their output.
	Run func(ctx context.Context, dir string, env ...string) error
}

// In returns the commands for the tree in a directory.
func (s Setup) In(dir string) []string {
	if s.Commands == nil {
		return nil
	}
	return s.Commands(dir)
}

// hasModules reports whether the checkout in a directory has submodules for the harness to check out. A configured
// setup with a command for submodules checks them out itself.
func (s Setup) hasModules(dir string) bool {
	own := func(line string) bool { return s.Configured && strings.Contains(line, "submodule") }
	fi, err := os.Lstat(filepath.Join(dir, ".gitmodules"))
	return err == nil && fi.Mode().IsRegular() && !slices.ContainsFunc(s.In(dir), own)
}

// RunSetup prepares a new worktree or judge checkout: it checks out the submodules, copies ignored files of the source
// and runs the setup commands.
func (h *Handle) RunSetup(ctx context.Context, dir string, env ...string) error {
	if h.Git.IsDryRun() {
		return nil
	}
	if h.Setup.hasModules(dir) {
		seed, _, _ := h.SeedCommit(ctx) // none yet: nothing differs from it
		again := func(string) bool { return dir != h.Path() }
		if err := h.Git.CheckOutModules(ctx, h.Common, seed, dir, again); err != nil {
			return fmt.Errorf("the submodules: %w", err)
		}
	}
	if len(h.Setup.Copy) > 0 {
		files, err := h.IgnoredInSource(ctx, h.Setup.Copy...)
		if err != nil {
			return err
		}
		files = slices.DeleteFunc(files, func(f string) bool { return Exists(filepath.Join(dir, f)) })
		if err := CopyFiles(h.Checkpoint.Source, dir, files); err != nil {
			return fmt.Errorf("tilth.copy: %w", err)
		}
	}
	if h.Setup.Run == nil {
		return nil
	}
	return h.Setup.Run(ctx, dir, env...)
}

// IgnoredInSource lists the ignored files of the source that match any of the patterns. In a pattern, * stays within a
// path segment and ** does not; a directory matches its content.
func (h *Handle) IgnoredInSource(ctx context.Context, patterns ...string) ([]string, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}
	for _, p := range patterns {
		args = append(args, ":(glob)"+p)
	}
	return h.Git.List(ctx, h.Git.In(h.Checkpoint.Source, args...))
}

// Untracked lists the untracked paths of a worktree without build products: the ignored ones, or the others. A
// directory without tracked files, or with only ignored files, is one entry with a slash at its end.
func (h *Handle) Untracked(ctx context.Context, wt gitx.Worktree, ignored bool) (paths []string, err error) {
	if ignored {
		paths, err = ignoredIn(ctx, h.Git, wt)
	} else {
		paths, err = h.Git.List(ctx, h.Git.InWorktree(wt, "ls-files", "-z", "--others", "--exclude-standard",
			"--directory", "--no-empty-directory"))
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		return gitx.ProductRoot(wt.Path, p) != "" || strings.HasSuffix(p, ".pyc")
	}), err
}

// ignoredIn lists the ignored paths of a worktree. A directory with only ignored files is one entry with a slash at its
// end.
func ignoredIn(ctx context.Context, g *gitx.Git, wt gitx.Worktree) ([]string, error) {
	return g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
}
