package seed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/git-tilth/git-tilth/internal/session"
)

// A bundle goes in through <session>/seed-staging, in these states:
//
//	nothing      no seed-staging: nothing of a bundle is anywhere, or all of it
//	             is in and its commit is on record
//	staging      seed-staging without journal.json: a bundle was being written
//	             there; nothing of it is outside
//	installing   seed-staging/journal.json exists and the seed is not yet on
//	             record: any of the paths that the journal names may be in place
//	done         seed-staging/journal.json exists and the seed is on record: a
//	             leftover, kept by a death between that record and Finish
//
// Recover turns each of them into "nothing". Contents stay in seed-staging until the end (files are linked in,
// not moved), so that what is removed again can be compared with what was put in.
const (
	stagingDir  = "seed-staging"
	journalFile = "journal.json"
	planFile    = session.TasksFile
	metaFile    = session.SeedMetaFile
)

// journal names everything that an installation may have put in place.
type journal struct {
	Version int `json:"version"`
	// Files are test files, relative to the worktree; the content of Files[i]
	// is staged under the name i.
	Files []string `json:"files"`
	// Dirs are the directories that did not exist before, outermost first.
	Dirs []string `json:"dirs"`
	// Records are files of the session directory, staged under their own names.
	Records []string `json:"records"`
}

// Stage writes a checked bundle into the session's staging directory. commit
// moves all of it in: the test files into the worktree, then seed-meta.json and
// prd.json into sessionDir; if it fails, nothing of the bundle is left. abort
// takes everything back, before or after commit, and may be called at any time
// until Finish. The caller commits to git between commit and Finish:
//
//	Stage → commit() → git commit → seed_committed on record → Finish
//
// After a death in between, Recover takes the bundle back.
func Stage(b *Bundle, worktree, sessionDir string) (commit func() error, abort func(), err error) {
	in := &installer{worktree: worktree, session: sessionDir}
	if err := in.stage(b); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("staging the seed: %w", err), in.undo())
	}
	commit = func() error {
		if err := in.install(); err != nil {
			return errors.Join(fmt.Errorf("putting the seed in place: %w", err), in.undo())
		}
		return nil
	}
	return commit, func() { _ = in.undo() }, nil
}

// Finish forgets the journal once the seed is on record. A leftover staging
// directory is harmless, so that a failure here fails nothing.
func Finish(sessionDir string) error { return dropStaging(sessionDir) }

// Unfinished says whether sessionDir holds a seed that was being put in place.
func Unfinished(sessionDir string) bool {
	_, err := os.Lstat(filepath.Join(sessionDir, stagingDir))
	return err == nil
}

// Leftover is what Recover found: paths relative to the worktree or the
// session directory.
type Leftover struct {
	Removed []string
	// Kept are paths whose content is not the bundle's: somebody wrote there
	// since, and what a person wrote is not removed.
	Kept []string
}

// Recover ends what a dead process left of an installation. committed says
// whether the record holds seed_committed; then the seed stays, else all of it
// is taken back. It may be run any number of times.
func Recover(worktree, sessionDir string, committed bool) (Leftover, error) {
	if !Unfinished(sessionDir) {
		return Leftover{}, nil
	}
	if committed {
		return Leftover{}, dropStaging(sessionDir)
	}
	in := &installer{worktree: worktree, session: sessionDir}
	err := in.undo()
	return in.left, err
}

type installer struct {
	worktree, session string
	journal           journal
	left              Leftover
}

func (in *installer) staged(name string) string {
	return filepath.Join(in.session, stagingDir, name)
}

// stage writes the contents, then the journal: with the journal on disk,
// everything that it names can be taken back.
func (in *installer) stage(b *Bundle) error {
	for _, name := range []string{planFile, metaFile} {
		if _, err := os.Lstat(filepath.Join(in.session, name)); err == nil {
			return fmt.Errorf("the session already has a %s", name)
		}
	}
	if err := dropStaging(in.session); err != nil {
		return err
	}
	if err := os.Mkdir(in.staged(""), 0o700); err != nil {
		return err
	}
	plan, meta, err := records(b)
	if err != nil {
		return err
	}
	in.journal = journal{Version: 1, Files: b.testPaths(), Records: []string{metaFile, planFile}}
	in.journal.Dirs = missingDirs(in.worktree, in.journal.Files)
	for i, p := range in.journal.Files {
		if err := writeSynced(in.staged(strconv.Itoa(i)), []byte(b.TestFiles[p]), 0o666); err != nil {
			return err
		}
	}
	if err := writeSynced(in.staged(metaFile), meta, 0o600); err != nil {
		return err
	}
	if err := writeSynced(in.staged(planFile), plan, 0o600); err != nil {
		return err
	}
	text, err := json.Marshal(in.journal)
	if err != nil {
		return err
	}
	return session.WriteFileAtomic(in.staged(journalFile), text)
}

