// Package snapshot keeps a worktree, or a task's work in it, in a repository of the session's own, and brings it back.
package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Snapshot is a worktree as it is: branch, index and files, so that it can be made so again. Commits and contents are
// in kept.git, the index is in keptIndex, in a directory. What git has no content of are the Loose files, which stay
// where they are: the caller moves them.
type Snapshot struct {
	Tip string `json:"tip"` // of the branch
	// Files is a commit of the tracked files that are as the index has them, on Tip; Tip where that is all of its own.
	Files string `json:"files"`
	// Loose are the other files, relative to the worktree: changed, or untracked and not ignored. A directory stands
	// for all that is in it. They are bytes, because names need not be UTF-8.
	Loose [][]byte `json:"loose,omitempty"`
	// Ignored are files that are ignored here and may not be where one went from here: they stay in the worktree.
	Ignored [][]byte `json:"ignored,omitempty"`
	// Pack is the pack of kept.git with the objects that the user's repository may lose, or "".
	Pack    string `json:"pack,omitempty"`
	Indexed bool   `json:"indexed"` // there was an index
}

const (
	UndosDir  = "undo" // what each undo needs, by its number
	keptIndex = "index"
)

// UndoDir returns the directory of undo n.
func UndoDir(s *session.Session, n int) string { return s.Path(UndosDir, strconv.Itoa(n)) }

// Keep writes the worktree down as undo/<n>, before it becomes to, which was kept as undo/<undoes>, or is a
// commit where that is 0. base is a commit that the repository has whatever becomes of the branch. Neither the branch
// nor the worktree is changed.
func Keep(ctx context.Context, h *held.Handle, wt gitx.Worktree, to Snapshot, base string,
	n, undoes int) (Snapshot, error) {
	in, err := openKept(h)
	if err != nil {
		return Snapshot{}, err
	}
	k := snapshotter{git: h.Git, in: in, wt: wt, to: to, tracked: map[string]bool{}, loose: map[string]bool{}}
	err = k.keep(ctx, h.S, base, n, undoes)
	return k.Snapshot, err
}

// snapshotter writes a worktree down, before it becomes something else.
type snapshotter struct {
	git *gitx.Git
	in  keptGit
	Snapshot
	wt      gitx.Worktree
	to      Snapshot        // what it becomes
	tracked map[string]bool // by the index
	loose   map[string]bool
}

func (k *snapshotter) keep(ctx context.Context, s *session.Session, base string, n, to int) (err error) {
	if k.Tip, _, err = k.git.BranchTip(ctx, k.wt.Common, k.wt.Branch); err != nil {
		return err
	}
	dry := k.git.IsDryRun()
	if !dry {
		if err := k.to.give(ctx, k.in, k.wt.Common, to); err != nil {
			return err
		}
	}
	changed, err := k.survey(ctx)
	if err == nil && !dry {
		changed, err = k.convert(ctx, changed)
	}
	k.list()
	if err == nil && !dry {
		err = k.keepIgnored(ctx)
	}
	if err != nil {
		return err
	}
	index := filepath.Join(UndoDir(s, n), keptIndex)
	if k.Indexed, err = k.keepIndex(ctx, index); err != nil {
		return err
	}
	staged, err := k.commits(ctx, index, changed)
	if err != nil {
		return err
	}
	k.Pack, err = k.in.keep(ctx, base, map[string]string{
		undoRef(n, "tip"): k.Tip, undoRef(n, "files"): k.Files, undoRef(n, "staged"): staged})
	return err
}

// undoRef is the ref of a commit that an undo needs.
func undoRef(n int, name string) string { return path.Join("undo", strconv.Itoa(n), name) }

// give copies the objects of undo/<n> back into the repository at common.
func (k Snapshot) give(ctx context.Context, in keptGit, common string, n int) error {
	if k.Pack == "" {
		return nil
	}
	return in.give(ctx, common, undoRef(n, "tip"), undoRef(n, "files"), undoRef(n, "staged"))
}

// keepIgnored notes the ignored files if the new state has other ignore rules. Uncommitted rules are loose files.
func (k *snapshotter) keepIgnored(ctx context.Context) error {
	ignored, err := k.git.IgnoredBefore(ctx, k.wt, k.to.Files)
	isRules := func(p []byte) bool { return path.Base(string(p)) == ".gitignore" }
	if err == nil && len(ignored) == 0 && slices.ContainsFunc(k.Loose, isRules) {
		ignored, err = held.IgnoredIn(ctx, k.git, k.wt)
	}
	for _, p := range ignored {
		k.Ignored = append(k.Ignored, []byte(strings.TrimSuffix(p, "/")))
	}
	return err
}

// keepIndex writes a copy of the worktree's index, whole even where git keeps it in two files.
func (k *snapshotter) keepIndex(ctx context.Context, to string) (there bool, err error) {
	if k.git.IsDryRun() {
		return !gitx.Absent(filepath.Join(k.wt.AdminDir, "index")), nil
	}
	index, err := gitx.CopyIndex(k.wt, to)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !bytes.Contains(index, []byte("link")) {
		return true, err
	}
	c := k.git.InEntry(k.wt, "update-index", "--no-split-index")
	c.Vars = append(c.Vars, "GIT_INDEX_FILE="+to)
	_, err = k.git.Mutate(ctx, c)
	return true, err
}

