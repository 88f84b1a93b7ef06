package gitx

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
	"unicode"
)

// Kept is a worktree as it is: branch, index and files, so that it can be made so again. Commits and contents are in
// keptBundle, the index is in keptIndex, both in one directory. What git has no content of are the Loose files, which
// stay where they are: the caller moves them.
type Kept struct {
	Tip string `json:"tip"` // of the branch
	// Files is a commit of the tracked files that are as the index has them, on Tip; Tip where that is all of its own.
	Files string `json:"files"`
	// Loose are the other files, relative to the worktree: changed, or untracked and not ignored. A directory stands
	// for all that is in it. They are bytes, because names need not be UTF-8.
	Loose [][]byte `json:"loose,omitempty"`
	// Ignored are files that are ignored here and may not be where one went from here: they stay in the worktree.
	Ignored [][]byte `json:"ignored,omitempty"`
	Bundled bool     `json:"bundled"` // there is a bundle
	Indexed bool     `json:"indexed"` // there was an index

	tracked map[string]bool // by the index
	loose   map[string]bool
}

const (
	keptBundle = "git.bundle"
	keptIndex  = "index"
)

// keptBundlePath is the bundle of a worktree that was kept in dir.
func keptBundlePath(dir string) string { return filepath.Join(dir, keptBundle) }

// Keep writes a worktree down in dir, before it becomes to, which was kept in toDir or is a commit. base is a commit
// that the repository has whatever becomes of the branch. No ref is changed, nor is the worktree.
func (g *Git) Keep(ctx context.Context, wt Worktree, base, dir string, to Kept, toDir string) (Kept, error) {
	k := Kept{tracked: map[string]bool{}, loose: map[string]bool{}}
	var err error
	if k.Tip, _, err = g.BranchTip(ctx, wt.Common, wt.Branch); err != nil {
		return k, err
	}
	if to.Bundled && !g.dry {
		if err := g.Unbundle(ctx, wt.Common, keptBundlePath(toDir)); err != nil {
			return k, err
		}
	}
	if !g.dry {
		if k.Ignored, err = g.ignoredPaths(ctx, wt, to.Files); err != nil {
			return k, err
		}
	}
	changed, err := k.survey(ctx, g, wt, to.Ignored)
	if err == nil && !g.dry {
		changed, err = k.convert(ctx, g, wt, to, changed)
	}
	if err == nil && !g.dry {
		err = k.displace(ctx, g, wt, to)
	}
	if err != nil {
		return k, err
	}
	k.list()
	s, err := g.NewScratch(wt.Common, filepath.Join(dir, "scratch"))
	if err != nil {
		return k, err
	}
	if k.Indexed, err = g.keepIndex(ctx, wt, filepath.Join(dir, keptIndex)); err != nil {
		return k, err
	}
	staged, err := k.commits(ctx, s, wt, changed)
	if err != nil {
		return k, err
	}
	k.Bundled = slices.ContainsFunc([]string{k.Tip, k.Files, staged}, func(sha string) bool { return sha != base })
	commits := map[string]string{"tip": k.Tip, "files": k.Files, "staged": staged}
	if err := s.Bundle(ctx, keptBundlePath(dir), base, commits); err != nil {
		return k, err
	}
	return k, s.Remove()
}

// ignoredPaths is IgnoredBefore for a journal.
func (g *Git) ignoredPaths(ctx context.Context, wt Worktree, sha string) (paths [][]byte, err error) {
	all, err := g.IgnoredBefore(ctx, wt, sha)
	for _, p := range all {
		paths = append(paths, []byte(strings.TrimSuffix(p, "/")))
	}
	return paths, err
}

