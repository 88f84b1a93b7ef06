package held

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Why the repository of a session cannot be named. Every other error of CommonOf means that it is there, or may be,
// and cannot be used: then nothing may be concluded about what it holds.
var (
	ErrSourceGone    = errors.New("is gone")
	ErrSourceUnknown = errors.New("its source repository is not known")
)

// CommonOf finds the common git directory of the repository that a session was made in. check is nil for a session
// whose checkpoint cannot be read. The first of these that leads to a repository, where more than one does, the first
// whose repository has this session's worktree or branch:
//
//  1. the worktree's own link, which git keeps up: after a repository was moved `git worktree repair` does
//  2. the checkpoint's source, then the checkpoint's note of the common directory
//  3. what a teardown that was begun wrote down
//  4. the source of session_start; of a session that travels only where the others name nothing: its record may have
//     begun in another clone on this machine, which has a branch of the same name
//
// What is being made, by a fork or a fetch, is made in the repository that its mark names: the others are where it
// comes from. The error is ErrSourceGone or ErrSourceUnknown if there is nothing at any of them.
func CommonOf(s *session.Session, check *session.Checkpoint) (string, error) {
	if _, common, making := ResetMark(s); making {
		if at, err := gitx.CommonDirOf(common); err == nil {
			return at, nil
		}
	}
	path := WorkspaceOf(s, check)
	linked, registered, err := gitx.LinkedCommon(path)
	switch {
	case err == nil && (registered || gitx.SessionRefs(linked)(s.Branch(), "")):
		return linked, nil
	case err != nil && !errors.Is(err, gitx.ErrNotFound) && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the repository of the worktree %s cannot be used: %w", path, err)
	}
	var found []string
	var unclear error
	named := sourceNames(s, check)
	try := func(name string) {
		common, err := gitx.CommonDirOf(name)
		switch {
		case err == nil && !slices.Contains(found, common):
			found = append(found, common)
		case err != nil && unclear == nil && !errors.Is(err, os.ErrNotExist):
			unclear = fmt.Errorf("the source repository %s cannot be used: %w", name, err)
		}
	}
	for _, name := range named {
		try(name)
	}
	knows := func(common string) bool { return HasSession(common, s, path) }
	if i := slices.IndexFunc(found, knows); i >= 0 {
		return found[i], nil
	}
	if len(named) == 0 || !Exists(s.Path(session.TravelDir)) {
		// A record that cannot be read names none.
		start, _ := record.ReadBeginning(s.Path(session.RecordFile))
		if filepath.IsAbs(start.Source) && !slices.Contains(named, start.Source) {
			named = append(named, start.Source)
			try(start.Source)
		}
	}
	i := slices.IndexFunc(found, knows)
	switch {
	case i >= 0:
		return found[i], nil
	case unclear != nil:
		return "", unclear
	case len(found) > 0:
		return found[0], nil
	case len(named) == 0:
		return "", ErrSourceUnknown
	}
	return "", fmt.Errorf("the source repository %s %w", named[0], ErrSourceGone)
}

// AtRest is the checkpoint and the common git directory of a session that can be looked at as a whole. The error is a
// *RefusedError.
func AtRest(s *session.Session) (check *session.Checkpoint, common string, err error) {
	if check, err = s.Checkpoint(); err != nil {
		return nil, "", &RefusedError{fmt.Sprintf("session %s is damaged: %s", s.ID, err), "git tilth doctor"}
	}
	if Unfinished(s) {
		return nil, "", &RefusedError{"a rewind or reset of session " + s.ID + " was begun and not finished",
			"git tilth resume " + s.ID + "\ngit tilth reset " + s.ID}
	}
	if common, err = CommonOf(s, check); err != nil {
		return nil, "", &RefusedError{err.Error(), SourceHint(s, WorkspaceOf(s, check))}
	}
	return check, common, nil
}

// HasSession reports whether a repository has the session's branch or an entry for its worktree at path.
func HasSession(common string, s *session.Session, path string) bool {
	if gitx.SessionRefs(common)(s.Branch(), "") {
		return true
	}
	_, found := gitx.AdminDir(common, path)
	return found
}

// sourceNames are the paths by which the session's own files call its repository.
func sourceNames(s *session.Session, check *session.Checkpoint) []string {
	_, marked, _ := ResetMark(s)
	names := []string{marked}
	if check != nil {
		names = []string{check.Source, check.GitCommonDir, marked}
	}
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return !filepath.IsAbs(name) }))
}

// AdoptSource puts into the checkpoint where the repository is now, if that is not what it says. It is written with the
// next change of the session.
func (h *Handle) AdoptSource() {
	if h.Common == "" {
		return
	}
	h.Checkpoint.Source = SourceNow(h.Checkpoint.Source, h.Common)
	h.Checkpoint.GitCommonDir = h.Common
}

// SourceNow is the recorded source, or, where nothing is there any more or another repository is, the main worktree
// of the one that was found. A directory without a repository stays: GIT_WORK_TREE named it.
func SourceNow(recorded, common string) string {
	of, err := gitx.CommonDirOf(recorded)
	_, gone := os.Lstat(recorded)
	if err == nil && of == common || err != nil && filepath.IsAbs(recorded) && !errors.Is(gone, os.ErrNotExist) {
		return recorded
	}
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common)
	}
	return common
}

// SourceHint is how to go on where the source is gone: what git calls its worktree by is mended from the repository's
// side.
func SourceHint(s *session.Session, path string) string {
	repair := "echo 'where is the repository now?' && read -r place && git -C \"$place\" " +
		text.ShellQuote("worktree", "repair", path)
	return repair + "\ngit tilth reset " + s.ID
}

// IsCopyOf reports whether dir is another directory than the session's that holds a session with its id.
func IsCopyOf(s *session.Session, dir string) bool {
	if filepath.Base(dir) != s.ID {
		return false
	}
	there, err := os.Stat(dir)
	if err != nil || !there.IsDir() {
		return false
	}
	if own, err := os.Stat(s.Dir); err != nil || os.SameFile(own, there) {
		return false
	}
	return Exists(filepath.Join(dir, session.CheckpointFile)) || Exists(filepath.Join(dir, session.RecordFile))
}