// install puts everything in place; prd.json is the last, so that a session
// with a plan has all of its seed.
func (in *installer) install() error {
	if _, err := os.Lstat(in.staged(journalFile)); err != nil {
		return errors.New("the staged seed is gone")
	}
	root, err := os.OpenRoot(in.worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range in.journal.Dirs {
		if err := root.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for i, p := range in.journal.Files {
		if err := putInside(root, p, in.staged(strconv.Itoa(i))); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, name := range in.journal.Records {
		if err := in.putRecord(name); err != nil {
			return err
		}
	}
	return syncDir(in.session)
}

// putRecord links a staged file into the session directory, which fails where
// one of that name exists. File systems without hard links get a copy.
func (in *installer) putRecord(name string) error {
	to := filepath.Join(in.session, name)
	err := os.Link(in.staged(name), to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	text, err := os.ReadFile(in.staged(name))
	if err != nil {
		return err
	}
	return session.WriteFileAtomic(to, text)
}

// undo takes back whatever the journal names and drops the staging directory.
// It is idempotent, and goes on over single failures to remove what it can.
func (in *installer) undo() error {
	text, err := os.ReadFile(in.staged(journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return dropStaging(in.session)
	}
	if err != nil {
		return err
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("%s of an unfinished seed is damaged: %w", journalFile, err)
	}
	var errs []error
	for i := len(j.Records) - 1; i >= 0; i-- {
		errs = append(errs, in.takeRecord(j.Records[i]))
	}
	errs = append(errs, in.takeFiles(j))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return dropStaging(in.session)
}

// takeRecord removes an installed record if its content is the staged one.
func (in *installer) takeRecord(name string) error {
	if name != planFile && name != metaFile {
		return nil // not a name that this version installs: a journal is no licence to remove anything else
	}
	to := filepath.Join(in.session, name)
	have, err := os.ReadFile(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if want, err := os.ReadFile(in.staged(name)); err != nil || !bytes.Equal(have, want) {
		in.left.Kept = append(in.left.Kept, name)
		return nil
	}
	in.left.Removed = append(in.left.Removed, name)
	return os.Remove(to)
}

func (in *installer) takeFiles(j journal) error {
	root, err := os.OpenRoot(in.worktree)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for i, p := range j.Files {
		errs = append(errs, in.takeFile(root, p, in.staged(strconv.Itoa(i))))
	}
	for i := len(j.Dirs) - 1; i >= 0; i-- {
		removeEmptyDir(root, j.Dirs[i])
	}
	return errors.Join(errs...)
}

// takeFile removes an installed test file. A prefix of the staged content
// counts as ours too: a copy may have been cut off by the end of the process.
func (in *installer) takeFile(root *os.Root, p, staged string) error {
	if _, ok := formOf(p); !ok {
		return nil
	}
	info, err := root.Lstat(p)
	if err != nil {
		return nil // not there, or not reachable without leaving the worktree
	}
	want, err := os.ReadFile(staged)
	if err != nil {
		return err
	}
	have, err := root.ReadFile(p)
	if !info.Mode().IsRegular() || err != nil || !bytes.HasPrefix(want, have) {
		in.left.Kept = append(in.left.Kept, p)
		return nil
	}
	in.left.Removed = append(in.left.Removed, p)
	return root.Remove(p)
}

// removeEmptyDir removes a directory that the installation made, if nothing
// else has come into it.
func removeEmptyDir(root *os.Root, dir string) {
	if _, ok := formOf(dir); !ok {
		return
	}
	if info, err := root.Lstat(dir); err == nil && info.IsDir() {
		_ = root.Remove(dir)
	}
}
