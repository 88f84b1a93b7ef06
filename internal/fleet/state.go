package fleet

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	// bundlesDir has the stashed work of failed tasks in the session commit, a bundle each.
	bundlesDir = "aside"
)

func sessionRef(id string) string { return "refs/tilth/sessions/" + id }
func branchRef(id string) string  { return "refs/heads/session/" + id }

// files are the files that are pushed, besides those of tasks.
var files = []string{session.TasksFile, session.SeedMetaFile, session.InterviewFile, session.ProgressFile,
	session.LearningsFile}

// state is the message of a session commit.
type state struct {
	Version int    `json:"version"`
	Session string `json:"session"`
	Tip     string `json:"tip"`   // of the branch
	Files   string `json:"files"` // a commit of the uncommitted work on Tip, or Tip
}

// node is a directory of the tree that is made.
type node map[string]any // an id, or a node

// writer makes the session commits of one session.
type writer struct {
	s       *session.Session
	scratch *scratchRepo
	begins  bool     // a run starts and repairs the worktree: a broken worktree is left out
	was     made     // the session commit that the scratch repository has
	now     made     // the last one
	chunks  []string // of the record, the whole ones that were written
}

// made are the parts of a session commit.
type made struct {
	state
	tree string
}

// commit writes the session's state as a session commit and returns it. idle says that no run is at work, so that the
// worktree is part of the state.
func (w *writer) commit(ctx context.Context, idle bool) (id string, st state, err error) {
	old := w.scratch.ref(sessionRef(w.s.ID))
	if err := w.remember(ctx, old); err != nil {
		return "", st, err
	}
	if w.begins && old != "" && held.Unfinished(w.s) {
		w.now = w.was // the run finishes unfinished operations, once it has the claim
		return old, w.was.state, nil
	}
	st = state{Version: 1, Session: w.s.ID}
	root, size, err := w.look(ctx, &st)
	if err != nil {
		return "", st, err
	}
	if err := w.add(root, session.RecordFile, w.s.Path(session.RecordFile), size); err != nil {
		return "", st, err
	}
	if st.Files, err = w.filesOn(ctx, st.Tip, idle); err != nil {
		return "", st, err
	}
	tree, err := w.tree(root)
	if err != nil {
		return "", st, err
	}
	message, err := json.Marshal(st)
	if err != nil {
		return "", st, err
	}
	if w.now = (made{st, tree}); old != "" && w.now == w.was {
		return old, st, nil
	}
	id, err = writeCommit(w.scratch, tree, message, old, st.Tip, st.Files)
	return id, st, err
}

