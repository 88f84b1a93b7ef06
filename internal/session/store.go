package session

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
)

// minPart is the minimum length of an abbreviated id, the same as for git's commits.
const minPart = 4

// Store is the sessions root: a directory with one directory per session.
type Store struct{ Root string }

// RefusedError means that a name matches no session, or several. Nothing was read or changed.
type RefusedError struct {
	Name       string   // the requested name
	Reason     string   // why it is damaged
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

// Create creates the directory of a new session (0700), and the root if it is missing.
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

// Find returns the session that part means: a full id, or at least four characters that occur in exactly one id.
// Anything else, a path or a symlink above all, is a *RefusedError.
func (st Store) Find(part string) (*Session, error) { return st.FindFirst(part, nil) }

// FindFirst is Find, but among several matches it prefers the sessions for which first is true.
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

// exact returns the session with this id, if its directory exists and is not a link.
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

// idLayout is the time part of an id; sorted by name, sessions are sorted by time.
const idLayout = "20060102-150405"

// NewID returns the id of a session that begins at now: YYYYMMDD-HHMMSS in UTC and six hex digits. The first four
// digits are the fraction of the second, so that sessions of the same second sort by time; the last two are random.
func NewID(now time.Time) string {
	part := uint16(uint64(now.Nanosecond()) << 16 / uint64(time.Second))
	digits := binary.BigEndian.AppendUint16(nil, part)
	u := uuid.New()
	return now.UTC().Format(idLayout) + "-" + hex.EncodeToString(append(digits, u[0]))
}

// IsWorkplace reports whether a directory is in a worktree or judged checkout of a session, of any sessions root.
func IsWorkplace(dir string) bool {
	elems := strings.Split(dir, string(filepath.Separator))
	for i, name := range elems[:len(elems)-1] {
		if ValidID(name) && slices.Contains([]string{WorkspaceDir, JudgeDir, LanesDir}, elems[i+1]) {
			return true
		}
	}
	return false
}

// CachesOf returns the cache directory of the session or draft that contains a directory, and a name in it for that
// directory. ok is false for a directory elsewhere.
func CachesOf(dir string) (caches, name string, ok bool) {
	name = filepath.Base(dir)
	for of := filepath.Dir(dir); of != filepath.Dir(of); of = filepath.Dir(of) {
		if ValidID(strings.TrimPrefix(filepath.Base(of), DraftPrefix)) {
			return filepath.Join(of, CachesDir), name, true
		}
		name = filepath.Base(of) + "-" + name
	}
	return "", "", false
}

// RepoLink returns the path of a link to the repository's common directory, for git directories in a session's trees.
// The link works even if the tree hides the repository's own path. It is "" for a directory elsewhere.
func RepoLink(dir string) string {
	caches, _, ok := CachesOf(dir)
	if !ok {
		return ""
	}
	return filepath.Join(caches, "repository.git")
}

// ValidID reports whether name has the form of a session id. The digits need not be a valid date, because a session's
// clock may be wrong.
func ValidID(name string) bool { return idForm().MatchString(name) }

var idForm = pattern.New(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{6}$`)

// IDTime returns the time that an id carries, taken as UTC. ok is false when the id is invalid or its digits are
// no date.
func IDTime(id string) (t time.Time, ok bool) {
	if !ValidID(id) {
		return time.Time{}, false
	}
	t, err := time.Parse(idLayout, id[:len(idLayout)])
	return t, err == nil
}

// DraftPrefix is the prefix of the directory of a session without a name. The next new session removes a leftover of
// a killed process.
const DraftPrefix = ".fork-"
