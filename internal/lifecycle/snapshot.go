package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// snapshot is a worktree as it is: branch, index and files, so that it can be made so again. Commits and contents are
// in kept.git, the index is in keptIndex, in a directory. What git has no content of are the Loose files, which stay
// where they are: the caller moves them.
type snapshot struct {
	Tip string `json:"tip"` // of the branch
	// Files is a commit of the tracked files that are as the index has them, on Tip; Tip where that is all of its own.
	Files string `json:"files"`
	// Loose are the other files, relative to the worktree: changed, or untracked and not ignored. A directory stands
	// for all that is in it. They are bytes, because names need not be UTF-8.
	Loose [][]byte `json:"loose,omitempty"`
	// Ignored are files that are ignored here and may not be where one went from here: they stay in the worktree.
	Ignored [][]byte `json:"ignored,omitempty"`
	// Pack is the pack of kept.git that has what the user's repository may lose, "" where there is nothing.
	Pack    string `json:"pack,omitempty"`
	Bundled bool   `json:"bundled,omitempty"` // an earlier build has that in a bundle of its own
	Indexed bool   `json:"indexed"`           // there was an index
}

const keptIndex = "index"

// snapshotter writes a worktree down, before it becomes something else.
type snapshotter struct {
	git *gitx.Git
	in  keptGit
	snapshot
	wt      gitx.Worktree
	to      snapshot        // what it becomes
	tracked map[string]bool // by the index
	loose   map[string]bool
}

