package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
)

const (
	chunkSize = 64 << 10
	perDir    = 256
	// writtenRef, in the scratch repository, is the last session commit that was written here. A kill behind a push
	// leaves it ahead of the session's ref.
	writtenRef = "refs/tilth/written"
	importRef  = "refs/tilth/import" // for git fast-import
)

func sessionRef(id string) string { return "refs/tilth/sessions/" + id }
func branchRef(id string) string  { return "refs/heads/session/" + id }

// files are the pushed files, apart from files of tasks.
var files = []string{session.TasksFile, session.SeedMetaFile, session.InterviewFile, session.ProgressFile,
	session.LearningsFile}

// state is the message of a session commit.
type state struct {
	Version int    `json:"version"`
	Session string `json:"session"`
	Tip     string `json:"tip"`   // tip of the branch
	Files   string `json:"files"` // a commit of the uncommitted work on Tip, or Tip
	// Work has the commits of stashed work, by the names of their refs in kept.git.
	Work map[string]string `json:"work,omitempty"`
}

// writer makes the session commits of one session.
type writer struct {
	s       *session.Session
	scratch *scratchRepo
	begins  bool // a run starts and repairs the worktree: a broken worktree is left out
}

// commit writes the session's state as a session commit and returns it. idle means that no run works on the session,
// so the worktree is part of the state.
func (w *writer) commit(ctx context.Context, idle bool) (id string, st state, err error) {
	old := w.scratch.last(w.s.ID)
	was, had, err := w.read(ctx, old)
	if err != nil {
		return "", st, err
	}
	if w.begins && old != "" && held.Unfinished(w.s) {
		return old, was, nil // the run finishes unfinished operations, once it has the claim
	}
	st = state{Version: 1, Session: w.s.ID, Work: held.Stashes(w.s)}
	files, size, err := w.look(ctx, &st)
	if err != nil {
		return "", st, err
	}
	if err := w.addRecord(files, size, had); err != nil {
		return "", st, err
	}
	if st.Files, err = w.filesOn(ctx, st.Tip, was, idle); err != nil {
		return "", st, err
	}
	if len(st.Work) > 0 {
		refs := slices.Sorted(maps.Keys(st.Work))
		for i, name := range refs {
			refs[i] = "refs/aside/" + name
		}
		if err := w.scratch.git.CopyObjects(ctx, w.s.Path(session.KeptGitDir), w.scratch.dir, refs...); err != nil {
			return "", st, err
		}
	}
	if id, err = w.scratch.importCommit(ctx, st, old, files.Bytes()); err != nil {
		return "", st, err
	}
	if old != "" && reflect.DeepEqual(st, was) {
		if same, err := w.scratch.sameFiles(ctx, id, old); err != nil || same {
			return old, st, err
		}
	}
	return id, st, w.scratch.setRef(writtenRef, id)
}

// importCommit makes a session commit from files, in the format of git fast-import.
func (s *scratchRepo) importCommit(ctx context.Context, st state, old string, files []byte) (string, error) {
	message, err := json.Marshal(st)
	if err != nil {
		return "", err
	}
	var in bytes.Buffer
	fmt.Fprintf(&in, "reset %s\n\ncommit %[1]s\nauthor %s\ncommitter %[2]s\ndata %d\n%s\n\n", importRef, nobody,
		len(message)+1, message)
	verb := "from"
	for _, parent := range st.parents(old) {
		fmt.Fprintf(&in, "%s %s\n", verb, parent)
		verb = "merge"
	}
	in.WriteString("deleteall\n")
	in.Write(files)
	in.WriteString("done\n")
	c := s.command("fast-import", "--quiet", "--force", "--done")
	c.Dir, c.Stdin = s.common, in.Bytes()
	if _, err := s.git.Mutate(ctx, c); err != nil {
		return "", err
	}
	return s.ref(importRef), nil
}

