package held

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The errors of CommonOf for a missing repository. Every other error means that the repository exists, or may exist,
// and is unusable: then its content is unknown.
var (
	ErrSourceGone    = errors.New("is gone")
	ErrSourceUnknown = errors.New("the source repository is not known")
)

// CommonOf finds the common git directory of a session's repository. check is nil for an unreadable checkpoint. It
// returns the first of these that leads to a repository. If several do, it prefers the first that has this session's
// worktree, then the first that has its branch:
//
//  1. the checkpoint's source, then the checkpoint's note of the common directory
//  2. the mark of an unfinished teardown
//  3. the worktree's link, which git maintains: after a move of the repository `git worktree repair` does. A worker may
//     have written it
//  4. the source of session_start. For a session that moves between machines it counts only if the others name nothing,
//     because its record may have begun in another clone on this machine with a branch of the same name
//
// A fork or fetch in progress uses the repository in its mark, because the others name its origin. The error is
// ErrSourceGone or ErrSourceUnknown if none of them leads to a repository.
func CommonOf(s *session.Session, check *session.Checkpoint) (string, error) {
	if common, making := ResetMark(s); making {
		if at, err := gitx.CommonDirOf(common); err == nil {
			return at, nil
		}
	}
	path := WorkspaceOf(s, check)
	named := sourceNames(s, check)
	for _, name := range named {
		if common, err := gitx.CommonDirOf(name); err == nil {
			if _, registered := gitx.AdminDir(common, path); registered {
				return common, nil
			}
		}
	}
	linked, registered, err := gitx.LinkedCommon(path)
	if rel, outside := filepath.Rel(proc.RealPath(s.Dir), linked); outside == nil && filepath.IsLocal(rel) {
		registered, err = false, gitx.ErrNotFound // a worker made it in its worktree
	}
	switch {
	case err == nil && (registered || gitx.HasBranch(linked, s.Branch())):
		return linked, nil
	case err != nil && !errors.Is(err, gitx.ErrNotFound) && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the repository of the worktree %s cannot be used: %w", path, err)
	}
	var found []string
	var unclear error
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

// AtRest returns the checkpoint and the common git directory of a session without an unfinished operation. The error is
// a *RefusedError.
func AtRest(s *session.Session) (check *session.Checkpoint, common string, err error) {
	if check, err = s.Checkpoint(); err != nil {
		return nil, "", &RefusedError{fmt.Sprintf("session %s is damaged: %s", s.ID, err), "git tilth doctor"}
	}
	if Unfinished(s) {
		return nil, "", &RefusedError{"a rewind or reset of session " + s.ID + " was not finished",
			"git tilth resume " + s.ID + "\ngit tilth reset " + s.ID}
	}
	if common, err = CommonOf(s, check); err != nil {
		return nil, "", &RefusedError{err.Error(), SourceHint(s, WorkspaceOf(s, check))}
	}
	return check, common, nil
}

// HasSession reports whether a repository has the session's branch or an entry for its worktree at path.
func HasSession(common string, s *session.Session, path string) bool {
	if gitx.HasBranch(common, s.Branch()) {
		return true
	}
	_, found := gitx.AdminDir(common, path)
	return found
}

// sourceNames returns the paths by which the session's files name its repository.
func sourceNames(s *session.Session, check *session.Checkpoint) []string {
	marked, _ := ResetMark(s)
	names := []string{marked}
	if check != nil {
		names = []string{check.Source, check.GitCommonDir, marked}
	}
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return !filepath.IsAbs(name) }))
}

// AdoptSource updates the repository's path in the checkpoint, which is written with the next change of the session.
func (h *Handle) AdoptSource() {
	if h.Common == "" {
		return
	}
	h.Checkpoint.Source = SourceNow(h.Checkpoint.Source, h.Common)
	h.Checkpoint.GitCommonDir = h.Common
}

// SourceNow returns the recorded source or, if it is missing or another repository, the main worktree of the found
// repository. A directory without a repository is kept, because GIT_WORK_TREE named it.
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

// SourceHint returns the hint for a missing source: `git worktree repair` in the moved repository. If the repository of
// the current directory has the session, the hint names it.
func SourceHint(s *session.Session, path string) string {
	repair := "echo 'where is the repository now?' && read -r place && git -C \"$place\" " +
		text.ShellQuote("worktree", "repair", path)
	dir, _ := os.Getwd() // "" is not a repository
	for ; dir != "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if common, err := gitx.CommonDirOf(dir); err == nil && HasSession(common, s, path) {
			repair = GitLine(dir, "worktree", "repair", path)
			break
		}
	}
	return repair + "\ngit tilth reset " + s.ID
}

// Renamed returns the new name of the session's branch if it was renamed, or "". Git updates HEAD of a worktree, and
// the branch still has the session's last commit.
func Renamed(ctx context.Context, g *gitx.Git, common string, s *session.Session, path, last string) string {
	state, on := TreeAt(ctx, g, common, path, s.Branch())
	if state != TreeElsewhere || on == "" || last == "" {
		return ""
	}
	if _, err := g.Read(ctx, gitx.InRepo(common, "merge-base", "--is-ancestor", last, "refs/heads/"+on)); err != nil {
		return ""
	}
	return on
}

// RenameBack returns the command that renames the session's branch back.
func RenameBack(common, renamed string, s *session.Session) string {
	return GitLine(common, "branch", "-m", renamed, s.Branch())
}

// IsCopyOf reports whether dir is a different directory with a session of the same id.
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

// GitVars returns the variables with which git in a session's worktree finds its repository without the .git file,
// which a worker may have replaced. It returns none for other directories. The session's own files name the
// repository.
func GitVars(dir string) []string {
	dir = proc.RealPath(dir)
	for path := dir; path != filepath.Dir(path); path = filepath.Dir(path) {
		of := filepath.Dir(path)
		if filepath.Base(path) != session.WorkspaceDir {
			if of = filepath.Dir(of); filepath.Base(filepath.Dir(path)) != session.LanesDir {
				continue
			}
		}
		if !session.ValidID(filepath.Base(of)) {
			continue
		}
		s := &session.Session{ID: filepath.Base(of), Dir: of}
		check, _ := s.Checkpoint()
		for _, name := range sourceNames(s, check) {
			common, err := gitx.CommonDirOf(name)
			if err != nil {
				continue
			}
			if admin, found := gitx.AdminDir(common, path); found {
				return []string{"GIT_DIR=" + admin, "GIT_WORK_TREE=" + path}
			}
		}
	}
	return nil
}