// survey finds the loose files, without those that stay, and among the paths of the index those whose files are not as
// it has them.
func (k *Kept) survey(ctx context.Context, g *Git, wt Worktree, stay [][]byte) (changed []string, err error) {
	out, err := g.Read(ctx, g.InWorktree(wt, "ls-files", "-z", "-v", "--cached", "--modified", "--deleted", "--others",
		"--exclude-standard", "--directory"))
	if err != nil {
		return nil, err
	}
	var ignored, dirs []string
	stays := map[string]bool{}
	for _, p := range stay {
		ignored, stays[string(p)] = append(ignored, string(p)), true
	}
	for _, f := range fields(out) {
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
		if !absent(filepath.Join(wt.Path, name)) {
			k.loose[name] = true
		}
	}
	if len(dirs) > 0 {
		now, err := g.ignored(ctx, wt)
		if err != nil {
			return nil, err
		}
		ignored = append(ignored, now...)
		for _, dir := range dirs {
			if err := k.takeDir(wt.Path, dir, ignored); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// convert adds the files to those that are changed, and loose, which go when the worktree becomes to, and which git may
// write in other bytes: line ends, an encoding or a filter lie between them and what the index has. So is a submodule
// that to does not have: git leaves its directory where it is.
func (k *Kept) convert(ctx context.Context, g *Git, wt Worktree, to Kept, changed []string) ([]string, error) {
	out, err := g.Read(ctx, g.InWorktree(wt, "diff-index", "--cached", "-z", "--name-status", "--no-renames",
		to.Files, "--"))
	if err != nil {
		return nil, err
	}
	var names, modules []string
	for f := range slices.Chunk(fields(out), 2) { // status, path
		name := f[len(f)-1]
		fi, err := os.Lstat(filepath.Join(wt.Path, name))
		switch {
		case err != nil || !k.tracked[name]:
		case fi.Mode().IsRegular():
			names = append(names, name)
		case fi.IsDir() && (f[0] == "A" || f[0] == "T"):
			modules = append(modules, name)
		}
	}
	if len(names) > 0 {
		if names, err = g.converts(ctx, wt, names); err != nil {
			return nil, err
		}
	}
	names = append(names, modules...)
	for _, name := range names {
		k.loose[name] = true
	}
	changed = append(changed, names...)
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// converts are those of the files that git may convert when it writes them.
func (g *Git) converts(ctx context.Context, wt Worktree, names []string) (some []string, err error) {
	out, err := g.Read(ctx, g.InWorktree(wt, "config", "--default", "false", "--get", "core.autocrlf"))
	if err != nil {
		return nil, err
	}
	if auto := strings.ToLower(strings.TrimSpace(string(out))); auto == "true" || auto == "input" || auto == "yes" ||
		auto == "on" || auto == "1" {
		return names, nil
	}
	c := g.InWorktree(wt, "check-attr", "-z", "--stdin", "text", "eol", "crlf", "ident", "filter",
		"working-tree-encoding")
	c.Stdin = []byte(strings.Join(names, "\x00") + "\x00")
	if out, err = g.Read(ctx, c); err != nil {
		return nil, err
	}
	for f := range slices.Chunk(fields(out), 3) { // path, attribute, value
		if len(f) == 3 && f[2] != "unspecified" && f[2] != "unset" {
			some = append(some, f[0])
		}
	}
	return slices.Compact(some), nil
}

// takeDir makes an untracked directory loose: as a whole, or, where something in it is ignored, what is not.
func (k *Kept) takeDir(top, dir string, ignored []string) error {
	if slices.ContainsFunc(ignored, func(p string) bool { return strings.TrimSuffix(p, "/") == dir }) {
		return nil
	}
	if !slices.ContainsFunc(ignored, func(p string) bool { return strings.HasPrefix(p, dir+"/") }) {
		k.loose[dir] = true
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(top, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := k.takeDir(top, path.Join(dir, e.Name()), ignored); err != nil {
			return err
		}
	}
	return nil
}

// list puts the loose files in order, without those that lie in a directory that is loose itself.
func (k *Kept) list() {
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
func (g *Git) keepIndex(ctx context.Context, wt Worktree, to string) (there bool, err error) {
	if g.dry {
		return !absent(filepath.Join(wt.AdminDir, "index")), nil
	}
	index, err := copyIndex(wt, to)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !bytes.Contains(index, splitIndex) {
		return true, err
	}
	c := g.InWorktree(wt, "update-index", "--no-split-index")
	c.Vars = append(c.Vars, "GIT_INDEX_FILE="+to)
	_, err = g.Mutate(ctx, c)
	return true, err
}

// copyIndex copies the file of a worktree's index, with its time: by that git tells a file that was changed in the same
// tick as the index was written.
func copyIndex(wt Worktree, to string) (index []byte, err error) {
	from := filepath.Join(wt.AdminDir, "index")
	if index, err = os.ReadFile(from); err != nil {
		return nil, err
	}
	if fi, serr := os.Stat(from); serr == nil {
		defer func() { _ = os.Chtimes(to, fi.ModTime(), fi.ModTime()) }()
	}
	return index, os.WriteFile(to, index, 0o600)
}

// commits makes the commits whose contents the branch's own do not hold: Files, and one of what was staged, which is
// Files where nothing else was.
func (k *Kept) commits(ctx context.Context, s *Scratch, wt Worktree, changed []string) (staged string, err error) {
	k.Files = k.Tip
	if s.git.dry || !k.Indexed {
		return k.Tip, nil
	}
	index := filepath.Join(filepath.Dir(s.dir), keptIndex)
	blobs, differs, err := k.stagedBlobs(ctx, s, index)
	if err != nil {
		return "", err
	}
	if len(changed) == 0 && !differs {
		return k.Tip, nil
	}
	if err := s.copyFile(index, "index"); err != nil {
		return "", err
	}
	if len(changed) > 0 {
		c := s.command("update-index", "-z", "--force-remove", "--stdin")
		c.Stdin = []byte(strings.Join(changed, "\x00") + "\x00")
		if _, err := s.git.Mutate(ctx, c); err != nil {
			return "", err
		}
	}
	if k.Files, err = s.commitOf(ctx, k.Tip, s.command("write-tree")); err != nil || len(blobs) == 0 {
		return k.Files, err
	}
	c := s.command("mktree", "-z")
	var in strings.Builder
	for i, id := range blobs {
		in.WriteString("100644 blob " + id + "\t" + strconv.Itoa(i) + "\x00")
	}
	c.Stdin = []byte(in.String())
	return s.commitOf(ctx, k.Tip, c)
}

// commitOf makes a commit of the tree that a command makes.
func (s *Scratch) commitOf(ctx context.Context, parent string, c Command) (string, error) {
	tree, err := s.git.Mutate(ctx, c)
	if err != nil {
		return "", err
	}
	return s.Commit(ctx, tree, parent, "kept\n")
}

func (s *Scratch) copyFile(from, name string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, name), data, 0o600)
}

// stagedBlobs lists the contents in an index that the tip has not, those of a conflict included. The two may differ
// without any: in what was taken out of the index.
func (k *Kept) stagedBlobs(ctx context.Context, s *Scratch, index string) (ids []string, differs bool, err error) {
	add := func(mode, id string) {
		if mode != gitlink && strings.Trim(id, "0") != "" {
			ids = append(ids, id)
		}
	}
	c := s.command("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", k.Tip, "--")
	c.Vars = append(c.Vars, "GIT_INDEX_FILE="+index)
	out, err := s.git.Read(ctx, c)
	if err != nil {
		return nil, false, err
	}
	differs = len(out) > 0
	for i, f := range fields(out) { // ":<mode> <mode> <id> <id> <status>", then the path
		if words := strings.Fields(f); i%2 == 0 && len(words) == 5 {
			add(words[1], words[3])
		}
	}
	c = s.command("ls-files", "-z", "--unmerged")
	c.Vars = append(c.Vars, "GIT_INDEX_FILE="+index)
	if out, err = s.git.Read(ctx, c); err != nil {
		return nil, false, err
	}
	for _, f := range fields(out) {
		if words := strings.Fields(f); len(words) > 2 {
			add(words[0], words[1])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), differs, nil
}

// displace makes loose what is ignored and would be overwritten when the worktree becomes to: by a tracked file, or by
// a loose one.
func (k *Kept) displace(ctx context.Context, g *Git, wt Worktree, to Kept) error {
	out, err := g.Read(ctx, g.InWorktree(wt, "diff-index", "--cached", "-z", "--name-only", "--no-renames",
		"--diff-filter=D", to.Files, "--"))
	if err != nil {
		return err
	}
	names := fields(out)
	for _, name := range to.Loose {
		names = append(names, string(name))
	}
	var ignored []string
	for _, name := range names {
		for at := name; at != "."; at = path.Dir(at) {
			fi, err := os.Lstat(filepath.Join(wt.Path, at))
			switch {
			case err != nil || k.tracked[at] || at != name && fi.IsDir():
				continue
			case !fi.IsDir():
				k.loose[at] = true
				continue
			}
			if ignored == nil {
				if ignored, err = g.ignored(ctx, wt); err != nil {
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

// Unkeep makes the branch what it was when the worktree was kept in dir, and the files too, but for the loose ones.
// Until these are brought back, it may be done twice.
func (g *Git) Unkeep(ctx context.Context, wt Worktree, k Kept, dir string) error {
	if k.Bundled {
		if err := g.Unbundle(ctx, wt.Common, keptBundlePath(dir)); err != nil {
			return err
		}
	}
	if err := g.HardReset(ctx, wt, k.Files); err != nil {
		return err
	}
	if k.Files == k.Tip {
		return nil
	}
	return g.SoftReset(ctx, wt, k.Tip)
}

// UnkeepIndex puts the index that was kept in dir in the place of the worktree's.
func (g *Git) UnkeepIndex(ctx context.Context, wt Worktree, k Kept, dir string) error {
	if g.dry {
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
	err = g.change(ctx, wt, "update-index", "-q", "--refresh")
	if ExitCode(err) == 1 {
		return nil
	}
	return err
}
