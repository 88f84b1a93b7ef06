package gitx

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// patchFlags fix the format of a change and its patch, whatever the settings.
var patchFlags = []string{
	"--find-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/",
	"--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--submodule=short", "--ignore-submodules=none",
	"--no-relative", "-O/dev/null",
}

// Diff returns the patch between two commits or trees, cut at a line end to at most max bytes (0: no limit). With from
// "", it is the patch of the commit to against its first parent. With paths it covers only these, treats them as text,
// and detects no renames. The patch is raw bytes, because contents need not be UTF-8. The user's settings do not
// affect it.
func (g *Git) Diff(
	ctx context.Context, common, from, to string, max int64, paths ...string,
) (patch []byte, cut bool, err error) {
	args := append([]string{"--literal-pathspecs", "diff-tree", "-r", "--patch"}, patchFlags...)
	if len(paths) > 0 {
		args = append(args, "--no-renames", "--text")
	}
	if from == "" {
		args = append(args, "--root", "--diff-merges=first-parent", "--no-commit-id", "--end-of-options", to)
	} else {
		args = append(args, "--end-of-options", from, to)
	}
	c := Command{Dir: common, Objects: true, Args: append(append(args, "--"), paths...)}
	if max > 0 {
		c.Limit = max + 1 // one more byte shows that there is more
	}
	if patch, err = g.Read(ctx, c); err != nil {
		return nil, false, err
	}
	patch, cut = cutPatch(patch, max)
	return patch, cut, nil
}

// SamePatch reports whether two changes, each from one commit or tree to another, have the same git patch-id.
func (g *Git) SamePatch(ctx context.Context, common string, a, b [2]string) (bool, error) {
	var ids [2]string
	for i, c := range [2][2]string{a, b} {
		patch, _, err := g.Diff(ctx, common, c[0], c[1], 0)
		if err != nil {
			return false, err
		}
		if bytes.Contains(patch, []byte("\nBinary files ")) {
			return false, nil // their patch-ids may be equal
		}
		id := InRepo(common, "patch-id", "--stable")
		id.Stdin = patch
		if ids[i], err = g.Line(ctx, id); err != nil {
			return false, err
		}
	}
	return ids[0] != "" && ids[0] == ids[1], nil
}

// asTheyAre makes c read the objects of the repository at c.Dir through a temporary bare git directory without config,
// refs, attributes, replacements or grafts. A worker can write attributes and replacements. Attributes hide texts ("*
// -diff" in info/attributes, which no setting turns off), and replacements show other objects than a clone gets.
func asTheyAre(c *Command) (remove func(), err error) {
	dir, remove, err := proc.TempDir()
	if err != nil {
		return nil, err
	}
	if err := emptyGitDir(c.Dir, dir); err != nil {
		remove()
		return nil, err
	}
	c.Args = append([]string{"--bare", "-c", "core.attributesFile=" + os.DevNull}, c.Args...)
	c.Vars = append([]string{
		"GIT_DIR=" + dir, "GIT_OBJECT_DIRECTORY=" + filepath.Join(c.Dir, "objects"), "GIT_ATTR_NOSYSTEM=1",
	}, c.Vars...)
	return remove, nil
}

// usesSHA256 reports whether a repository's object ids are SHA-256.
func usesSHA256(common string) bool {
	config, _ := readFile(filepath.Join(common, "config"))
	for line := range strings.Lines(strings.ToLower(string(config))) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "objectformat" {
			return strings.TrimSpace(value) == "sha256"
		}
	}
	return false
}

// FileChange is one file that differs between two trees.
type FileChange struct {
	Path    string
	OldPath string // for a renamed file
	Status  string // A, D, M, T (type) or R
	Added   int    // number of lines; 0 if Binary
	Deleted int
	Binary  bool
	Mode    string // new mode in octal; 000000 for a deleted file
	OID     string // new object
}

// listLimit limits the list of changed files that Changes reads before the patch.
const listLimit = 32 << 20

// Changes lists the differences between two commits or trees, sorted by path as in git, and returns their patch like
// Diff, with at most max bytes. With max 0 there is no patch, and cut is false.
func (g *Git) Changes(
	ctx context.Context, common, from, to string, max int64,
) (files []FileChange, patch []byte, cut bool, err error) {
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--numstat"}, patchFlags...)
	limit := int64(0)
	if max > 0 {
		args, limit = append(args, "--patch"), listLimit+max
	}
	args = append(args, "--end-of-options", from, to, "--")
	out, err := g.Read(ctx, Command{Dir: common, Objects: true, Args: args, Limit: limit})
	if err != nil {
		return nil, nil, false, err
	}
	// An empty entry ends the lists.
	list, patch, whole := bytes.Cut(out, []byte("\x00\x00"))
	full := limit > 0 && int64(len(out)) == limit
	if full && !whole {
		files, _, _, err = g.Changes(ctx, common, from, to, 0)
		return files, nil, true, err
	}
	patch, cut = cutPatch(patch, max)
	return parseChanges(fields(list)), patch, cut || full, nil
}

