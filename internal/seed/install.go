package seed

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Install installs a checked bundle: its test files into the worktree, then seed-meta.json and prd.json into the
// session's directory. If it fails, no file of the bundle stays; undo removes all of them while the seed is not on
// record.
//
// The state on disk after each step, and the next command's reaction:
//  1. test files, each whole or being written   no seed: only reset continues, and removes the worktree
//  2. seed-meta.json                            the same
//  3. prd.json                                  the same: the tasks are listed, and resume refuses
//  4. the seed's commit (lifecycle.CommitSeed)  lifecycle.Open puts it on record: its plan is there
//
// These steps need no journal. The worktree is at the base commit without a worker's changes, so the base restores it
// at any time.
func Install(b *Bundle, worktree string, s *session.Session) (undo func(), err error) {
	for _, name := range records {
		if _, err := os.Lstat(s.Path(name)); err == nil {
			return nil, fmt.Errorf("install the seed: the session already has a %s", name)
		}
	}
	in := &installation{worktree: worktree, session: s}
	if err := in.install(b); err != nil {
		in.undo()
		return nil, fmt.Errorf("install the seed: %w", err)
	}
	return in.undo, nil
}

// TakeUp returns the history of an interrupted interview, up to the point where it continues. If the last seed was not
// committed, TakeUp removes its files, because the interview proposes the seed again. tracked are the worktree's
// tracked paths.
func TakeUp(history []json.RawMessage, worktree string, s *session.Session, tracked []string) []json.RawMessage {
	if last := len(history) - 1; last > 0 && gjson.GetBytes(history[last], "content").Str == seedWritten {
		history = history[:last]
	}
	for _, raw := range slices.Backward(history) {
		proposed := gjson.GetBytes(raw, `tool_calls.#(function.name=="`+writeTool+`").function.arguments`)
		b, err := parseBundle([]byte(proposed.Str))
		if err != nil {
			continue
		}
		in := installation{worktree: worktree, session: s}
		in.files = slices.DeleteFunc(b.testPaths(), func(p string) bool { return slices.Contains(tracked, p) })
		in.undo()
		break
	}
	return history
}

// records are the files of a bundle in the session's directory, the last one first.
var records = []string{session.TasksFile, session.SeedMetaFile}

// installation has the installed files of a bundle.
type installation struct {
	worktree string
	session  *session.Session
	files    []string // files in the worktree
	dirs     []string // directories created for them, outermost first
}

func (in *installation) install(b *Bundle) error {
	root, err := os.OpenRoot(in.worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range b.testPaths() {
		if err := in.writeTest(root, p, b.TestFiles[p]); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := in.session.SaveSeedMeta(&b.Meta); err != nil {
		return err
	}
	return in.session.SaveTasks(b.Tasks)
}

// writeTest writes one test. It overwrites nothing and follows no symlink. The file is synced, because the later
// commit of the seed must not outlive it.
func (in *installation) writeTest(root *os.Root, p, content string) error {
	for _, dir := range prefixes(p) {
		if err := root.Mkdir(dir, 0o777); err == nil {
			in.dirs = append(in.dirs, dir)
		} else if info, _ := root.Lstat(dir); info == nil || !info.IsDir() {
			return err
		}
	}
	f, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	in.files = append(in.files, p)
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// undo removes the installed files. It ignores errors, because reset removes the rest.
func (in *installation) undo() {
	for _, name := range records {
		_ = os.Remove(in.session.Path(name))
	}
	root, err := os.OpenRoot(in.worktree)
	if err != nil {
		return
	}
	defer root.Close()
	for _, p := range in.files {
		_ = root.Remove(p)
	}
	for _, dir := range slices.Backward(in.dirs) {
		_ = root.Remove(dir) // kept if it is not empty
	}
}
