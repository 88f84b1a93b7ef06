package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
	"github.com/git-tilth/git-tilth/internal/text"
)

// sessionsRoot returns the sessions root: $TILTH_SESSIONS_DIR, else $TILTH_HOME/sessions, else configured (the value of
// tilth.sessionsDir), else ~/.tilth/sessions. A leading ~/ is the home directory. The result has no links, and is
// absolute if the working directory is known. It is "" without a setting and without a home, because a root below the
// working directory would be in a repository.
func sessionsRoot(getenv func(string) string, configured string) string {
	home := getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	root := filepath.Join(home, ".tilth", "sessions")
	switch {
	case getenv("TILTH_SESSIONS_DIR") != "":
		root = getenv("TILTH_SESSIONS_DIR")
	case getenv("TILTH_HOME") != "":
		root = filepath.Join(getenv("TILTH_HOME"), "sessions")
	case configured != "":
		root = configured
	case home == "":
		return ""
	}
	if rest, ok := strings.CutPrefix(root, "~/"); ok {
		root = filepath.Join(home, rest)
	}
	return proc.RealPath(root) // the sandbox hides links to it
}

// session finds the session of a command: the named one, with this repository's first; the session of this worktree or
// judged tree; the newest of this repository; the newest of all. If a newer session is too damaged to name its
// repository, a reading command prints a note, and a changing command refuses.
func (w *repoContext) session(arg string, toChange bool) (*session.Session, error) {
	if arg != "" {
		s, err := w.Store.FindFirst(arg, w.isOurs())
		if n := taskNumber(arg); err != nil && n != "" && len(n) <= 3 {
			return nil, refuse("git tilth review "+arg, "%q is a task; this command takes a session", arg)
		}
		return s, err
	}
	if s, ok := containing(w.Store, w.p.dir); ok {
		return s, nil
	}
	ids, err := w.Store.IDs()
	if err != nil {
		return nil, fail("", err)
	}
	var unclear []string
	for _, id := range ids {
		s, err := w.Store.Find(id)
		if err != nil {
			continue
		}
		belongs, known := !w.inRepo, true
		if w.inRepo {
			belongs, known = w.belongs(s)
		}
		if belongs {
			return s, w.passOver(unclear, s, toChange)
		}
		if _, busy := s.Holder(); !known && !busy { // a busy session may be incomplete
			unclear = append(unclear, id)
		}
	}
	switch {
	case len(unclear) > 0:
		return nil, refuse("git tilth list --all",
			"no session in %s belongs to this repository, except perhaps %s, which cannot be read", w.Store.Root,
			strings.Join(unclear, ", "))
	case w.inRepo:
		return nil, refuse("git tilth prep-feature", "no session of this repository in %s", w.Store.Root)
	}
	return nil, refuse("git init && "+w.FirstCommit(), "no session in %s, and this is not a git repository",
		w.Store.Root)
}

// isOurs returns a function that reports whether a session belongs to this repository; nil outside a repository.
func (w *repoContext) isOurs() func(*session.Session) bool {
	if !w.inRepo {
		return nil
	}
	return func(s *session.Session) bool {
		ours, _ := w.belongs(s)
		return ours
	}
}

// containing returns the session whose worktree, lane or judged tree contains dir, if any. It resolves links in dir
// and in the root.
func containing(st session.Store, dir string) (*session.Session, bool) {
	root, err := filepath.EvalSymlinks(st.Root)
	if err != nil {
		return nil, false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, false
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, false
	}
	if !session.IsWorkplace(rel) {
		return nil, false
	}
	id, _, _ := strings.Cut(rel, string(filepath.Separator))
	s, err := st.Find(id)
	return s, err == nil
}

// passOver selects a session even if newer damaged ones may belong to this repository.
func (w *repoContext) passOver(unclear []string, s *session.Session, toChange bool) error {
	if len(unclear) == 0 {
		return nil
	}
	says := "session " + strings.Join(unclear, ", ") +
		" is newer than the sessions of this repository and may belong to it, but cannot be read"
	if toChange {
		return refuse("git tilth reset "+unclear[0],
			"%s; name a session, for example %s, or delete the damaged one", says, s.ID)
	}
	w.p.warnf("git-tilth: %s\n", says)
	return nil
}

