package seed

import (
	"cmp"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// formOf checks only the text of a path.
func formOf(p string) violations {
	parts, q := strings.Split(p, "/"), quoteShort(p)
	part := func(is func(string) bool) bool { return slices.ContainsFunc(parts, is) }
	switch {
	case path.IsAbs(p) || strings.HasPrefix(p, "~") || slices.Contains(parts, ".."):
		return one("path-outside", "the path %s leads outside of the worktree: give it relative to its root", q)
	case p == "", p != path.Clean(p), len(p) > maxPathBytes, part(func(s string) bool { return len(s) > 255 }),
		strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == '\\' || r == utf8.RuneError }):
		return one("path", "the path %s is not a plain path of at most %d bytes, like tests/test_t001_add.py", q,
			maxPathBytes)
	case part(func(s string) bool { return strings.EqualFold(s, ".git") }):
		return one("path-git", "the path %s leads into .git, which belongs to git", q)
	case part(project.IsProduct): // the seed would lack such a test
		return one("path-ignored", "the path %s lies in a directory that is never committed: choose another place", q)
	}
	return nil
}

// place checks where a file of the bundle would be. It reads the worktree and never writes. Install repeats the check
// inside an os.Root while writing; this check exists for its error messages. A path in git's index is a file, a symlink
// or a submodule, whatever the disk shows.
func (c *checker) place(p string, rules Rules) violations {
	if bad := formOf(p); bad != nil {
		return bad
	}
	q := quoteShort(p)
	for _, at := range append(prefixes(p), p) {
		full := filepath.Join(rules.Root, filepath.FromSlash(at))
		info, err := os.Lstat(full)
		onDisk := rules.Root != "" && err == nil
		_, ofSeed := c.bundle.TestFiles[at]
		switch tracked := slices.Contains(rules.Tracked, at); {
		case at == p && tracked:
			return one("path-tracked", "%s is a file that git tracks: a seed never overwrites one; choose a new name",
				q)
		case at == p && onDisk:
			return one("path-exists", "%s exists already: a seed never overwrites a file; choose a new name", q)
		case at != p && (tracked || ofSeed || onDisk && !info.IsDir()):
			return one("path-place", "%s would be below %s, which is a file, a symlink or a submodule",
				q, quoteShort(at))
		case !onDisk:
			continue
		}
		if _, err := os.Lstat(filepath.Join(full, ".git")); err == nil {
			return one("path-git", "%s would be in %s, which is another repository", q, quoteShort(at))
		}
	}
	if slices.Contains(rules.Ignored, p) {
		return one("path-ignored", "git ignores %s here, so it would stay out of the seed commit: choose another place",
			q)
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
func plainError(err error) error { return cmp.Or(errors.Unwrap(err), err) }

// taskOf returns the task in the base name of a test.
func taskOf(p string) (string, bool) { return validator.TaskOf(path.Base(p)) }
