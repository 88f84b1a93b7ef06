package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// repairWorktree makes the worktree fit to work in and says whether it is a new one, and where a directory that was
// in the way is now. No file of a session's work is lost on the way: that directory is kept, and one whose admin
// entry is gone is registered again around its files.
//
// On disk while a new one is made, and what a resume then makes of it:
//  1. the marker remakeMark    missing, whatever stands there: what is not checked out yet is not deleted
//  2. branch checked out at the path       the same
//  3. furnished, the marker gone           fine; step 3 is the caller's (worktreeMade)
func (h *Handle) repairWorktree(ctx context.Context, state TreeState) (fresh bool, aside string, err error) {
	path := h.Path()
	if remaking(h.S) {
		if err := h.clearPlace(ctx, path); err != nil {
			return false, "", err
		}
		state = treeMissing
	}
	switch state {
	case treeFine:
		return false, "", nil
	case treeElsewhere:
		return false, "", h.BringBack(ctx, false, "")
	case treeUnregistered:
		return false, "", h.register(ctx, path)
	}
	if err := h.branchFree(ctx, path); err != nil {
		return false, "", err
	}
	if state == treePlain {
		aside = asideOf(path, h.Now())
		if err := h.change(func() error { return os.Rename(path, aside) }); err != nil {
			return false, "", err
		}
	}
	if err := h.change(func() error { return jsonl.WriteFile(h.S.Path(remakeMark), nil) }); err != nil {
		return false, "", err
	}
	return true, aside, h.Git.AddWorktree(ctx, h.Common, path, h.S.Branch(), "", true)
}

const asideSuffix = ".found-"

// asideOf is a free place beside a worktree for what was found in it at some time. Two can be found within a second.
func asideOf(path string, at time.Time) string {
	base := path + asideSuffix + at.UTC().Format("20060102-150405")
	aside := base
	for n := 2; exists(aside); n++ {
		aside = fmt.Sprintf("%s-%d", base, n)
	}
	return aside
}

// putBackDotGit makes the .git of the worktree at path the file that it is, whatever a worker made of it.
func (h *Handle) putBackDotGit(ctx context.Context, path string) error {
	if fi, err := os.Lstat(filepath.Join(path, ".git")); err == nil && fi.IsDir() && !h.Git.IsDryRun() {
		if err := h.putAwayRepository(ctx, path); err != nil {
			return err
		}
	}
	return h.Git.Restore(h.Common, path)
}

// putAwayRepository moves a repository of its own out of the place of the worktree's .git file, which comes back. All
// files of the worktree stay.
func (h *Handle) putAwayRepository(ctx context.Context, path string) error {
	if _, ours := gitx.AdminDir(h.Common, path); !ours {
		return nil
	}
	aside := asideOf(path, h.Now())
	err := os.Mkdir(aside, 0o700)
	if err == nil {
		err = os.Rename(filepath.Join(path, ".git"), filepath.Join(aside, ".git"))
	}
	if err != nil {
		return err
	}
	h.putAway.Store(path, true)
	if _, err := h.Git.Relink(ctx, h.Common, path); err != nil {
		return err
	}
	return h.append(&record.LogRepaired{What: "the .git of the worktree was a repository of its own",
		Done: "moved to " + aside + ", the worktree's files kept"})
}

// HadRepository reports, once, whether the worktree at path had a repository of its own.
func (h *Handle) HadRepository(path string) bool {
	_, had := h.putAway.LoadAndDelete(path)
	return had
}

// setAside lists the directories that were moved out of the worktree's place by a resume, absolute.
func setAside(s *session.Session) []string {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), session.WorkspaceDir+asideSuffix) {
			out = append(out, filepath.Join(s.Dir, e.Name()))
		}
	}
	return out
}

// remakeMark is there while the worktree is made again: what stands in its place is not whole.
const remakeMark = "remake"

// remaking reports whether the worktree was being made again when a process died.
func remaking(s *session.Session) bool { return exists(s.Path(remakeMark)) }

// worktreeMade ends what repairWorktree began with a new worktree.
func (h *Handle) worktreeMade() error {
	return h.change(func() error { return os.RemoveAll(h.S.Path(remakeMark)) })
}

// clearPlace removes what a git that was killed while it made a worktree has left at path and in the repository.
func (h *Handle) clearPlace(ctx context.Context, path string) error {
	if err := h.Git.RemoveWorktree(ctx, h.Common, path, ""); err != nil {
		return err
	}
	return h.change(func() error { return os.RemoveAll(path) })
}

