package held

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Snapshot is the state of a worktree for a later restore: branch, index and files. kept.git has all of it as two
// commits. The tree of "whole" has the archive state.tar with the Loose files, the index and directories of the
// session; its message is the caller's note. "staged" has the blobs of the index, on the branch's tip. An operation
// that replaces the worktree first packs them. At its end it gives them refs below refs/undo/<n>/, which makes them an
// undo.
type Snapshot struct {
	Tip string `json:"tip"` // tip of the branch
	// Loose are the files, relative to the worktree, that a checkout of Tip does not create: changed, deleted, or
	// untracked and not ignored. A directory includes its contents. They are bytes, because names need not be UTF-8.
	Loose [][]byte `json:"loose,omitempty"`
	// Ignored are the ignored files, if the state that replaced this one has other ignore rules. A restore leaves them
	// in the worktree.
	Ignored [][]byte `json:"ignored,omitempty"`
}

// SnapshotRequest selects the state to save before a worktree changes.
type SnapshotRequest struct {
	Number  int                // number of the snapshot
	Becomes Snapshot           // the next state of the worktree
	Of      int                // its number; 0 for a commit
	Base    string             // a commit that the repository always has
	Dirs    []string           // directories of the session
	Note    func(Snapshot) any // returns the message, as JSON
}

const (
	keptIndex = session.KeptGitDir + "/" + tempPrefix + "index" // the worktree's index in the archive
	stateFile = "state.tar"
	wholeRef  = "whole"
	stagedRef = "staged"
)

// TakeSnapshot saves a worktree and directories of the session, and returns the commits by the names of their refs. It
// changes no files and no branch.
func TakeSnapshot(ctx context.Context, h *Handle, wt gitx.Worktree, r SnapshotRequest) (Snapshot, map[string]string,
	error) {
	in, err := openKept(h)
	if err != nil {
		return Snapshot{}, nil, err
	}
	k := snapshotter{git: h.Git, in: in, wt: wt, to: r.Becomes, tracked: map[string]bool{}, loose: map[string]bool{}}
	refs, err := k.keep(ctx, h.S, r)
	return k.Snapshot, refs, err
}

// snapshotter saves a worktree before it changes.
type snapshotter struct {
	git *gitx.Git
	in  keptGit
	Snapshot
	wt      gitx.Worktree
	to      Snapshot        // the result
	tracked map[string]bool // tracked by the index
	loose   map[string]bool
}

func (k *snapshotter) keep(ctx context.Context, s *session.Session, r SnapshotRequest) (refs map[string]string,
	err error) {
	if k.Tip, _, err = k.git.BranchTip(ctx, k.wt.Common, k.wt.Branch); err != nil {
		return nil, err
	}
	dry, owner := k.git.IsDryRun(), undoPack(r.Number)
	if r.Of > 0 && !dry {
		if err := k.in.give(ctx, k.wt.Common, undoRef(r.Of, stagedRef)); err != nil {
			return nil, err
		}
	}
	if dry {
		return nil, k.in.pack(ctx, r.Base, owner, k.Tip)
	}
	index := s.Path(keptIndex)
	if err := cmp.Or(k.keepIndex(ctx, index), k.survey(ctx), k.changes(ctx)); err != nil {
		return nil, err
	}
	staged, err := k.staged(ctx, index)
	if err != nil {
		return nil, err
	}
	k.list()
	if err := k.keepIgnored(ctx); err != nil {
		return nil, err
	}
	whole, err := k.whole(ctx, s, r)
	if err != nil {
		return nil, err
	}
	if err := k.in.pack(ctx, r.Base, owner, staged, whole); err != nil {
		return nil, err
	}
	_, err = k.git.Mutate(ctx, k.in.command("prune-packed", "--quiet"))
	return map[string]string{stagedRef: staged, wholeRef: whole}, err
}

