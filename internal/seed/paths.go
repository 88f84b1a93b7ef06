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
	q := quoteShort(p)
	switch {
	case p == "":
		return one("path", "a test file has an empty path")
	case len(p) > maxPathBytes:
		return one("path", "the path %s is longer than %d bytes", q, maxPathBytes)
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return one("path", "the path %s holds a control character or is not valid UTF-8", q)
	case strings.Contains(p, `\`):
		return one("path", "the path %s holds a backslash: separate directories with /", q)
	case path.IsAbs(p) || hasDrive(p) || strings.HasPrefix(p, "~"):
		return one("path-absolute", "the path %s is absolute: give it relative to the root of the worktree", q)
	}
	for part := range strings.SplitSeq(p, "/") {
		if bad := partOf(q, part); bad != nil {
			return bad
		}
	}
	return nil
}

func partOf(q, part string) violations {
	switch {
	case part == "..":
		return one("path-outside", "the path %s holds ..: it must stay inside the worktree", q)
	case part == "" || part == ".":
		return one("path", "the path %s has an empty or . part: write it plainly, like tests/test_t001_add.py", q)
	case len(part) > 255:
		return one("path", "a part of the path %s is longer than 255 bytes", q)
	case meansDotGit(part):
		return one("path-git", "the path %s leads into .git, which belongs to git", q)
	case project.IsProduct(part):
		// A test in a build product would not be part of the seed.
		return one("path-ignored", "the path %s lies in %s, which is never committed: choose another place", q, part)
	}
	return nil
}

func hasDrive(p string) bool {
	return len(p) >= 2 && p[1] == ':' && unicode.IsLetter(rune(p[0]))
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
func (pl *place) againstBundle(p string) violations {
	dirs := prefixes(p)
	for _, dir := range dirs {
		if pl.isFile[dir] {
			return one("path-place", "%s would lie below %s, which is a file of this seed", quoteShort(p),
				quoteShort(dir))
		}
	}
	for _, prefix := range append(dirs, p) {
		pl.list(path.Dir(prefix))
		if as, ok := pl.taken[strings.ToLower(prefix)]; ok && as != prefix && !pl.onDisk[prefix] {
			return one("path-case", "%s and %s differ in case only: they are one place on some file systems",
				quoteShort(prefix), quoteShort(as))
		}
	}
	for _, prefix := range append(dirs, p) {
		pl.taken[strings.ToLower(prefix)] = prefix
	}
	pl.isFile[p] = true
	return nil
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
	if slices.Contains(pl.Tracked, p) {
		return one("path-tracked", "%s is a file that git tracks: a seed never overwrites one; choose a new name",
			quoteShort(p))
	}
	for _, dir := range prefixes(p) {
		if slices.Contains(pl.Tracked, dir) {
			return one("path-place", "%s would lie below %s, which git tracks as a file, a symlink or a submodule",
				quoteShort(p), quoteShort(dir))
		}
	}
	if pl.Root == "" {
		return nil
	}
	for _, dir := range prefixes(p) {
		if bad := pl.directory(p, dir); bad != nil {
			return bad
		}
	}
	switch _, err := os.Lstat(filepath.Join(pl.Root, filepath.FromSlash(p))); {
	case err == nil:
		return one("path-exists", "%s exists already: a seed never overwrites a file; choose a new name", quoteShort(p))
	case !os.IsNotExist(err):
		return one("path-place", "%s cannot be looked at: %v", quoteShort(p), plainError(err))
	}
	return nil
}

// directory judges one directory on the way to p: it is a real directory or does not exist.
func (pl *place) directory(p, dir string) violations {
	info, err := os.Lstat(filepath.Join(pl.Root, filepath.FromSlash(dir)))
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return one("path-place", "%s cannot be looked at: %v", quoteShort(dir), plainError(err))
	case info.Mode()&fs.ModeSymlink != 0:
		return one("path-symlink", "%s leads through the symlink %s: choose a place that is a real directory",
			quoteShort(p), quoteShort(dir))
	case !info.IsDir():
		return one("path-place", "%s would lie below %s, which is a file", quoteShort(p), quoteShort(dir))
	}
	if _, err := os.Lstat(filepath.Join(pl.Root, filepath.FromSlash(dir), ".git")); err == nil {
		return one("path-git", "%s would lie in %s, which is a repository of its own", quoteShort(p), quoteShort(dir))
	}
	return nil
}

// prefixes lists the directories on the way to p, outermost first.
func prefixes(p string) []string {
	var out []string
	for i := 0; i < len(p); i++ {
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