// BringBack puts HEAD back on the session's branch. The files stay, because they are the worker's: it moves HEAD with
// `git checkout -b` and goes on. Where HEAD is at a commit that does not hold the branch, the rest is brought up to the
// branch, or finished tasks would be undone. What a worker did since the common ancestor stays, committed or not; else
// someone looked at another commit, and what differs from that is work. lost is where the branch was, if it is gone.
func (h *Handle) BringBack(ctx context.Context, byWorker bool, lost string) error {
	wt, err := h.Git.Worktree(ctx, h.Common, h.Path(), "")
	if err != nil {
		return err
	}
	tip, ok, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil {
		return err
	}
	if !ok {
		tip = lost
	}
	head, err := h.Git.RevParse(ctx, wt.AdminDir, "HEAD^{commit}")
	switch {
	case tip == "", errors.Is(err, gitx.ErrNotFound): // an orphan branch: everything in the index is new
	case err != nil:
		return err
	default:
		from, err := h.mergeBase(ctx, head, tip)
		held := from == tip || byWorker && from == ""
		if !byWorker {
			from = head
		}
		if err == nil && !held {
			err = h.catchUp(ctx, wt, from, tip)
		}
		if err != nil {
			return err
		}
	}
	// HEAD last: until then the next look finds it elsewhere, and does this again.
	return h.Git.AttachHead(ctx, wt, h.S.Branch())
}

// CatchUp brings up to the commit to a worktree in which a worker went back to an older commit or another line, head:
// what it did since their common ancestor stays, committed or not, and what finished tasks did is not undone.
func (h *Handle) CatchUp(ctx context.Context, wt gitx.Worktree, head, to string) error {
	base, err := h.mergeBase(ctx, head, to)
	if err != nil || base == "" || base == to {
		return err
	}
	return h.catchUp(ctx, wt, base, to)
}

// mergeBase names the best common ancestor of two commits; it is "" if they have none.
func (h *Handle) mergeBase(ctx context.Context, a, b string) (string, error) {
	return h.Git.Line(ctx, gitx.InRepo(h.Common, "merge-base", "--end-of-options", a, b))
}

func (h *Handle) catchUp(ctx context.Context, wt gitx.Worktree, from, to string) error {
	tree, _, err := h.Git.StageAll(ctx, wt, to)
	if err != nil {
		return err
	}
	return h.Git.CatchUp(ctx, wt, from, to, tree)
}

// register makes the source and the worktree at path know each other again: one that was moved with the sessions root,
// one whose .git file is gone, or one whose admin entry was pruned.
func (h *Handle) register(ctx context.Context, path string) error {
	known, err := h.Git.Relink(ctx, h.Common, path)
	if err == nil && !known {
		err = h.newEntry(ctx, path)
	}
	if err == nil {
		err = h.change(func() error { return os.RemoveAll(h.S.Path(entryDir)) })
	}
	if err != nil || !known {
		return err
	}
	if state, _ := treeState(ctx, h.Git, h.Common, path, h.S.Branch()); state == treeElsewhere {
		return h.BringBack(ctx, false, "")
	}
	return nil
}

// branchFree fails where the branch is checked out elsewhere. It is asked before any file is moved: git would refuse
// halfway.
func (h *Handle) branchFree(ctx context.Context, path string) error {
	place, hint, err := checkedOutIn(ctx, h.Git, h.S, h.Common, path, "git tilth resume "+h.S.ID)
	if err == nil && place != "" {
		err = &StepError{Step: "worktree " + path, Err: fmt.Errorf("its branch is checked out in %s", place),
			Hint: hint}
	}
	return err
}

// entryDir is the directory of a session in which a new entry of git's is made for its worktree.
const entryDir = "entry"

// newEntry gives a directory whose admin entry was pruned a new one, its files kept.
//
// On disk after each step, and what a resume then makes of it:
//  1. a worktree without files, in entry/    unregistered as before; it is removed and made again
//  2. its index at the branch's tip          the same
//  3. its .git file in the directory         a worktree that was moved: Relink
//  4. its entry leads to the directory       fine
func (h *Handle) newEntry(ctx context.Context, path string) error {
	at := h.S.Path(entryDir, session.WorkspaceDir)
	if err := h.branchFree(ctx, path); err != nil {
		return err
	}
	if err := h.clearPlace(ctx, at); err != nil {
		return err
	}
	if err := h.Git.AddWorktree(ctx, h.Common, at, h.S.Branch(), "", false); err != nil {
		return err
	}
	wt, err := h.Git.Worktree(ctx, h.Common, at, h.S.Branch())
	if err == nil {
		err = h.Git.ReadTree(ctx, wt, "HEAD", false)
	}
	if err == nil {
		err = h.Git.MoveEntry(wt, path)
	}
	return err
}

