package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// walkCap limits the directory entries that one call reads.
const walkCap = 400_000

// query is a parsed pattern.
type query struct {
	pattern string
	base    string // directory with all matches
	depth   int    // components of a match; -1 for any number
	named   map[string]bool
}

// newQuery checks and parses a pattern.
func (b *BuiltinTools) newQuery(glob string) (query, error) {
	if strings.TrimSpace(glob) == "" {
		return query{}, errors.New("the pattern is empty")
	}
	if path.IsAbs(glob) {
		rel, ok := b.inside(glob)
		if !ok {
			return query{}, &blocked{text.Clip(glob, 200) +
				" is outside the worktree; give a pattern relative to it"}
		}
		glob = rel
	}
	glob = strings.TrimPrefix(path.Clean(glob), "./")
	q := query{pattern: glob, depth: -1, named: map[string]bool{}}
	for part := range strings.SplitSeq(glob, "/") {
		if part == ".." {
			return query{}, &blocked{text.Clip(glob, 200) + " leads out of the worktree"}
		}
		q.named[part] = true
	}
	if !doublestar.ValidatePattern(glob) || pattern.Endless(glob) {
		return query{}, fmt.Errorf("%q is not a valid pattern: *, ?, **, [a-z] and a few {a,b} are supported",
			text.Clip(glob, 200))
	}
	if hasGit(glob) {
		return query{}, errGitsOwn
	}
	q.base, _ = doublestar.SplitPattern(glob)
	if !strings.Contains(glob, "**") && !strings.Contains(glob, "{") {
		q.depth = 1 + strings.Count(glob, "/")
	}
	return q, nil
}

// checkGlob returns a check that refuses patterns that the policy does not allow. arg names the argument with the
// pattern.
func checkGlob(arg string) func(*BuiltinTools, *arguments) error {
	return func(b *BuiltinTools, in *arguments) (err error) {
		if in.query, err = b.newQuery(in.text[arg]); err != nil {
			return err
		}
		return b.permit(in.query.base)
	}
}

// walk calls fn with every match in lexical order. It follows a symlink only at the beginning of the pattern. It
// reports whether the walk was cut short.
func (b *BuiltinTools) walk(ctx context.Context, q query, fn func(name string, d fs.DirEntry) error) (cut bool,
	err error) {
	if _, err := b.root.Stat(q.base); err != nil {
		return false, nil
	}
	seen := 0
	err = fs.WalkDir(b.root.FS(), q.base, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > walkCap {
			cut = true
			return fs.SkipAll
		}
		if err := ctx.Err(); err != nil {
			return errInterrupted
		}
		if err != nil {
			// An unreadable directory does not end the search.
			return nil
		}
		if name != q.base && b.passOver(q, d) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if ok, _ := doublestar.Match(q.pattern, name); ok && name != "." {
			if err := fn(name, d); err != nil {
				return err
			}
		}
		if d.IsDir() && q.depth >= 0 && name != "." && strings.Count(name, "/")+1 >= q.depth {
			return fs.SkipDir
		}
		return nil
	})
	return cut, err
}

// passOver reports whether an entry is skipped. Directories with dependencies or build results would hide all other
// matches, so a pattern must name them.
func (b *BuiltinTools) passOver(q query, d fs.DirEntry) bool {
	name := d.Name()
	isProduct := project.IsProduct(name) || slices.Contains(project.ByName(project.Python).Foreign, name)
	return hasGit(name) || strings.HasPrefix(name, tempPrefix) || d.IsDir() && isProduct && !q.named[name]
}
