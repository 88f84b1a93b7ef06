package gitx

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// RepoWatch notices what becomes of the user's repository while somebody else works in it. A look costs no process as
// long as no file of the repository that counts has been touched.
type RepoWatch struct {
	git    *Git
	common string
	first  repoState
	now    repoState
	stamp  string
}

// WatchRepo begins to watch the repository with this common directory.
func (g *Git) WatchRepo(ctx context.Context, common string) (*RepoWatch, error) {
	w := &RepoWatch{git: g, common: common, stamp: stampOf(common)}
	state, err := g.readState(ctx, common)
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
	state, err := w.git.readState(ctx, w.common)
	if err != nil {
		for what, value := range w.now {
			if strings.HasPrefix(what, "refs/") {
				state[what] = value
			}
		}
	} else {
		w.stamp = stamp
	}
	changes := w.now.changes(state)
	w.now = state
	return changes, err
}

// All returns what is another thing than when the watch began, as of the last look.
func (w *RepoWatch) All() []RepoChange { return w.first.changes(w.now) }

// stampOf changes whenever a file does that readState reads: a worker can set a file's modification time, and not the
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

// repoState is what of the user's repository a worker could change and a session never does: by name
// ("refs/heads/main", "config", "hooks/pre-commit"), a value that is another one once the thing is.
type repoState map[string]string

// RepoChange is a difference between two states; Before or After is "" where there was or is nothing.
type RepoChange struct{ What, Before, After string }

// watchedFiles are the files and directories of a repository that say how git works in it.
var watchedFiles = []string{
	"HEAD", "config", "config.worktree", "shallow", "hooks", "info", "objects/info/alternates", "commondir",
}

// readState reads the repository's refs other than those of sessions, replacements among them, with one command; its
// HEAD, config, hooks, info and alternates from their files; and the locks in it that no live git can own. Where git
// cannot read the refs, the rest is returned beside the error.
func (g *Git) readState(ctx context.Context, common string) (repoState, error) {
	state := repoState{}
	for _, name := range watchedFiles {
		state.addFiles(common, name)
	}
	if err := g.addLeftLocks(state, common); err != nil {
		return state, err
	}
	out, err := g.read(ctx, inRepo(common, "for-each-ref", "--format=%(refname) %(objectname) %(symref)"))
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, sessionRefs) {
			state[name] = value
		}
	}
	return state, err
}

// sessionRefs is where the branches of sessions are.
const sessionRefs = "refs/heads/session/"

// addFiles adds a file, or the files below a directory, by mode and content.
func (s repoState) addFiles(common, name string) {
	_ = filepath.WalkDir(filepath.Join(common, name), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(common, p)
		if err != nil || relErr != nil || d.IsDir() {
			return nil
		}
		if to, err := os.Readlink(p); err == nil {
			s[rel] = "link to " + to
			if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() {
				return nil
			}
		}
		content, err := os.ReadFile(p)
		fi, statErr := os.Stat(p)
		if err = errors.Join(err, statErr); err != nil {
			s[rel] = "unreadable"
			return nil
		}
		sum := sha256.Sum256(content)
		s[rel] += fmt.Sprintf("%s sha256 %x", fi.Mode().Perm(), sum[:8])
		return nil
	})
}

// addLeftLocks adds the locks of the repository's refs and of its own files that no live git process can own.
func (g *Git) addLeftLocks(s repoState, common string) error {
	places := sync.OnceValue(func() []string { return repoPlaces(common) })
	add := func(p string) {
		rel, err := filepath.Rel(common, p)
		fi, statErr := os.Lstat(p)
		if err != nil || statErr != nil || strings.HasPrefix(rel, sessionRefs) || g.lockOwner(fi, places()) != "" {
			return
		}
		s[rel] = "a lock that a git which has ended left behind, of " + fi.ModTime().UTC().Format(time.RFC3339)
	}
	own, err := os.ReadDir(common)
	if err != nil {
		return err
	}
	for _, e := range own {
		if strings.HasSuffix(e.Name(), ".lock") {
			add(filepath.Join(common, e.Name()))
		}
	}
	return filepath.WalkDir(filepath.Join(common, "refs"), func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".lock") {
			add(p)
		}
		return nil
	})
}

// changes lists what is another thing in now than it was, sorted by name.
func (s repoState) changes(now repoState) []RepoChange {
	var changes []RepoChange
	for what, before := range s {
		if now[what] != before {
			changes = append(changes, RepoChange{what, before, now[what]})
		}
	}
	for what, after := range now {
		if _, was := s[what]; !was {
			changes = append(changes, RepoChange{what, "", after})
		}
	}
	slices.SortFunc(changes, func(a, b RepoChange) int { return strings.Compare(a.What, b.What) })
	return changes
}