// whole makes the commit with everything outside of git.
func (k *snapshotter) whole(ctx context.Context, s *session.Session, r SnapshotRequest) (string, error) {
	workspace, err := filepath.Rel(s.Dir, k.wt.Path)
	if err != nil {
		return "", err
	}
	paths := append(slices.Clone(r.Dirs), keptIndex)
	for _, p := range k.Loose {
		paths = append(paths, path.Join(workspace, string(p)))
	}
	at := filepath.Join(k.in.dir, tempPrefix+stateFile)
	if err := writeArchive(s.Dir, paths, at); err != nil {
		return "", err
	}
	id, err := k.git.Mutate(ctx, k.in.command("hash-object", "-w", "--no-filters", "--", at))
	if err = errors.Join(err, os.Remove(at)); err != nil {
		return "", err
	}
	c := k.in.command("mktree")
	c.Stdin = fmt.Appendf(nil, "100644 blob %s\t%s\n", id, stateFile)
	tree, err := k.git.Mutate(ctx, c)
	if err != nil {
		return "", err
	}
	return k.in.commit(ctx, tree, k.Tip, string(record.JSON(r.Note(k.Snapshot)))+"\n")
}

// undoRef returns the ref of a commit that an undo needs.
func undoRef(n int, name string) string { return path.Join("undo", strconv.Itoa(n), name) }

// undoPack returns the owner of an undo's pack.
func undoPack(n int) string { return fmt.Sprintf("undo%d", n) }

// Undos lists the numbers of the session's undos, in order.
func Undos(s *session.Session) (numbers []int) {
	entries, _ := os.ReadDir(s.Path(session.KeptGitDir, "refs/undo"))
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// FinishUndo makes a snapshot's commits the undo n.
func FinishUndo(h *Handle, n int, refs map[string]string) error {
	in, err := openKept(h)
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if err == nil {
			err = in.setRef(undoRef(n, name), refs[name])
		}
	}
	return err
}

// UndoNote reads the note of undo n.
func UndoNote(ctx context.Context, g *gitx.Git, s *session.Session, n int) ([]byte, error) {
	commit, err := g.Read(ctx, gitx.InRepo(s.Path(session.KeptGitDir), "cat-file", "commit",
		"refs/"+undoRef(n, wholeRef)))
	_, note, _ := bytes.Cut(commit, []byte("\n\n"))
	return note, err
}

// DropUndo removes an undo: its refs, and the pack that has its commits.
func DropUndo(s *session.Session, n int) error {
	err := proc.RemoveAll(s.Path(session.KeptGitDir, "refs", undoRef(n, "")))
	packs, _ := filepath.Glob(filepath.Join(text.GlobQuote(s.Path(session.KeptGitDir, "objects/pack")),
		"pack-"+undoPack(n)+"-*"))
	for _, pack := range packs {
		err = errors.Join(err, os.Remove(pack))
	}
	return err
}

// keepIgnored notes the ignored files if the new state has other ignore rules. Uncommitted rules are loose files.
func (k *snapshotter) keepIgnored(ctx context.Context) error {
	ignored, err := k.git.IgnoredBefore(ctx, k.wt, k.to.Tip)
	isRules := func(p []byte) bool { return path.Base(string(p)) == ".gitignore" }
	if err == nil && len(ignored) == 0 && slices.ContainsFunc(k.Loose, isRules) {
		ignored, err = ignoredIn(ctx, k.git, k.wt)
	}
	for _, p := range ignored {
		k.Ignored = append(k.Ignored, []byte(strings.TrimSuffix(p, "/")))
	}
	return err
}

// keepIndex writes a copy of the worktree's index in one file, even if git stores it in two. A missing index is empty.
func (k *snapshotter) keepIndex(ctx context.Context, to string) error {
	index, err := gitx.CopyIndex(k.wt, to)
	c := k.git.InEntry(k.wt, "update-index", "--no-split-index")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c = k.git.InEntry(k.wt, "read-tree", "--empty")
	case err != nil || !bytes.Contains(index, []byte("link")):
		return err
	}
	c.Vars = append(c.Vars, "GIT_INDEX_FILE="+to)
	_, err = k.git.Mutate(ctx, c)
	return err
}