// sameFiles reports whether two commits have the same files.
func (s *scratchRepo) sameFiles(ctx context.Context, a, b string) (bool, error) {
	_, err := s.git.Read(ctx, s.command("diff-tree", "--quiet", a, b))
	if gitx.ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// parents returns the parents of a session commit: the one before, and the commits that it names.
func (st state) parents(old string) (ids []string) {
	all := []string{old, st.Tip, st.Files}
	for _, name := range slices.Sorted(maps.Keys(st.Work)) {
		all = append(all, st.Work[name])
	}
	for _, id := range all {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// read returns the state in a session commit, and the chunks of its record.
func (w *writer) read(ctx context.Context, commit string) (st state, chunks []entry, err error) {
	if commit == "" {
		return st, nil, nil
	}
	if st, err = w.scratch.state(ctx, commit); err == nil {
		chunks, err = w.scratch.entries(ctx, commit, session.RecordFile)
	}
	return st, chunks, err
}

// look reads the files of the session and the branch's tip between two events of a run: the state that a kill between
// them would leave. size is the length of the record then.
func (w *writer) look(ctx context.Context, st *state) (files *bytes.Buffer, size int64, err error) {
	for before := int64(-1); before != size; {
		if before, err = w.recordSize(); err != nil {
			return nil, 0, err
		}
		if files, err = w.readFiles(); err != nil {
			return nil, 0, err
		}
		var there bool
		st.Tip, there, err = w.scratch.out.BranchTip(ctx, w.scratch.common, w.s.Branch())
		if err == nil && !there {
			err = held.Refuse("git tilth review "+w.s.ID, "the branch %s is gone", w.s.Branch())
		}
		if err != nil {
			return nil, 0, err
		}
		if size, err = w.recordSize(); err != nil {
			return nil, 0, err
		}
	}
	return files, size, nil
}

// readFiles reads all pushed files except the record, in the format of git fast-import.
func (w *writer) readFiles() (*bytes.Buffer, error) {
	names, err := w.names()
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	add := func(name, from string) error {
		content, err := jsonl.ReadFile(from)
		if err == nil {
			addChunks(out, name, nil, content)
		}
		return err
	}
	for _, name := range names {
		if err := add(name, w.s.Path(filepath.FromSlash(name))); err != nil {
			return nil, err
		}
	}
	check, err := w.checkpoint()
	if err != nil {
		return nil, err
	}
	return out, add(session.CheckpointFile, check)
}

// filesOn returns a commit of the uncommitted work on tip, or tip. During a run, until its first commit, that is the
// work it started with: after a kill another machine gets the work that was pushed before.
func (w *writer) filesOn(ctx context.Context, tip string, was state, idle bool) (string, error) {
	if idle {
		if files, err := w.work(ctx, tip); err == nil || !w.begins {
			return files, err
		}
	}
	if was.Tip == tip {
		return was.Files, nil
	}
	return tip, nil
}

// work returns a commit on tip of the uncommitted work in the worktree, or tip if there is none.
func (w *writer) work(ctx context.Context, tip string) (string, error) {
	wt, err := w.scratch.out.Worktree(ctx, w.scratch.common, w.s.Workspace(), w.s.Branch())
	if errors.Is(err, gitx.ErrNotFound) {
		return tip, nil
	}
	if err != nil {
		return "", err
	}
	tree, err := w.scratch.out.PreviewTree(ctx, wt, tip, w.scratch.dir)
	if err != nil {
		return "", err
	}
	// git sets the permissions of the user's other files on an index. A dry run leaves no index.
	_ = os.Chmod(filepath.Join(w.scratch.dir, "index"), 0o600)
	if was, err := w.scratch.out.RevParse(ctx, w.scratch.dir, tip+"^{tree}"); err != nil || was == tree {
		return tip, err
	}
	return w.scratch.writeCommit(ctx, tree, "uncommitted work", tip)
}

// leftFile, in travel/, has the state of a session after its last run or fetch: the length of the record and a commit
// of the files.
const leftFile = "left"

// noteLeft stores that no run has the session, and the commit of the uncommitted work.
func (w *writer) noteLeft(files string) error {
	size, err := w.recordSize()
	if err != nil {
		return err
	}
	return jsonl.WriteFile(filepath.Join(w.scratch.dir, leftFile), fmt.Appendf(nil, "%d %s\n", size, files))
}

// edited reports whether the user changed files since the last run. Each run appends to the record. After a killed run
// the files may be the worker's, so they do not count; neither does a missing worktree.
func (w *writer) edited(ctx context.Context) bool {
	var left int64
	var files string
	note, err := os.ReadFile(w.s.Path(session.TravelDir, leftFile))
	if err == nil {
		_, err = fmt.Sscan(string(note), &left, &files)
	}
	if now, unread := w.recordSize(); err != nil || unread != nil || now != left {
		return false
	}
	same, err := w.work(ctx, files)
	return err != nil || same != files
}

// checkpoint writes the checkpoint without values of this machine, and returns its path.
func (w *writer) checkpoint() (string, error) {
	check, err := w.s.Checkpoint()
	if err != nil {
		return "", err
	}
	if held.Unfinished(w.s) {
		return "", &held.RefusedError{Why: "a rewind or reset of session " + w.s.ID + " was not finished",
			Hint: "git tilth show " + w.s.ID}
	}
	check.Source, check.Workspace, check.GitCommonDir = "", "", ""
	check.Conversations, check.Preflight = nil, ""
	out := &session.Session{ID: w.s.ID, Dir: w.scratch.dir}
	own, err := jsonl.ReadFile(w.s.Path(session.CheckpointFile))
	if err == nil { // its unknown members are kept
		err = jsonl.WriteFile(out.Path(session.CheckpointFile), own)
	}
	if err != nil {
		return "", err
	}
	return out.Path(session.CheckpointFile), out.SaveCheckpoint(check)
}

func (w *writer) recordSize() (int64, error) {
	fi, err := os.Stat(w.s.Path(session.RecordFile))
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// names returns the session's files, without its record.
func (w *writer) names() (names []string, err error) {
	for _, name := range files {
		if _, err := os.Lstat(w.s.Path(name)); err == nil {
			names = append(names, name)
		}
	}
	for _, dir := range lifecycle.TaskDirs {
		entries, err := os.ReadDir(w.s.Path(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); e.Type().IsRegular() && travels(name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// travels reports whether a session may have a file of this name elsewhere.
func travels(name string) bool {
	dir, base := path.Split(name)
	if dir == "" {
		return name == session.RecordFile || name == session.CheckpointFile || slices.Contains(files, name)
	}
	task, rest, _ := strings.Cut(base, ".")
	if !session.ValidTaskID(task) {
		return false
	}
	return slices.Contains(lifecycle.TaskDirs, strings.TrimSuffix(dir, "/")) &&
		slices.Contains([]string{"jsonl", "evaluator.jsonl"}, rest)
}

// addRecord adds the record up to size. had are its chunks in the last session commit.
func (w *writer) addRecord(out *bytes.Buffer, size int64, had []entry) error {
	f, err := jsonl.OpenFile(w.s.Path(session.RecordFile), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	ids, err := unchanged(f, had)
	if err != nil {
		return err
	}
	from := int64(len(ids)) * chunkSize
	rest, err := io.ReadAll(io.NewSectionReader(f, from, max(size-from, 0)))
	addChunks(out, session.RecordFile, ids, rest)
	return err
}

// unchanged returns the ids of the complete chunks that the record still begins with. A record only grows, except for
// a torn last line, so the last chunk decides for all.
func unchanged(record io.ReaderAt, had []entry) (ids []string, err error) {
	for _, c := range had {
		if c.Size == chunkSize {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	last := make([]byte, chunkSize)
	n, err := record.ReadAt(last, int64(len(ids)-1)*chunkSize)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !gitx.IsBlob(ids[len(ids)-1], last[:n]) {
		return nil, nil
	}
	return ids, nil
}

// addChunks adds a file: chunks that git has, and its content after them.
func addChunks(out *bytes.Buffer, name string, ids []string, content []byte) {
	n := 0
	add := func(id string) {
		outer, inner := chunkName(n)
		fmt.Fprintf(out, "M 100644 %s %s/%s/%s\n", id, name, outer, inner)
		n++
	}
	for _, id := range ids {
		add(id)
	}
	for part := range slices.Chunk(content, chunkSize) {
		add("inline")
		fmt.Fprintf(out, "data %d\n%s\n", len(part), part)
	}
	if n == 0 {
		add("inline")
		out.WriteString("data 0\n\n")
	}
}

// chunkName returns the path of the i-th chunk of a file.
func chunkName(i int) (outer, inner string) {
	return fmt.Sprintf("%04x", i/perDir), fmt.Sprintf("%02x", i%perDir)
}
