package rewind

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
)

// layOutNext writes the session's own files as they are at the point: the tasks that are done then keep theirs.
func (p Plan) layOutNext(h *held.Handle, next *session.Session) error {
	if err := next.SaveTasks(p.tasks); err != nil {
		return err
	}
	dropped := func(task string) bool { return slices.Contains(p.drop, task) }
	if err := cmp.Or(CopyFiles(h.S, next, keptDirs, dropped), next.Sync()); err != nil {
		return err
	}
	if p.journal.Note == "" {
		return nil
	}
	return h.AppendNote(next, p.journal.Started, p.journal.Noted, p.journal.Note)
}

// CopyFiles copies progress.txt and, of some directories, the files of all tasks but some.
func CopyFiles(from, to *session.Session, dirs []string, dropped func(task string) bool) error {
	if err := copyProgress(from.Path(session.ProgressFile), to.Path(session.ProgressFile), dropped); err != nil {
		return err
	}
	for _, name := range dirs {
		if err := copyTasksFiles(from.Path(name), to.Path(name), dropped); err != nil {
			return err
		}
	}
	return nil
}

// DropEmpty removes those files of the session's own that hold nothing: it had none.
func DropEmpty(s *session.Session) error {
	if fi, err := os.Lstat(s.Path(session.ProgressFile)); err == nil && fi.Size() == 0 {
		if err := os.Remove(s.Path(session.ProgressFile)); err != nil {
			return err
		}
	}
	for _, name := range keptDirs {
		_ = os.Remove(s.Path(name)) // which fails where something is in it
	}
	return nil
}

// copyProgress copies progress.txt without the lines of some tasks.
func copyProgress(from, to string, dropped func(task string) bool) error {
	data, err := jsonl.ReadFile(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		if task, _, _ := strings.Cut(string(line), "\t"); !dropped(task) {
			kept = append(kept, line...)
		}
	}
	return os.WriteFile(to, kept, 0o600)
}

// copyTasksFiles copies a directory of files named after their tasks, without those of some tasks.
func copyTasksFiles(from, to string, dropped func(task string) bool) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		task, _, _ := strings.Cut(e.Name(), ".")
		if dropped(task) || !e.Type().IsRegular() {
			continue
		}
		if err := jsonl.CopyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// replaceFiles replaces the session's files with those in next, and moves the session's directories to old, where its
// files were copied before. Paths that are in old, or no longer in next, were moved already.
func replaceFiles(h *held.Handle, old, next string) error {
	for _, name := range keptDirs {
		if _, err := os.Lstat(filepath.Join(old, name)); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(h.S.Path(name), filepath.Join(old, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Concat(keptFiles, keptDirs) {
		err := os.Rename(filepath.Join(next, name), h.S.Path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := DropEmpty(h.S); err != nil {
		return err
	}
	return errors.Join(jsonl.SyncDir(h.S.Dir), jsonl.SyncDir(h.S.Path(session.KeptGitDir, "refs")))
}

// moveLoose moves paths of the worktree to the undo, or back. A missing path was moved already. On the way out, a path
// that also exists at its target was written by the operation since.
func moveLoose(h *held.Handle, paths [][]byte, from, to string) error {
	if h.Git.IsDryRun() || len(paths) == 0 {
		return nil
	}
	// Both lie in the session's directory, and no link of the worker's leads out of it.
	root, err := os.OpenRoot(h.S.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if from, err = filepath.Rel(h.S.Dir, from); err == nil {
		to, err = filepath.Rel(h.S.Dir, to)
	}
	if err != nil {
		return err
	}
	back := filepath.Base(from) == keptLoose
	for _, path := range paths {
		if !filepath.IsLocal(string(path)) {
			return fmt.Errorf("%q is not a path in a worktree", path)
		}
		source, target := filepath.Join(from, string(path)), filepath.Join(to, string(path))
		if _, err := root.Lstat(source); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := root.Lstat(target); err == nil {
			if back {
				return fmt.Errorf("%s is in the way of a file to restore; move it away", target)
			}
			continue
		}
		if err := moveIn(root, source, target); err != nil {
			return err
		}
	}
	return nil
}

// moveIn renames within root, past directories without the right to write, which have their modes again afterwards.
func moveIn(root *os.Root, source, target string) error {
	if err := root.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	err := root.Rename(source, target)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, dir := range []string{filepath.Dir(source), filepath.Dir(target), source} {
		fi, serr := root.Lstat(dir)
		if serr != nil || !fi.IsDir() || fi.Mode()&0o300 == 0o300 {
			continue
		}
		if err := root.Chmod(dir, fi.Mode().Perm()|0o300); err != nil {
			return err
		}
		if dir == source {
			dir = target
		}
		defer func() { _ = root.Chmod(dir, fi.Mode().Perm()) }()
	}
	return root.Rename(source, target)
}
