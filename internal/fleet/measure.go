package fleet

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// What comes from a remote is measured before any of it is laid out. A few objects can stand for any number of files:
// each tree is read once, level by level, and its files are counted as often as it is named.

// maxDepth is how many directories may lie within each other: more have no path that a file system takes.
const maxDepth = 1024

// extent is how much a tree holds once it is laid out.
type extent struct{ files, bytes int64 }

func (e extent) plus(o extent) extent {
	return extent{saturated(e.files, o.files), saturated(e.bytes, o.bytes)}
}

func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// measure refuses what a scratch repository holds of a session where it, or the trees of commits beyond that of base,
// is more than limit bytes, or more than maxFiles files beyond base. No limit is 0.
func (s *scratchRepo) measure(ctx context.Context, session, base string, commits []string, limit int64) error {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	sent, err := sizeBelow(filepath.Join(s.dir, "objects"))
	if err != nil {
		return err
	}
	m := &measuring{scratch: s, limit: limit, trees: map[string][]child{}, sizes: map[string]int64{}}
	roots := append([]string{session + "^{tree}", base + "^{tree}"}, suffixed(commits, "^{tree}")...)
	if base == "" {
		roots = slices.Delete(roots, 1, 2)
	}
	ids, err := m.walk(ctx, roots)
	if err != nil {
		return err
	}
	known := map[string]extent{}
	of := func(root string) extent { return m.extent(ids[root], known) }
	whole, had := of(session+"^{tree}"), extent{}
	if base != "" {
		had = of(base + "^{tree}")
	}
	most := extent{}
	for _, c := range commits {
		tree := of(c + "^{tree}")
		most.files = max(most.files, tree.files-had.files)
		most.bytes = max(most.bytes, tree.bytes-had.bytes)
	}
	whole = whole.plus(most)
	if whole.files > maxFiles || max(whole.bytes, sent) > limit {
		return fmt.Errorf("it is too much: %d files and %d bytes more than the base has; at most %d files, and %d "+
			"bytes (tilth.maxFetch), are taken", whole.files, max(whole.bytes, sent), maxFiles, limit)
	}
	return nil
}

// sizeBelow is what the files below a directory hold.
func sizeBelow(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && d.Name() == "info": // where else objects are
			return filepath.SkipDir
		case err != nil || d.IsDir():
			return err
		}
		fi, err := d.Info()
		if err == nil {
			total = saturated(total, fi.Size())
		}
		return err
	})
	return total, err
}

// measuring is a walk through trees.
type measuring struct {
	scratch *scratchRepo
	limit   int64
	trees   map[string][]child
	sizes   map[string]int64 // of blobs
	read    int64            // bytes of trees
}

type child struct {
	id   string
	tree bool
}

// walk reads all trees below the roots and the sizes of their files. It returns the id of each root.
func (m *measuring) walk(ctx context.Context, roots []string) (map[string]string, error) {
	ids := map[string]string{}
	next := roots
	for depth := 0; len(next) > 0; depth++ {
		if depth > maxDepth {
			return nil, errors.New("its directories lie too deep within each other")
		}
		found, err := m.ask(ctx, next, "tree")
		if err != nil {
			return nil, err
		}
		level := map[string]bool{}
		for name, o := range found {
			if depth == 0 {
				ids[name] = o.id
			}
			if m.trees[o.id] == nil && !level[o.id] {
				level[o.id] = true
				m.read = saturated(m.read, o.size)
			}
		}
		if m.read > max(m.limit, 64<<20) {
			return nil, errors.New("the lists of its files alone are more than tilth.maxFetch")
		}
		if err := m.readTrees(ctx, slices.Sorted(maps.Keys(level))); err != nil {
			return nil, err
		}
		below := map[string]bool{}
		for id := range level {
			for _, c := range m.trees[id] {
				if c.tree && m.trees[c.id] == nil {
					below[c.id] = true
				}
			}
		}
		next = slices.Sorted(maps.Keys(below))
	}
	blobs := map[string]bool{}
	for _, children := range m.trees {
		for _, c := range children {
			blobs[c.id] = blobs[c.id] || !c.tree
		}
	}
	maps.DeleteFunc(blobs, func(_ string, blob bool) bool { return !blob })
	found, err := m.ask(ctx, slices.Sorted(maps.Keys(blobs)), "blob")
	for name, o := range found {
		m.sizes[name] = o.size
	}
	return ids, err
}