// staged makes a commit of the index's blobs that the tip lacks, including those of a conflict. Without such blobs it
// is the tip. The paths that differ become loose.
func (k *snapshotter) staged(ctx context.Context, index string) (string, error) {
	list := func(args ...string) ([]string, error) {
		c := k.in.command(args...)
		c.Vars = append(c.Vars, "GIT_INDEX_FILE="+index)
		return k.git.List(ctx, c)
	}
	tree := k.in.command("mktree", "-z")
	add := func(mode, id string) {
		if mode != "160000" && strings.Trim(id, "0") != "" {
			tree.Stdin = fmt.Appendf(tree.Stdin, "100644 blob %s\t%d\x00", id, len(tree.Stdin))
		}
	}
	differ, err := list("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", k.Tip, "--")
	for f := range slices.Chunk(differ, 2) { // ":<mode> <mode> <id> <id> <status>", then the path
		if words := strings.Fields(f[0]); len(words) == 5 && len(f) == 2 {
			k.loose[f[1]] = true
			add(words[1], words[3])
		}
	}
	if err != nil {
		return "", err
	}
	unmerged, err := list("ls-files", "-z", "--unmerged")
	for _, f := range unmerged {
		if words := strings.Fields(f); len(words) > 2 {
			add(words[0], words[1])
		}
	}
	if err != nil || len(tree.Stdin) == 0 {
		return k.Tip, err
	}
	made, err := k.git.Mutate(ctx, tree)
	if err != nil {
		return "", err
	}
	return k.in.commit(ctx, made, k.Tip, "staged\n")
}

// Restore replaces the state of a worktree, saved in the snapshot was, by undo n or, for 0, by the commit to.Tip. dirs
// are the session's directories in an undo. It may be repeated.
func Restore(ctx context.Context, h *Handle, wt gitx.Worktree, was, to Snapshot, n int, dirs []string) error {
	if err := removeLoose(h, wt, was); err != nil {
		return err
	}
	in, err := openKept(h)
	if err == nil && n > 0 {
		err = in.give(ctx, h.Common, undoRef(n, stagedRef))
	}
	if err == nil {
		err = h.Git.Reset(ctx, wt, to.Tip, true)
	}
	if err != nil || n == 0 || h.Git.IsDryRun() {
		return err
	}
	for _, dir := range dirs {
		err = errors.Join(err, proc.RemoveAll(h.S.Path(dir)))
	}
	if err == nil {
		err = removeLoose(h, wt, to)
	}
	if err != nil {
		return err
	}
	return restoreFiles(ctx, h, in, wt, to, n)
}

// removeLoose removes a snapshot's loose files from the worktree.
func removeLoose(h *Handle, wt gitx.Worktree, k Snapshot) error {
	if h.Git.IsDryRun() || len(k.Loose) == 0 {
		return nil
	}
	root, err := os.OpenRoot(wt.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range k.Loose {
		if err := removeIn(root, string(p)); err != nil {
			return err
		}
	}
	return nil
}

// restoreFiles restores the loose files, the directories of the session and the index of undo n.
func restoreFiles(ctx context.Context, h *Handle, in keptGit, wt gitx.Worktree, k Snapshot, n int) error {
	g, to := h.Git, filepath.Join(wt.AdminDir, "index")
	file, err := g.Mutate(ctx, in.command("unpack-file", "refs/"+undoRef(n, wholeRef)+":"+stateFile))
	if err != nil {
		return err
	}
	file = filepath.Join(in.dir, file)
	if err := errors.Join(extractArchive(h.S.Dir, file), os.Remove(file)); err != nil {
		return err
	}
	index, err := os.ReadFile(h.S.Path(keptIndex))
	if err == nil {
		err = jsonl.Put(to, index, false)
	}
	if err != nil {
		return err
	}
	// The index's stat data is stale. Exit 1 means that some files differ, which is allowed.
	if err := g.ClearInProgress(ctx, wt); err != nil {
		return err
	}
	_, err = g.Mutate(ctx, g.InWorktree(wt, "update-index", "-q", "--refresh"))
	if gitx.ExitCode(err) == 1 {
		err = nil
	}
	return cmp.Or(err, restoreOutside(ctx, g, wt, k))
}

// restoreOutside writes the files outside the patterns of a sparse checkout: git leaves them out, but the saved index
// has them.
func restoreOutside(ctx context.Context, g *gitx.Git, wt gitx.Worktree, k Snapshot) error {
	gone, err := g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--deleted"))
	if err != nil || len(gone) == 0 {
		return err
	}
	loose := map[string]bool{}
	for _, name := range k.Loose {
		loose[string(name)] = true
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { return within(name, loose) })
	if len(gone) == 0 {
		return nil
	}
	c := g.InWorktree(wt, "checkout-index", "-z", "--stdin")
	c.Stdin = []byte(strings.Join(gone, "\x00") + "\x00")
	_, err = g.Mutate(ctx, c)
	return err
}
