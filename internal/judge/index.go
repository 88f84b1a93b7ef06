package judge

import (
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// entry is a file of the place's index.
type entry = gitx.IndexEntry

const gitlink = 0o160000

// directories returns the directories that hold the entries, "." for the top.
func directories(entries []entry) map[string]bool {
	dirs := map[string]bool{".": true}
	for _, e := range entries {
		addAbove(dirs, e.Path)
	}
	return dirs
}

// addAbove adds the directories above name to a set. If a directory is in the set, so are all above it.
func addAbove(dirs map[string]bool, name string) {
	for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
		dirs[dir] = true
	}
}

// find returns the position of a path's entry, or the position to insert it.
func find(entries []entry, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e entry, name string) int {
		return strings.Compare(e.Path, name)
	})
}

// Has reports whether the laid-out tree has a file or a directory.
func (p *Checkout) Has(name string) bool {
	if _, ok := find(p.entries, name); ok {
		return true
	}
	below, _ := find(p.entries, name+"/")
	return below < len(p.entries) && strings.HasPrefix(p.entries[below].Path, name+"/")
}