// look reads the files of the session and the branch's tip between two events of a run: the state that a kill between
// them would leave. size is the length of the record then.
func (w *writer) look(ctx context.Context, st *state) (root node, size int64, err error) {
	for before := int64(-1); before != size; {
		if before, err = w.recordSize(); err != nil {
			return nil, 0, err
		}
		if root, err = w.readFiles(ctx); err != nil {
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
	return root, size, nil
}

// readFiles reads all that travels but the record.
func (w *writer) readFiles(ctx context.Context) (node, error) {
	root := node{}
	names, err := w.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := w.add(root, name, w.s.Path(filepath.FromSlash(name)), -1); err != nil {
			return nil, err
		}
	}
	bundles, err := held.WriteBundles(ctx, w.scratch.git, w.s, filepath.Join(w.scratch.dir, bundlesDir))
	if err != nil {
		return nil, err
	}
	for name, path := range bundles {
		if err := w.add(root, bundlesDir+"/"+name, path, -1); err != nil {
			return nil, err
		}
	}
	return root, w.addCheckpoint(root)
}

// remember reads the contents of the last session commit, once.
func (w *writer) remember(ctx context.Context, old string) error {
	if old == "" || w.was.tree != "" {
		return nil
	}
	if _, err := w.scratch.entries(ctx, old); err != nil {
		return err
	}
	tree, err := w.scratch.out.RevParse(ctx, w.scratch.dir, old+"^{tree}")
	if err != nil {
		return err
	}
	messages, err := w.scratch.messages(ctx, sessionRef(w.s.ID))
	if err != nil {
		return err
	}
	w.was.tree = tree
	return json.Unmarshal([]byte(messages[sessionRef(w.s.ID)]), &w.was.state)
}

// filesOn returns a commit of the uncommitted work on tip, or tip. During a run, until its first commit, that is the
// work it started with: after a kill another machine gets the work that was pushed before.
func (w *writer) filesOn(ctx context.Context, tip string, idle bool) (string, error) {
	if idle {
		if files, err := w.work(ctx, tip); err == nil || !w.begins {
			return files, err
		}
	}
	if w.was.Tip == tip {
		return w.was.Files, nil
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
	// git gives an index the rights that the user's other files have; a dry run leaves none.
	_ = os.Chmod(filepath.Join(w.scratch.dir, "index"), 0o600)
	if was, err := w.scratch.out.RevParse(ctx, w.scratch.dir, tip+"^{tree}"); err != nil || was == tree {
		return tip, err
	}
	return writeCommit(w.scratch, tree, []byte("uncommitted work"), tip)
}

// leftFile, in travel/, is how the last run of a session, or its arrival, left it: the length of the record, and a
// commit of the files.
const leftFile = "left"

// noteLeft stores that no run has the session, and the commit of the uncommitted work.
func (w *writer) noteLeft(files string) error {
	size, err := w.recordSize()
	if err != nil {
		return err
	}
	return jsonl.WriteFile(filepath.Join(w.scratch.dir, leftFile), fmt.Appendf(nil, "%d %s\n", size, files))
}

// edited reports whether the user changed files since the last run. Each run adds to the record; after a killed run the
// files cannot be told from the user's work and do not count. Neither does a missing worktree.
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

// addCheckpoint adds the checkpoint without values of this machine.
func (w *writer) addCheckpoint(root node) error {
	check, err := w.s.Checkpoint()
	if err != nil {
		return err
	}
	if held.Unfinished(w.s) {
		return &held.RefusedError{Why: "a rewind or reset of session " + w.s.ID + " was not finished",
			Hint: "git tilth show " + w.s.ID}
	}
	check.Source, check.Workspace, check.GitCommonDir = "", "", ""
	check.Conversations, check.Preflight = nil, ""
	out := &session.Session{ID: w.s.ID, Dir: w.scratch.dir}
	if err := out.SaveCheckpoint(check); err != nil {
		return err
	}
	return w.add(root, session.CheckpointFile, out.Path(session.CheckpointFile), -1)
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
	if dir == bundlesDir+"/" {
		return strings.HasSuffix(rest, "bundle")
	}
	return slices.Contains(lifecycle.TaskDirs, strings.TrimSuffix(dir, "/")) &&
		slices.Contains([]string{"jsonl", "evaluator.jsonl"}, rest)
}

// add puts a file into the tree by that name, up to size, or all of it for -1.
func (w *writer) add(root node, name, from string, size int64) error {
	f, err := jsonl.OpenFile(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	at := root
	for part := range strings.SplitSeq(name, "/") {
		next, ok := at[part].(node)
		if !ok {
			next = node{}
			at[part] = next
		}
		at = next
	}
	buf := make([]byte, chunkSize)
	var ids []string // of its chunks
	var in io.Reader = f
	if size >= 0 {
		if ids, err = w.known(f, buf); err != nil {
			return err
		}
		in = io.LimitReader(f, size-int64(len(ids))*chunkSize)
	}
	for err == nil {
		var n int
		if n, err = io.ReadFull(in, buf); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if n == 0 && len(ids) > 0 {
			break
		}
		id, werr := w.scratch.write("blob", buf[:n])
		if werr != nil {
			return werr
		}
		if ids = append(ids, id); err == nil && size >= 0 {
			w.chunks = append(w.chunks, id)
		}
	}
	for i, id := range ids {
		outer, inner := chunkName(i)
		if at[outer] == nil {
			at[outer] = node{}
		}
		at[outer].(node)[inner] = id
	}
	return nil
}

// known returns the complete chunks of the record that were written before, and moves f to their end. A record only
// grows, except that a torn last line is cut off: the last chunk shows whether the record still begins with them.
func (w *writer) known(f *os.File, buf []byte) ([]string, error) {
	n := len(w.chunks)
	if n == 0 {
		return nil, nil
	}
	got, _ := f.ReadAt(buf, int64(n-1)*chunkSize)
	if id, err := w.scratch.write("blob", buf[:got]); err != nil || id != w.chunks[n-1] {
		w.chunks = nil
		return nil, err
	}
	_, err := f.Seek(int64(n)*chunkSize, io.SeekStart)
	return slices.Clone(w.chunks), err
}

// chunkName returns the path of the i-th chunk of a file.
func chunkName(i int) (outer, inner string) {
	return fmt.Sprintf("%04x", i/perDir), fmt.Sprintf("%02x", i%perDir)
}

// tree writes a tree and those in it.
func (w *writer) tree(n node) (string, error) {
	var names []string
	for name, what := range n {
		if _, dir := what.(node); dir {
			name += "/" // as git sorts them
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var out []byte
	for _, name := range names {
		mode, id := "100644", ""
		name, dir := strings.CutSuffix(name, "/")
		if dir {
			var err error
			mode = "40000"
			if id, err = w.tree(n[name].(node)); err != nil {
				return "", err
			}
		} else {
			id = n[name].(string)
		}
		raw, err := hex.DecodeString(id)
		if err != nil {
			return "", err
		}
		out = append(append(out, mode+" "+name+"\x00"...), raw...)
	}
	return w.scratch.write("tree", out)
}

// writeCommit writes a commit without an author or time, so that the same state is the same commit. Empty and equal
// parents are left out.
func writeCommit(s *scratchRepo, tree string, message []byte, parents ...string) (string, error) {
	text := "tree " + tree + "\n"
	for i, p := range parents {
		if p != "" && !slices.Contains(parents[:i], p) {
			text += "parent " + p + "\n"
		}
	}
	const nobody = "git-tilth <git-tilth@localhost> 0 +0000"
	return s.write("commit", fmt.Appendf(nil, "%sauthor %s\ncommitter %s\n\n%s\n", text, nobody, nobody, message))
}