// parseChanges reads --raw -z followed by --numstat -z:
//
//	:100644 100644 <oid> <oid> M NUL path NUL
//	:100644 100644 <oid> <oid> R90 NUL old NUL new NUL
//	3 TAB 1 TAB path NUL
//	3 TAB 1 TAB NUL old NUL new NUL
func parseChanges(f []string) []FileChange {
	var changes []FileChange
	at := map[string]int{}
	for len(f) > 1 && strings.HasPrefix(f[0], ":") {
		words := strings.Fields(f[0])
		if len(words) != 5 {
			break
		}
		c := FileChange{Mode: words[1], OID: words[3], Status: words[4][:1], Path: f[1]}
		f = f[2:]
		if (c.Status == "R" || c.Status == "C") && len(f) > 0 {
			c.OldPath, c.Path = c.Path, f[0]
			f = f[1:]
		}
		at[c.Path] = len(changes)
		changes = append(changes, c)
	}
	for len(f) > 0 {
		counts := strings.SplitN(f[0], "\t", 3)
		f = f[1:]
		if len(counts) < 3 {
			continue
		}
		path := counts[2]
		if path == "" && len(f) > 1 {
			path, f = f[1], f[2:]
		}
		i, ok := at[path]
		if !ok {
			continue
		}
		changes[i].Binary = counts[0] == "-"
		changes[i].Added, changes[i].Deleted = atoi(counts[0]), atoi(counts[1])
	}
	return changes
}

// cutPatch cuts a patch longer than max at a line end, unless max is 0.
func cutPatch(patch []byte, max int64) (kept []byte, cut bool) {
	if max == 0 || int64(len(patch)) <= max {
		return patch, false
	}
	return patch[:bytes.LastIndexByte(patch[:max], '\n')+1], true
}

// IsDirty reports whether the work tree at dir has staged or unstaged changes to tracked files, or untracked files
// that are not ignored. It skips build products, which stay untracked from task to task, and the paths in but. It
// takes no lock and does not change the index.
func (g *Git) IsDirty(ctx context.Context, dir string, but ...string) (bool, error) {
	list, err := g.status(ctx, dir, "normal", but)
	return areChanges(dir, list), err
}

// EditedSince returns the files of the work tree at dir with uncommitted changes that were written or deleted after a
// time.
func (g *Git) EditedSince(ctx context.Context, dir string, since time.Time) (files []string, err error) {
	list, err := g.status(ctx, dir, "all", nil)
	for _, f := range list {
		name := f[min(3, len(f)):]
		if ProductRoot(dir, name) != "" {
			continue
		}
		at := filepath.Join(dir, name)
		fi, err := os.Lstat(at)
		for err != nil && len(at) > len(dir) { // a deleted file: its directory has the time
			at = filepath.Dir(at)
			fi, err = os.Lstat(at)
		}
		if err == nil && fi.ModTime().After(since) {
			files = append(files, name)
		}
	}
	return files, err
}

// status returns git status for the work tree at dir, without the paths in but.
func (g *Git) status(ctx context.Context, dir, untracked string, but []string) ([]string, error) {
	status := []string{"status", "--porcelain=v1", "-z", "--untracked-files=" + untracked, "--ignore-submodules=dirty",
		"--no-renames", "--", ":(top)"}
	for _, path := range but {
		rel, err := filepath.Rel(dir, proc.RealPath(path))
		if err == nil && filepath.IsLocal(rel) && rel != "." {
			status = append(status, ":(top,exclude,literal)"+rel)
		}
	}
	return g.List(ctx, g.inCheckout(ctx, dir, status...))
}

// areChanges reports whether git status lists more than build products in the work tree at dir.
func areChanges(dir string, list []string) bool {
	var s survey
	for _, f := range list {
		path, untracked := strings.CutPrefix(f, "?? ")
		if untracked {
			s.sortUntracked(dir, path)
		}
		if !untracked || len(s.refused)+len(s.heldBack) > 0 {
			return true
		}
	}
	return false
}
