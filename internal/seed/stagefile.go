package seed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/session"
)

// putInside links a staged file to a path below root, and never over anything.
// The directory is opened through the os.Root, so that no symlink leads out,
// and linkat refuses a name that exists. Where there are no hard links, the
// content is copied with O_EXCL.
func putInside(root *os.Root, p, staged string) error {
	for _, dir := range prefixes(p) {
		info, err := root.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
	}
	dir, err := root.Open(path.Dir(p))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Linkat(unix.AT_FDCWD, staged, int(dir.Fd()), path.Base(p), 0)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	return copyInside(root, p, staged)
}

func copyInside(root *os.Root, p, staged string) error {
	text, err := os.ReadFile(staged)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// missingDirs lists the directories that files need and the worktree lacks,
// outermost first.
func missingDirs(worktree string, files []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range files {
		for _, dir := range prefixes(p) {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			if _, err := os.Lstat(filepath.Join(worktree, filepath.FromSlash(dir))); errors.Is(err, fs.ErrNotExist) {
				out = append(out, dir)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(a) - len(b) })
	return out
}

// writeSynced writes a new file and makes sure that it is on disk: a full disk
// shows here at the latest, before anything is moved in.
func writeSynced(name string, text []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// dropStaging removes the staging directory, its journal first: without the
// journal, what remains after a death here is the state "staging".
func dropStaging(sessionDir string) error {
	dir := filepath.Join(sessionDir, stagingDir)
	if err := os.Remove(filepath.Join(dir, journalFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// records renders prd.json, with every task's status written out as pending,
// and seed-meta.json.
func records(b *Bundle) (plan, meta []byte, err error) {
	entries := slices.Clone(b.Tasks)
	for i := range entries {
		entries[i].Status = session.TaskPending
	}
	if plan, err = indented(entries); err != nil {
		return nil, nil, err
	}
	meta, err = indented(&session.SeedMeta{
		Source: b.Meta.Source, InterviewerModel: b.Meta.InterviewerModel, StartedAt: b.Meta.StartedAt, EndedAt: b.Meta.EndedAt,
		Tokens: b.Meta.Tokens, TLDR: b.TLDR, OpenQuestions: b.OpenQuestions, Blockers: b.Blockers, ScopeNotes: b.ScopeNotes,
	})
	return plan, meta, err
}

// indented renders JSON for a person to read: indented, and < and & as they are.
func indented(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}
