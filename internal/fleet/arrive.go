package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Limits of a fetched session.
const (
	maxFiles = 20_000
	atOnce   = 32 << 20 // are read from git at a time

	stagePrefix = ".travel-"
)

// foreign is a valid session commit from another machine.
type foreign struct {
	state
	scratch *scratchRepo
	files   map[string][]entry // chunks in order, by the file's name
	names   []string
}

// ownState is the limit for a state that this machine wrote itself.
const ownState = -1

// readForeign reads the session commit of id in a scratch repository. It rejects a session with more than limit bytes
// beyond its base.
func readForeign(ctx context.Context, scratch *scratchRepo, id string, limit int64) (*foreign, error) {
	f := &foreign{scratch: scratch, files: map[string][]entry{}}
	bad := func(format string, a ...any) (*foreign, error) {
		return nil, fmt.Errorf("the remote has no valid session %s: "+format, append([]any{id}, a...)...)
	}
	commit := scratch.ref(sessionRef(id))
	var err error
	if f.state, err = scratch.state(ctx, commit); err != nil {
		return bad("%w", err)
	}
	if f.Version != 1 || f.Session != id {
		return bad("it is version %d of session %q", f.Version, f.Session)
	}
	at := f.parents("")
	for _, sha := range append(at, f.Tip, f.Files) {
		if !text.IsObjectID(sha) || !scratch.reaches(ctx, commit, sha) {
			return bad("it does not contain its branch")
		}
	}
	for name := range f.Work {
		if !held.IsStashName(name) {
			return bad("%q is not the name of a stash", name)
		}
	}
	if limit != ownState {
		if err := scratch.measure(ctx, commit, scratch.baseOf(ctx, f.Tip), at, limit); err != nil {
			return nil, fmt.Errorf("session %s was not fetched: %w", id, err)
		}
	}
	entries, err := scratch.entries(ctx, commit)
	if err != nil {
		return bad("%w", err)
	}
	for _, e := range entries {
		inner := path.Base(e.Path)
		outer := path.Base(path.Dir(e.Path))
		name := path.Dir(path.Dir(e.Path))
		wantOuter, wantInner := chunkName(len(f.files[name]))
		if !travels(name) || outer != wantOuter || inner != wantInner || e.Size > chunkSize {
			return bad("%q is not a file of a session", e.Path)
		}
		if f.files[name] == nil {
			f.names = append(f.names, name)
		}
		f.files[name] = append(f.files[name], e)
	}
	for _, name := range []string{session.CheckpointFile, session.RecordFile, session.TasksFile} {
		if f.files[name] == nil {
			return bad("it has no %s", name)
		}
	}
	return f, nil
}

// fill writes the files into the new session's directory and returns its checkpoint, without conversations and
// preflight.
func (f *foreign) fill(ctx context.Context, s *session.Session) (*session.Checkpoint, error) {
	for _, name := range f.names {
		if err := f.write(ctx, s.Path(filepath.FromSlash(name)), f.files[name]); err != nil {
			return nil, err
		}
	}
	check, err := s.Checkpoint()
	if err != nil {
		return nil, err
	}
	statuses := []string{session.Prepared, session.Running, session.AllDone, session.Failed}
	if check.SessionID != s.ID || !slices.Contains(statuses, check.Status) {
		return nil, errors.New("its checkpoint has another session id or an unknown status")
	}
	check.Conversations, check.Preflight = nil, ""
	tasks, err := s.StoredTasks()
	if wrong := session.ValidateTasks(tasks); err == nil && len(wrong) > 0 {
		err = errors.New(wrong[0])
	}
	return check, err
}

func (f *foreign) write(ctx context.Context, to string, chunks []entry) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(chunks, atOnce/chunkSize) {
		var content []byte
		if content, err = f.scratch.contents(ctx, part); err == nil {
			_, err = out.Write(content)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, out.Sync(), out.Close())
}

// Remote is a git remote with the repository and the sessions of this machine.
type Remote struct {
	Deps     held.Deps
	Store    session.Store
	Location gitx.Location
	Remote   string // a remote's name or URL
	MaxFetch int64  // bytes of a fetched session; 0 for no limit
}