type object struct {
	id   string
	size int64
}

// ask returns ids and sizes of objects of a kind, by the names given.
func (m *measuring) ask(ctx context.Context, names []string, kind string) (map[string]object, error) {
	c := m.scratch.command("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	c.Stdin = []byte(strings.Join(names, "\n") + "\n")
	out, err := m.scratch.git.Read(ctx, c)
	if err != nil {
		return nil, err
	}
	found := map[string]object{}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, name := range names {
		var words []string
		if i < len(lines) {
			words = strings.Fields(lines[i])
		}
		if len(words) != 3 || words[1] != kind {
			return nil, fmt.Errorf("%s is no %s", name, kind)
		}
		size, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return nil, err
		}
		found[name] = object{words[0], size}
	}
	return found, nil
}

// readTrees reads the entries of trees.
func (m *measuring) readTrees(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	c := m.scratch.command("cat-file", "--batch=%(objectsize)")
	c.Stdin = []byte(strings.Join(ids, "\n") + "\n")
	out, err := m.scratch.git.Read(ctx, c)
	if err != nil {
		return err
	}
	for _, id := range ids {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		size, err := strconv.Atoi(string(head))
		if err != nil || size < 0 || size >= len(rest) {
			return fmt.Errorf("the tree %s cannot be read", id)
		}
		children, err := parseTree(rest[:size], len(id)/2)
		if err != nil {
			return fmt.Errorf("the tree %s: %w", id, err)
		}
		m.trees[id], out = children, rest[size+1:]
	}
	return nil
}

// parseTree reads a tree as git keeps it. Submodules are neither files nor trees of it.
func parseTree(raw []byte, hash int) ([]child, error) {
	children := []child{}
	for len(raw) > 0 {
		head, rest, ok := bytes.Cut(raw, []byte{0})
		mode, _, named := bytes.Cut(head, []byte(" "))
		if !ok || !named || len(rest) < hash {
			return nil, errors.New("it is cut off")
		}
		id := hex.EncodeToString(rest[:hash])
		raw = rest[hash:]
		switch string(mode) {
		case "160000":
		case "40000", "040000":
			children = append(children, child{id, true})
		default:
			children = append(children, child{id, false})
		}
	}
	return children, nil
}

// extent is what a tree holds. What it is made of is a directed graph without circles: an id is a hash.
func (m *measuring) extent(id string, known map[string]extent) extent {
	if e, ok := known[id]; ok {
		return e
	}
	e := extent{}
	for _, c := range m.trees[id] {
		if c.tree {
			e = e.plus(m.extent(c.id, known))
		} else {
			e = e.plus(extent{1, m.sizes[c.id]})
		}
	}
	known[id] = e
	return e
}

func suffixed(list []string, suffix string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] += suffix
	}
	return out
}

// baseOf is the commit that a session was made at: the nearest to its tip that the user's repository has, "" for none.
func (s *scratchRepo) baseOf(ctx context.Context, tip string) string {
	refs, err := s.out.List(ctx, gitx.InRepo(s.common, "for-each-ref", "--count=500", "--sort=-committerdate",
		"--format=%(objectname)%00", "refs/heads", "refs/remotes"))
	if err != nil {
		return ""
	}
	args := []string{"merge-base", tip}
	for _, id := range refs {
		switch id = strings.TrimSpace(id); {
		case id == tip:
			return tip
		case id != "" && !slices.Contains(args, id):
			args = append(args, id)
		}
	}
	base, err := s.git.Read(ctx, s.command(args...))
	if err != nil || len(args) == 2 {
		return ""
	}
	return strings.TrimSpace(string(base))
}