// keep writes the worktree down in the directory undo/<n>. What it becomes was kept in that of to, or is a commit where
// that is 0. base is a commit that the repository has whatever becomes of the branch. Neither the branch nor the
// worktree is changed.
func (k *snapshotter) keep(ctx context.Context, s *session.Session, base string, n, to int) (err error) {
	if k.Tip, _, err = k.git.BranchTip(ctx, k.wt.Common, k.wt.Branch); err != nil {
		return err
	}
	dry := k.git.IsDryRun()
	if !dry {
		if err := k.to.give(ctx, k.in, s, k.wt.Common, to); err != nil {
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
	index := filepath.Join(undoDir(s, n), keptIndex)
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

// give brings what was kept as undo/<n> back into the repository at common.
func (k snapshot) give(ctx context.Context, in keptGit, s *session.Session, common string, n int) error {
	if k.Bundled {
		return unbundle(ctx, in.git, common, filepath.Join(undoDir(s, n), "git.bundle"))
	}
	if k.Pack == "" {
		return nil
	}
	return in.give(ctx, common, undoRef(n, "tip"), undoRef(n, "files"), undoRef(n, "staged"))
}

// keepIgnored notes what is ignored, where other rules hold in what the worktree becomes. Rules that no commit has go
// with the loose files.
func (k *snapshotter) keepIgnored(ctx context.Context) error {
	ignored, err := k.git.IgnoredBefore(ctx, k.wt, k.to.Files)
	isRules := func(p []byte) bool { return path.Base(string(p)) == ".gitignore" }
	if err == nil && len(ignored) == 0 && slices.ContainsFunc(k.Loose, isRules) {
		ignored, err = ignoredIn(ctx, k.git, k.wt)
	}
	for _, p := range ignored {
		k.Ignored = append(k.Ignored, []byte(strings.TrimSuffix(p, "/")))
	}
	return err
}

// survey finds the loose files, without those that stay, and among the paths of the index those whose files are not as
// it has them.
func (k *snapshotter) survey(ctx context.Context) (changed []string, err error) {
	entries, err := k.git.List(ctx, k.git.InWorktree(k.wt, "ls-files", "-z", "-v", "--cached", "--modified",
		"--deleted", "--others", "--exclude-standard", "--directory"))
	if err != nil {
		return nil, err
	}
	var ignored, dirs []string
	stays := map[string]bool{}
	for _, p := range k.to.Ignored {
		ignored, stays[string(p)] = append(ignored, string(p)), true
	}
	for _, f := range entries {
		tag, name, _ := strings.Cut(f, " ")
		switch {
		case tag == "?" && within(name, stays):
			continue
		case tag == "?" && strings.HasSuffix(name, "/"):
			dirs = append(dirs, strings.TrimSuffix(name, "/"))
			continue
		case tag == "?":
			k.loose[name] = true
			continue
		case strings.EqualFold(tag, "H") && !unicode.IsLower(rune(tag[0])):
			k.tracked[name] = true
			continue
		}
		// Changed, gone, unmerged, or of a kind that git was told not to look at.
		k.tracked[name] = true
		changed = append(changed, name)
		if !gone(filepath.Join(k.wt.Path, name)) {
			k.loose[name] = true
		}
	}
	if len(dirs) > 0 {
		now, err := ignoredIn(ctx, k.git, k.wt)
		if err != nil {
			return nil, err
		}
		ignored = append(ignored, now...)
		for _, dir := range dirs {
			if err := k.takeDir(dir, ignored); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// convert adds the files to those that are changed, and loose, which go when the worktree becomes to, and which git may
// write in other bytes: line ends, an encoding or a filter lie between them and what the index has. So is a submodule
// that to does not have: git leaves its directory where it is. What is in the way of files that come is displaced.
func (k *snapshotter) convert(ctx context.Context, changed []string) ([]string, error) {
	differ, err := k.git.List(ctx, k.git.InWorktree(k.wt, "diff-index", "--cached", "-z", "--name-status",
		"--no-renames", k.to.Files, "--"))
	if err != nil {
		return nil, err
	}
	var names, modules, come []string
	for f := range slices.Chunk(differ, 2) { // status, path
		name := f[len(f)-1]
		fi, err := os.Lstat(filepath.Join(k.wt.Path, name))
		switch {
		case f[0] == "D":
			come = append(come, name)
		case err != nil || !k.tracked[name]:
		case fi.Mode().IsRegular():
			names = append(names, name)
		case fi.IsDir() && (f[0] == "A" || f[0] == "T"):
			modules = append(modules, name)
		}
	}
	if len(names) > 0 {
		if names, err = k.converts(ctx, names); err != nil {
			return nil, err
		}
	}
	names = append(names, modules...)
	for _, name := range names {
		k.loose[name] = true
	}
	changed = append(changed, names...)
	slices.Sort(changed)
	return slices.Compact(changed), k.displace(ctx, come)
}

// converts are those of the files that git may convert when it writes them.
func (k *snapshotter) converts(ctx context.Context, names []string) (some []string, err error) {
	auto, err := k.git.Line(ctx, k.git.InEntry(k.wt, "config", "--default", "false", "--get", "core.autocrlf"))
	if err != nil {
		return nil, err
	}
	if slices.Contains([]string{"true", "input", "yes", "on", "1"}, strings.ToLower(auto)) {
		return names, nil
	}
	c := k.git.InWorktree(k.wt, "check-attr", "-z", "--stdin", "text", "eol", "crlf", "ident", "filter",
		"working-tree-encoding")
	c.Stdin = []byte(strings.Join(names, "\x00") + "\x00")
	attrs, err := k.git.List(ctx, c)
	if err != nil {
		return nil, err
	}
	for f := range slices.Chunk(attrs, 3) { // path, attribute, value
		if len(f) == 3 && f[2] != "unspecified" && f[2] != "unset" {
			some = append(some, f[0])
		}
	}
	return slices.Compact(some), nil
}

// takeDir makes an untracked directory loose: as a whole, or, where something in it is ignored, what is not.
func (k *snapshotter) takeDir(dir string, ignored []string) error {
	if slices.ContainsFunc(ignored, func(p string) bool { return strings.TrimSuffix(p, "/") == dir }) {
		return nil
	}
	if !slices.ContainsFunc(ignored, func(p string) bool { return strings.HasPrefix(p, dir+"/") }) {
		k.loose[dir] = true
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(k.wt.Path, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := k.takeDir(path.Join(dir, e.Name()), ignored); err != nil {
			return err
		}
	}
	return nil
}

// list puts the loose files in order, without those that lie in a directory that is loose itself.
func (k *snapshotter) list() {
	k.Loose = nil
	for name := range k.loose {
		if !within(path.Dir(name), k.loose) {
			k.Loose = append(k.Loose, []byte(name))
		}
	}
	slices.SortFunc(k.Loose, bytes.Compare)
}

// within reports whether a path, or a directory that it lies in, is in the set.
func within(name string, set map[string]bool) bool {
	for ; name != "." && name != "/"; name = path.Dir(name) {
		if set[name] {
			return true
		}
	}
	return false
}

// keepIndex writes a copy of the worktree's index, whole even where git keeps it in two files.
func (k *snapshotter) keepIndex(ctx context.Context, to string) (there bool, err error) {
	if k.git.IsDryRun() {
		return !gone(filepath.Join(k.wt.AdminDir, "index")), nil
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

// commits makes the commits whose contents the branch's own do not hold: Files, and one of what was staged, which is
// Files where nothing else was.
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
	if err := copyFile(index, own); err != nil {
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

// stagedBlobs lists the contents in an index that the tip has not, those of a conflict included. The two may differ
// without any: in what was taken out of the index.
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

// displace makes loose what is ignored and would be overwritten when the worktree becomes to: by a tracked file, which
// names are, or by a loose one.
func (k *snapshotter) displace(ctx context.Context, names []string) error {
	for _, name := range k.to.Loose {
		names = append(names, string(name))
	}
	var ignored []string
	for _, name := range names {
		for at := name; at != "."; at = path.Dir(at) {
			fi, err := os.Lstat(filepath.Join(k.wt.Path, at))
			switch {
			case err != nil || k.tracked[at] || at != name && fi.IsDir():
				continue
			case !fi.IsDir():
				k.loose[at] = true
				continue
			}
			if ignored == nil {
				if ignored, err = ignoredIn(ctx, k.git, k.wt); err != nil {
					return err
				}
			}
			for _, p := range ignored {
				if p = strings.TrimSuffix(p, "/"); p == at || strings.HasPrefix(p, at+"/") {
					k.loose[p] = true
				}
			}
		}
	}
	return nil
}

// restoreFiles makes the branch what it was when the worktree was kept, and the files too, but for the loose ones. Its
// commits are in the repository. Until the loose files are brought back, it may be done twice.
func restoreFiles(ctx context.Context, g *gitx.Git, wt gitx.Worktree, k snapshot) error {
	if err := g.Reset(ctx, wt, k.Files, true); err != nil {
		return err
	}
	if k.Files == k.Tip {
		return nil
	}
	return g.Reset(ctx, wt, k.Tip, false)
}

// restoreIndex puts the index that was kept in dir in the place of the worktree's.
func restoreIndex(ctx context.Context, g *gitx.Git, wt gitx.Worktree, k snapshot, dir string) error {
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
		return nil
	}
	return err
}

// gone reports whether nothing is at path. A path that cannot be looked at is not gone.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