// Shown returns the remote as others may read it, without a password.
func (p Remote) Shown() string { return text.VisibleLine(text.WithoutPassword(p.Remote)) }

// scratch opens the scratch repository of a session.
func (p Remote) scratch(ctx context.Context, s *session.Session) (*scratchRepo, error) {
	scratch, err := p.open(s.Path(session.TravelDir))
	if err != nil {
		return nil, err
	}
	if err := scratch.clearLocks(ctx, s.Workspace()); err != nil {
		scratch.remove()
		return nil, err
	}
	return scratch, nil
}

// open opens the scratch repository in dir.
func (p Remote) open(dir string) (*scratchRepo, error) {
	s, err := openScratch(p.Deps.Git, p.Location.CommonDir, dir)
	if err == nil {
		s.remote, s.at = p.Remote, p.Location.Source
	}
	return s, err
}

// stage creates a scratch repository next to the sessions for a fetched session. remove deletes it, unless it moved
// into the session.
func (p Remote) stage() (*scratchRepo, error) {
	if p.Deps.Git.IsDryRun() {
		return p.open(filepath.Join(p.Store.Root, stagePrefix+"new"))
	}
	if err := os.MkdirAll(p.Store.Root, 0o700); err != nil {
		return nil, err
	}
	left, _ := filepath.Glob(filepath.Join(p.Store.Root, stagePrefix+"*"))
	for _, dir := range left { // left by a killed fetch, which takes minutes
		if fi, err := os.Lstat(dir); err == nil && time.Since(fi.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp(p.Store.Root, stagePrefix)
	if err != nil {
		return nil, err
	}
	scratch, err := p.open(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	scratch.remove = func() { _ = os.RemoveAll(dir) }
	return scratch, nil
}

// arrive makes a session from a scratch repository, which becomes the session's own. In a dry run it returns nil. It
// replaces an existing session if the remote has all of its work, or with force all of the user's work. Otherwise it
// refuses.
func (p Remote) arrive(ctx context.Context, scratch *scratchRepo, id string, force bool) (*session.Session, error) {
	f, err := readForeign(ctx, scratch, id, p.MaxFetch)
	if err != nil {
		return nil, err
	}
	if err := p.makeRoom(ctx, id, force); err != nil {
		return nil, err
	}
	if err := scratch.adopt(ctx, sessionRef(id)); err != nil {
		return nil, err
	}
	dry := p.Deps.Git.IsDryRun()
	s, err := lifecycle.Import{
		Store: p.Store, ID: id, Location: p.Location, Tip: f.Tip, Files: f.Files,
		Step: "create session " + id + " here", Again: "git tilth fetch " + id,
		Fill: func(h *held.Handle) (err error) {
			s := h.S
			if dry {
				s = &session.Session{ID: id, Dir: filepath.Join(scratch.dir, "session")}
			}
			if h.Checkpoint, err = f.fill(ctx, s); err != nil || dry {
				return err
			}
			return os.Rename(scratch.dir, s.Path(session.TravelDir))
		},
		Furnished: func(h *held.Handle) error {
			if dry {
				return nil
			}
			if err := held.AdoptStashes(ctx, h, f.Work); err != nil {
				return err
			}
			if scratch, err := p.scratch(ctx, h.S); err == nil {
				w := &writer{s: h.S, scratch: scratch}
				if files, err := w.work(ctx, f.Tip); err == nil { // a setup may have changed them
					_ = w.noteLeft(files)
				}
			}
			return h.S.WriteSummary()
		},
	}.Arrive(ctx, p.Deps)
	if err != nil || dry {
		return nil, err
	}
	return s, nil
}

// makeRoom removes the local session of this name if that loses no work; with force, if it loses none of the user's
// known changes.
func (p Remote) makeRoom(ctx context.Context, id string, force bool) error {
	s, err := p.Store.Find(id)
	var unlock func()
	if err == nil {
		unlock, err = held.Lock(p.Deps, s)
	}
	if errors.As(err, new(*session.RefusedError)) {
		if _, err := os.Lstat(filepath.Join(p.Store.Root, id)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	defer unlock()
	if !held.Resetting(s) {
		var more bool
		if force {
			more = p.changedByUser(ctx, s)
		} else {
			more, err = p.unpushed(ctx, s)
		}
		if err != nil || more {
			return unpushedHere(id, err)
		}
	}
	plan, err := lifecycle.PlanTeardown(ctx, p.Deps.Git, s, p.Location.CommonDir, func(string, string) {})
	if err != nil {
		return err
	}
	return plan.Execute(ctx)
}

func unpushedHere(id string, err error) error {
	why := "session " + id + " exists here and has unpushed work"
	if err != nil {
		why += " (" + err.Error() + ")"
	}
	keep := "git tilth push --remote ~/" + id + ".git " + id
	return &held.RefusedError{
		Why:  why + "; push it, or if the remote has a later state, push it to a new bare repository",
		Hint: fmt.Sprintf("git tilth push %s\ngit init -q --bare ~/%[1]s.git && %s && git tilth reset %[1]s", id, keep)}
}

// unpushed reports whether a session has changes since its last push or fetch.
func (p Remote) unpushed(ctx context.Context, s *session.Session) (bool, error) {
	scratch, err := p.scratch(ctx, s)
	if err != nil {
		return true, err
	}
	defer scratch.remove()
	now, _, err := (&writer{s: s, scratch: scratch}).commit(ctx, true)
	return now != scratch.ref(sessionRef(s.ID)), err
}

// A remote's data is measured before it is checked out. A few objects can stand for any number of files, so git lists
// at most the allowed number of a tree's entries.

// maxEntries is the most files and directories of a tree beyond the base; entrySize the bytes of one in git's list.
const (
	maxEntries = 4 * maxFiles
	entrySize  = 90
)

// extent is the size of a tree after a checkout.
type extent struct{ entries, files, bytes int64 }

// measure refuses a session in a scratch repository if it, or the trees of its commits beyond base, have more than
// limit bytes or more than maxFiles files beyond base. 0 is no limit.
func (s *scratchRepo) measure(ctx context.Context, session, base string, commits []string, limit int64) error {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	sent, err := sizeBelow(filepath.Join(s.dir, "objects"))
	if err != nil {
		return err
	}
	had, most := extent{}, extent{}
	if base != "" { // a commit of the user's own
		if had, err = s.extent(ctx, base, 0); err != nil {
			return err
		}
	}
	whole, err := s.extent(ctx, session, maxEntries)
	if err != nil {
		return err
	}
	for _, c := range commits {
		tree, err := s.extent(ctx, c, had.entries+maxEntries)
		if err != nil {
			return err
		}
		most.files = max(most.files, tree.files-had.files)
		most.bytes = max(most.bytes, tree.bytes-had.bytes)
	}
	files, size := whole.files+most.files, max(whole.bytes+most.bytes, sent)
	if files > maxFiles || size > limit {
		limits := fmt.Sprintf("the limit is %d files", maxFiles)
		if limit < math.MaxInt64 {
			limits = fmt.Sprintf("the limits are %d files and %d bytes (tilth.maxFetch)", maxFiles, limit)
		}
		return fmt.Errorf("it is too large: %d files and %d bytes more than the base; %s", files, size, limits)
	}
	return nil
}

// extent counts a commit's tree, with at most so many entries, 0 for any number. Submodules count as neither files nor
// trees.
func (s *scratchRepo) extent(ctx context.Context, commit string, most int64) (e extent, err error) {
	c := s.command("ls-tree", "-r", "-t", "--full-tree", "--format=%(objectname) %(objectsize)", commit)
	c.Limit = most * entrySize
	out, err := s.git.Read(ctx, c)
	if err == nil && most > 0 && int64(len(out)) >= c.Limit {
		err = fmt.Errorf("it is too large: a tree in it has too many files; the limit is %d more than the base",
			maxFiles)
	}
	for line := range bytes.Lines(out) {
		e.entries++
		_, size, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if n, no := strconv.ParseInt(size, 10, 64); no == nil {
			e.files, e.bytes = e.files+1, e.bytes+n
		}
	}
	return e, err
}

// sizeBelow returns the size of the files below a directory, in bytes.
func sizeBelow(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && d.Name() == "info": // other places of objects
			return filepath.SkipDir
		case err != nil || d.IsDir():
			return err
		}
		fi, err := d.Info()
		if err == nil {
			total += fi.Size()
		}
		return err
	})
	return total, err
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