// commits makes commits of contents that the branch lacks: Files, and one of the staged contents, which is Files if
// they do not differ.
func (k *snapshotter) commits(ctx context.Context, index string, changed []string) (staged string, err error) {
	k.Files = k.Tip
	if k.git.IsDryRun() || !k.Indexed {
		return k.Tip, nil
	}
	blobs, differs, err := k.stagedBlobs(ctx, index)
	if err != nil {
		return "", err
	}
	if len(changed) == 0 && !differs {
		return k.Tip, nil
	}
	own := filepath.Join(k.in.dir, "index")
	if err := jsonl.CopyFile(index, own); err != nil {
		return "", err
	}
	defer os.Remove(own)
	if len(changed) > 0 {
		c := k.in.command("update-index", "-z", "--force-remove", "--stdin")
		c.Stdin = []byte(strings.Join(changed, "\x00") + "\x00")
		if _, err := k.git.Mutate(ctx, c); err != nil {
			return "", err
		}
	}
	if k.Files, err = k.in.commitOf(ctx, k.Tip, k.in.command("write-tree")); err != nil || len(blobs) == 0 {
		return k.Files, err
	}
	c := k.in.command("mktree", "-z")
	var in strings.Builder
	for i, id := range blobs {
		in.WriteString("100644 blob " + id + "\t" + strconv.Itoa(i) + "\x00")
	}
	c.Stdin = []byte(in.String())
	return k.in.commitOf(ctx, k.Tip, c)
}

// stagedBlobs lists the blobs in an index that the tip lacks, including those of a conflict. differs is true even
// without blobs if the index only deletes paths.
func (k *snapshotter) stagedBlobs(ctx context.Context, index string) (ids []string, differs bool, err error) {
	add := func(mode, id string) {
		if mode != "160000" && strings.Trim(id, "0") != "" {
			ids = append(ids, id)
		}
	}
	list := func(args ...string) ([]string, error) {
		c := k.in.command(args...)
		c.Vars = append(c.Vars, "GIT_INDEX_FILE="+index)
		return k.git.List(ctx, c)
	}
	staged, err := list("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", k.Tip, "--")
	if err != nil {
		return nil, false, err
	}
	for i, f := range staged { // ":<mode> <mode> <id> <id> <status>", then the path
		if words := strings.Fields(f); i%2 == 0 && len(words) == 5 {
			add(words[1], words[3])
		}
	}
	unmerged, err := list("ls-files", "-z", "--unmerged")
	if err != nil {
		return nil, false, err
	}
	for _, f := range unmerged {
		if words := strings.Fields(f); len(words) > 2 {
			add(words[0], words[1])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), len(staged) > 0, nil
}

// Restore restores the branch and the tracked files of undo/<n>. Until the loose files are restored, it may be
// repeated.
func Restore(ctx context.Context, h *held.Handle, wt gitx.Worktree, k Snapshot, n int) error {
	if k.Pack != "" {
		in, err := openKept(h)
		if err == nil {
			err = k.give(ctx, in, h.Common, n)
		}
		if err != nil {
			return err
		}
	}
	if err := h.Git.Reset(ctx, wt, k.Files, true); err != nil || k.Files == k.Tip {
		return err
	}
	return h.Git.Reset(ctx, wt, k.Tip, false)
}

// RestoreIndex puts the index that was kept in dir in the place of the worktree's.
func RestoreIndex(ctx context.Context, g *gitx.Git, wt gitx.Worktree, k Snapshot, dir string) error {
	if g.IsDryRun() {
		return nil
	}
	to := filepath.Join(wt.AdminDir, "index")
	if !k.Indexed {
		return os.RemoveAll(to)
	}
	data, err := os.ReadFile(filepath.Join(dir, keptIndex))
	if err == nil {
		err = os.WriteFile(to+".tilth", data, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".tilth", to)
	}
	if err != nil {
		return err
	}
	// What git knows of the files is not so any more. Exit 1 says that some differ, which they may.
	if err := g.ClearInProgress(ctx, wt); err != nil {
		return err
	}
	_, err = g.Mutate(ctx, g.InWorktree(wt, "update-index", "-q", "--refresh"))
	if gitx.ExitCode(err) == 1 {
		err = nil
	}
	return cmp.Or(err, restoreOutside(ctx, g, wt, k))
}

// restoreOutside writes the files that stood outside of the patterns of a sparse checkout: git left them out, and the
// index that was kept has them as there. Those of Files that are not there are no others.
func restoreOutside(ctx context.Context, g *gitx.Git, wt gitx.Worktree, k Snapshot) error {
	gone, err := g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--deleted"))
	if err != nil || len(gone) == 0 {
		return err
	}
	had, err := g.List(ctx, g.InEntry(wt, "ls-tree", "-r", "-z", "--name-only", "--full-tree", k.Files))
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range had {
		there[name] = true
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { return !there[name] })
	if len(gone) == 0 {
		return nil
	}
	c := g.InWorktree(wt, "checkout-index", "-z", "--stdin")
	c.Stdin = []byte(strings.Join(gone, "\x00") + "\x00")
	_, err = g.Mutate(ctx, c)
	return err
}