// belongs reports whether a session was created in this repository or one of its worktrees, and whether that is known.
// For a damaged checkpoint it finds the repository as the teardown does.
func (w *repoContext) belongs(s *session.Session) (belongs, known bool) {
	check, err := s.Checkpoint()
	if err != nil {
		check = nil
	} else {
		linked, _, err := gitx.LinkedCommon(held.WorkspaceOf(s, check))
		if err != nil {
			linked = ""
		}
		if belongs, sure := w.named(s, check.Source, check.GitCommonDir, linked); sure {
			return belongs, true
		}
	}
	common, err := held.CommonOf(s, check)
	switch {
	case err == nil:
		return common == w.Loc.CommonDir, true
	case check != nil && check.Source == w.Loc.Source, held.HasSession(w.Loc.CommonDir, s, s.Workspace()):
		return true, true
	}
	return false, !errors.Is(err, held.ErrSourceUnknown)
}

// named reports whether a session belongs to this repository, by the session's three names of its repository; each may
// be empty. The answer is sure if all names resolve to one repository. If that repository is missing, it may have
// moved here: then the session belongs to this repository if this one has its branch or worktree. named must be fast,
// because a list may call it ten thousand times.
func (w *repoContext) named(s *session.Session, source, commonDir, linked string) (belongs, sure bool) {
	var found []string
	gone := source != "" && linked == ""
	for _, name := range []string{source, commonDir, linked} {
		if name == "" {
			continue
		}
		common, err := w.repoAt(name)
		gone = gone && errors.Is(err, os.ErrNotExist)
		found = append(found, common) // "" after an error
	}
	switch found = slices.Compact(found); {
	case gone && !held.Resetting(s):
		return source == w.Loc.Source || w.holds()(s.Branch(), s.Workspace()), true
	case len(found) != 1 || found[0] == "":
		return false, false
	}
	return found[0] == w.Loc.CommonDir, true
}

// repoAt returns the git directory of a path's repository. It reads each path once, because thousands of sessions may
// name it.
func (w *repoContext) repoAt(path string) (common string, err error) {
	type repo struct {
		common string
		err    error
	}
	known, is := w.repos.Load(path)
	if !is {
		common, err := gitx.CommonDirOf(path)
		known, _ = w.repos.LoadOrStore(path, repo{common, err})
	}
	return known.(repo).common, known.(repo).err
}

// overviews returns the sessions of this repository, newest first, or those of all repositories.
func (w *repoContext) overviews(all bool) ([]session.Overview, error) {
	ids, err := w.Store.IDs()
	if err != nil {
		return nil, fail("", err)
	}
	if all {
		return w.withElsewhere(w.Store.Overview(ids, nil)), nil
	}
	return w.withElsewhere(w.Store.Overview(ids, func(s *session.Session, source, commonDir, linked string) bool {
		belongs, sure := w.named(s, source, commonDir, linked)
		if !sure {
			belongs, _ = w.belongs(s)
		}
		return belongs
	})), nil
}

// withElsewhere fills in the facts from each session's repository.
func (w *repoContext) withElsewhere(all []session.Overview) []session.Overview {
	named, of := map[string][]*session.Overview{}, map[string][]*session.Overview{}
	for i := range all {
		name := cmp.Or(all[i].GitCommonDir, all[i].Source)
		named[name] = append(named[name], &all[i])
	}
	for name, those := range named {
		if common, err := gitx.CommonDirOf(name); err == nil {
			of[common] = append(of[common], those...)
		}
	}
	var wg sync.WaitGroup
	for common, those := range of {
		wg.Go(func() { take.FindElsewhere(w.p.ctx, w.Git, common, those) })
	}
	wg.Wait()
	return all
}

// commonOf returns the git directory of a session's repository by its checkpoint.
func commonOf(s *session.Session) (string, error) {
	check, err := s.Checkpoint()
	if err != nil {
		return "", err
	}
	return held.CommonOf(s, check)
}

// workOf returns a git revision range with the session's own commits: those since its base.
func workOf(s *session.Session) string {
	begun, err := s.State()
	switch {
	case err == nil && begun.Base != "":
		return text.Head(begun.Base, 10) + ".." + s.Branch()
	case err == nil && begun.Seed != nil:
		return text.Head(begun.Seed.SHA, 10) + ".." + s.Branch()
	}
	return s.Branch()
}
