package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// minPart is how short an abbreviated id may be: as short as git's abbreviated commits.
const minPart = 4

// Store is the sessions root: a directory with one directory per session.
type Store struct{ Root string }

// RefusedError says that a name means no session, or more than one. Nothing was read or changed.
type RefusedError struct {
	Name       string   // what was asked for
	Reason     string   // what is wrong with it
	Candidates []string // the sessions that it could mean, newest first
}

func (e *RefusedError) Error() string {
	s := fmt.Sprintf("session %q: %s", e.Name, e.Reason)
	const show = 10
	if n := len(e.Candidates); n > show {
		return s + ": " + strings.Join(e.Candidates[:show], ", ") + fmt.Sprintf(" and %d more", n-show)
	} else if n > 0 {
		return s + ": " + strings.Join(e.Candidates, ", ")
	}
	return s
}

// IDs lists the sessions of the store, newest first: directories directly under the root with an id as their name.
// Symlinks and everything else are left out. A root that does not exist has no sessions.
func (st Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(st.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the sessions root: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() && ValidID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.Reverse(ids) // ReadDir sorts by name
	return ids, nil
}

// Create makes the directory of a new session (0700), and the root where it is missing.
func (st Store) Create(id string) (*Session, error) {
	if !ValidID(id) {
		return nil, &RefusedError{Name: id, Reason: "not a session id"}
	}
	if err := os.MkdirAll(st.Root, 0o700); err != nil {
		return nil, fmt.Errorf("make the sessions root: %w", err)
	}
	s := st.session(id)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the session directory: %w", err)
	}
	return s, jsonl.SyncDir(st.Root)
}

// Find is the session that part means: a full id, or at least four characters that occur in exactly one id.
// Anything else, a path or a symlink above all, is a *RefusedError.
func (st Store) Find(part string) (*Session, error) { return st.FindFirst(part, nil) }

// FindFirst is Find, but of several that have the part those that come first are meant.
func (st Store) FindFirst(part string, first func(*Session) bool) (*Session, error) {
	if strings.Trim(part, "0123456789abcdef-") != "" || part == "" {
		return nil, &RefusedError{Name: part, Reason: "not the name of a session"}
	}
	if ValidID(part) {
		return st.exact(part)
	}
	if len(part) < minPart {
		return nil, &RefusedError{Name: part, Reason: fmt.Sprintf("too short, give at least %d characters", minPart)}
	}
	ids, err := st.IDs()
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.Contains(id, part) })
	if len(ids) > 1 && first != nil {
		later := func(id string) bool { return !first(st.session(id)) }
		if those := slices.DeleteFunc(slices.Clone(ids), later); len(those) > 0 {
			ids = those
		}
	}
	switch len(ids) {
	case 0:
		return nil, &RefusedError{Name: part, Reason: "no such session under " + st.Root}
	case 1:
		return st.session(ids[0]), nil
	}
	return nil, &RefusedError{Name: part, Reason: "ambiguous", Candidates: ids}
}

// exact is the session with this id, if its directory is one and not a link to one.
func (st Store) exact(id string) (*Session, error) {
	info, err := os.Lstat(filepath.Join(st.Root, id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &RefusedError{Name: id, Reason: "no such session under " + st.Root}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &RefusedError{Name: id, Reason: "not a directory"}
	}
	return st.session(id), nil
}

func (st Store) session(id string) *Session {
	return &Session{ID: id, Dir: filepath.Join(st.Root, id)}
}
