package gitx

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RepoWatch notices what becomes of the user's repository while somebody else works in it. A look costs no process as
// long as no file of the repository that counts has been touched.
type RepoWatch struct {
	git    *Git
	common string
	first  RepoState
	now    RepoState
	stamp  string
}

// WatchRepo begins to watch the repository with this common directory.
func (g *Git) WatchRepo(ctx context.Context, common string) (*RepoWatch, error) {
	w := &RepoWatch{git: g, common: common, stamp: stampOf(common)}
	state, err := g.RepoState(ctx, common)
	w.first, w.now = state, state
	return w, err
}

// Look returns what changed since the last look. Where git cannot read the refs, because its config is broken for one,
// what else changed is returned beside the error.
func (w *RepoWatch) Look(ctx context.Context) ([]RepoChange, error) {
	stamp := stampOf(w.common)
	if stamp == w.stamp {
		return nil, nil
	}
	state, err := w.git.RepoState(ctx, w.common)
	if err != nil {
		for what, value := range w.now {
			if strings.HasPrefix(what, "refs/") {
				state[what] = value
			}
		}
	} else {
		w.stamp = stamp
	}
	changes := w.now.Changes(state)
	w.now = state
	return changes, err
}

// All returns what is another thing than when the watch began, as of the last look.
func (w *RepoWatch) All() []RepoChange { return w.first.Changes(w.now) }

// stampOf changes whenever a file does that RepoState reads: a worker can set a file's modification time, and not the
// time of its change.
func stampOf(common string) string {
	var b strings.Builder
	add := func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(common, p)
		if relErr == nil && rel+"/" == sessionRefs && err == nil && d.IsDir() {
			return filepath.SkipDir
		}
		var st unix.Stat_t
		if err == nil && !d.IsDir() && unix.Lstat(p, &st) == nil {
			fmt.Fprintf(&b, "%s %o %d %d %d %d\n", rel, st.Mode, st.Size, st.Mtim.Nano(), st.Ino, st.Ctim.Nano())
		}
		return nil
	}
	for _, name := range append([]string{"refs", "packed-refs", "reftable"}, watchedFiles...) {
		_ = filepath.WalkDir(filepath.Join(common, name), add)
	}
	own, _ := os.ReadDir(common)
	for _, e := range own {
		if strings.HasSuffix(e.Name(), ".lock") {
			_ = add(filepath.Join(common, e.Name()), e, nil)
		}
	}
	return b.String()
}
