package seed

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// place checks the paths of one bundle's files. It reads the worktree and never writes. Install repeats the check
// inside an os.Root while writing; this check exists for its error messages.
type place struct {
	Rules
	taken  map[string]string // folded path of what the bundle and the directories on its way hold → as it is written
	isFile map[string]bool   // exact file paths of the bundle
	onDisk map[string]bool   // what was listed: entries, and directories with a slash behind them
}

func (pl *place) check(p string) violations {
	if bad := formOf(p); bad != nil {
		return bad
	}
	out := append(pl.againstBundle(p), pl.againstWorktree(p)...)
	if len(out) == 0 && slices.Contains(pl.Ignored, p) {
		return one("path-ignored", "git ignores %s here, so it would stay out of the seed commit: choose another place",
			quoteShort(p))
	}
	return out
}

// formOf judges a path by its letters alone.
func formOf(p string) violations {
	parts, q := strings.Split(p, "/"), quoteShort(p)
	part := func(is func(string) bool) bool { return slices.ContainsFunc(parts, is) }
	switch {
	case p == "":
		return one("path", "a test file has an empty path")
	case len(p) > maxPathBytes, part(func(s string) bool { return len(s) > 255 }):
		return one("path", "the path %s is longer than %d bytes, or a part of it than 255", q, maxPathBytes)
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return one("path", "the path %s holds a control character or is not valid UTF-8", q)
	case strings.Contains(p, `\`):
		return one("path", "the path %s holds a backslash: separate directories with /", q)
	case path.IsAbs(p) || strings.HasPrefix(p, "~") || len(p) > 1 && p[1] == ':' && unicode.IsLetter(rune(p[0])):
		return one("path-absolute", "the path %s is absolute: give it relative to the root of the worktree", q)
	case slices.Contains(parts, ".."):
		return one("path-outside", "the path %s holds ..: it must stay inside the worktree", q)
	case p != path.Clean(p):
		return one("path", "the path %s has an empty or . part: write it plainly, like tests/test_t001_add.py", q)
	case part(meansDotGit):
		return one("path-git", "the path %s leads into .git, which belongs to git", q)
	case part(project.IsProduct): // such a test would not be part of the seed
		return one("path-ignored", "the path %s lies in a directory that is never committed: choose another place", q)
	}
	return nil
}

// meansDotGit reports whether part is one of the spellings that some file system or git itself takes for .git: any
// case, the short name GIT~1, trailing dots and spaces, and the code points that HFS+ leaves out of a comparison.
func meansDotGit(part string) bool {
	part = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, part)
	part = strings.ToLower(strings.TrimRight(part, ". "))
	if i := strings.IndexByte(part, ':'); i > 0 {
		part = part[:i] // an NTFS stream of .git
	}
	return part == ".git" || part == "git~1"
}

// againstBundle finds a path that conflicts with another one of the bundle, also on file systems that ignore case.
func (pl *place) againstBundle(p string) (bad violations) {
	dirs := prefixes(p)
	for _, prefix := range append(dirs, p) {
		pl.list(path.Dir(prefix))
		as, ok := pl.taken[strings.ToLower(prefix)]
		switch {
		case pl.isFile[prefix]:
			return one("path-place", "%s would be below %s, which is a file of this seed", quoteShort(p),
				quoteShort(prefix))
		case bad == nil && ok && as != prefix && !pl.onDisk[prefix]:
			bad = one("path-case", "%s and %s differ in case only: they are one place on some file systems",
				quoteShort(prefix), quoteShort(as))
		}
	}
	for _, prefix := range append(dirs, p) {
		if bad == nil {
			pl.taken[strings.ToLower(prefix)], pl.isFile[p] = prefix, true
		}
	}
	return bad
}

// list takes the entries of a directory. The listing is asked and not the file system, which may take two names for
// one.
func (pl *place) list(dir string) {
	if pl.Root == "" || pl.onDisk[dir+"/"] {
		return
	}
	pl.onDisk[dir+"/"] = true
	entries, _ := os.ReadDir(filepath.Join(pl.Root, filepath.FromSlash(dir)))
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		pl.taken[strings.ToLower(at)], pl.onDisk[at] = at, true
	}
}

// againstWorktree finds existing files on disk or in git's index. A path in the index is a file, a symlink or a
// submodule, whatever the disk shows.
func (pl *place) againstWorktree(p string) violations {
	q := quoteShort(p)
	if slices.Contains(pl.Tracked, p) {
		return one("path-tracked", "%s is a file that git tracks: a seed never overwrites one; choose a new name", q)
	}
	for _, at := range append(prefixes(p), p) {
		if slices.Contains(pl.Tracked, at) {
			return one("path-place", "%s would be below %s, which git tracks as a file, a symlink or a submodule", q,
				quoteShort(at))
		}
		if pl.Root == "" {
			continue
		}
		full := filepath.Join(pl.Root, filepath.FromSlash(at))
		info, err := os.Lstat(full)
		switch {
		case os.IsNotExist(err):
			continue
		case err != nil:
			return one("path-place", "%s cannot be read: %v", quoteShort(at), plainError(err))
		case at == p:
			return one("path-exists", "%s exists already: a seed never overwrites a file; choose a new name", q)
		case info.Mode()&fs.ModeSymlink != 0:
			return one("path-symlink", "%s leads through the symlink %s: choose a place that is a real directory", q,
				quoteShort(at))
		case !info.IsDir():
			return one("path-place", "%s would be below %s, which is a file", q, quoteShort(at))
		}
		if _, err := os.Lstat(filepath.Join(full, ".git")); err == nil {
			return one("path-git", "%s would be in %s, which is another repository", q, quoteShort(at))
		}
	}
	return nil
}

// prefixes lists the directories on the way to p, outermost first.
func prefixes(p string) (out []string) {
	for i := range len(p) {
		if p[i] == '/' {
			out = append(out, p[:i])
		}
	}
	return out
}

// plainError drops the machine's path from a file system error.
func plainError(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

// taskOf reads the task out of the base name of a test.
func taskOf(p string) (string, bool) { return validator.TaskOf(path.Base(p)) }