// Setup is what tilth.setup and tilth.copy do in a new worktree.
type Setup struct {
	Copy       []string // patterns of ignored files of the source
	Configured bool     // a person named the commands, or that there are none
	// Commands are those for the tree in a directory; nil for none anywhere.
	Commands func(dir string) []string
	// Run runs the setup commands in the worktree, with some more environment. An error carries their output.
	Run func(ctx context.Context, dir string, env ...string) error
}

// In are the commands for the tree in a directory.
func (s Setup) In(dir string) []string {
	if s.Commands == nil {
		return nil
	}
	return s.Commands(dir)
}

// HasModules reports whether the checkout in a directory has submodules for the harness to check out. Whoever names the
// commands of the setup and has one for submodules does it.
func (s Setup) HasModules(dir string) bool {
	own := func(line string) bool { return s.Configured && strings.Contains(line, "submodule") }
	fi, err := os.Lstat(filepath.Join(dir, ".gitmodules"))
	return err == nil && fi.Mode().IsRegular() && !slices.ContainsFunc(s.In(dir), own)
}

// RunSetup checks out the submodules of a new worktree, or of where changes are judged, copies ignored files of the
// source into it and runs the setup commands in it.
func (h *Handle) RunSetup(ctx context.Context, dir string, env ...string) error {
	if h.Git.IsDryRun() {
		return nil
	}
	if h.Setup.HasModules(dir) {
		if err := h.Git.CheckOutModules(ctx, h.Common, dir, dir != h.Path()); err != nil {
			return fmt.Errorf("the submodules: %w", err)
		}
	}
	if len(h.Setup.Copy) > 0 {
		files, err := h.IgnoredInSource(ctx, h.Setup.Copy...)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := copyInto(h.Checkpoint.Source, dir, f); err != nil {
				return fmt.Errorf("tilth.copy: %w", err)
			}
		}
	}
	if h.Setup.Run == nil {
		return nil
	}
	return h.Setup.Run(ctx, dir, env...)
}

// IgnoredInSource lists the untracked files of the source that the ignore rules cover and that match any of the
// patterns. In a pattern, * stays within a path segment and ** does not; a directory stands for what is in it.
func (h *Handle) IgnoredInSource(ctx context.Context, patterns ...string) ([]string, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}
	for _, p := range patterns {
		args = append(args, ":(glob)"+p)
	}
	return h.Git.List(ctx, h.Git.In(h.Checkpoint.Source, args...))
}

// Untracked lists what a worktree has that is not tracked and no build product: what is ignored, or what is not. A
// directory of which nothing is tracked, or all is ignored, is one entry, with a slash at its end.
func (h *Handle) Untracked(ctx context.Context, wt gitx.Worktree, ignored bool) (paths []string, err error) {
	if ignored {
		paths, err = ignoredIn(ctx, h.Git, wt)
	} else {
		paths, err = h.Git.List(ctx, h.Git.InWorktree(wt, "ls-files", "-z", "--others", "--exclude-standard",
			"--directory", "--no-empty-directory"))
	}
	return slices.DeleteFunc(paths, namesProduct), err
}

// ignoredIn lists what the ignore rules keep out of the worktree's tree. A directory of which all is ignored is one
// entry, with a slash at its end.
func ignoredIn(ctx context.Context, g *gitx.Git, wt gitx.Worktree) ([]string, error) {
	return g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
}

// namesProduct reports whether a path, as git lists it, is or lies in a build product.
func namesProduct(p string) bool {
	for _, name := range strings.Split(strings.TrimSuffix(p, "/"), "/") {
		if project.IsProduct(name) || slices.Contains(project.Built, name) {
			return true
		}
	}
	return strings.HasSuffix(p, ".pyc")
}

// copyInto copies one file or symlink from one root to the same place under another. Both ends are reached through
// os.Root, so that a link in either tree cannot lead out of it. What is already there is left alone.
func copyInto(from, to, name string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	info, err := src.Lstat(name)
	if err != nil {
		return err
	}
	if _, err := dst.Lstat(name); err == nil {
		return nil
	}
	if err := dst.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := src.Readlink(name)
		if err != nil {
			return err
		}
		return dst.Symlink(target, name)
	case info.Mode().IsRegular():
		data, err := src.ReadFile(name)
		if err != nil {
			return err
		}
		if err := dst.WriteFile(name, data, info.Mode().Perm()); err != nil {
			return err
		}
		return dst.Chtimes(name, time.Time{}, info.ModTime())
	}
	return nil
}
