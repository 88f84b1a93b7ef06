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
// case, the short name GIT~1, trailing dots and spaces, NTFS streams, and characters that HFS+ leaves out of a
// comparison.
func meansDotGit(part string) bool {
	part = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, part)
	part, _, _ = strings.Cut(part, ":")
	part = strings.TrimRight(part, ". ")
	return part == ".git" || part == "git~1"
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
		_, ofSeed := c.bundle.TestFiles[at]
		tracked := slices.Contains(rules.Tracked, at)
		switch {
		case tracked && at == p:
			return one("path-tracked", "%s is a file that git tracks: a seed never overwrites one; choose a new name",
				q)
		case tracked || ofSeed && at != p:
			return one("path-place", "%s would be below %s, which is a file of git or of this seed", q, quoteShort(at))
		case rules.Root == "":
			continue
		}
		full := filepath.Join(rules.Root, filepath.FromSlash(at))
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
func plainError(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

// taskOf reads the task out of the base name of a test.
func taskOf(p string) (string, bool) { return validator.TaskOf(path.Base(p)) }
