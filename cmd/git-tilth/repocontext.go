package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// repoContext is the context of a command: the repository in which it was called, if any, its settings, and the
// sessions root.
type repoContext struct {
	*equip.Kit
	p      *process
	inRepo bool
	flags  map[string]string // the settings among the command's flags
	tasks  []string          // that the command names

	repos sync.Map                              // the repositories of paths that sessions name
	holds func() func(branch, path string) bool // whether the repository has a session's branch or worktree, read once
}

// enter finds the command's repository. dir is the workspace argument, "" for the current directory. git's variables
// are honoured once, here, unless a directory was named, which takes precedence.
func (p *process) enter(dir string, flags map[string]string) (*repoContext, error) {
	w := &repoContext{p: p, flags: flags, Kit: equip.New(&equip.Kit{Ctx: p.ctx, Dir: p.dir, Environ: p.environ,
		Version: version, Changes: p.changes, Verbose: p.verbose, Warnf: p.warnf, Git: p.git(p.dryRun)})}
	at, environ := p.dir, p.environ
	if dir != "" {
		at, environ = p.inDir(dir), nil
		if fi, err := os.Stat(at); err != nil || !fi.IsDir() {
			return nil, refuse("", "%s is not a directory", dir)
		}
	}
	if vars := held.GitVars(at); vars != nil {
		environ = append(slices.Clone(environ), vars...)
	}
	loc, err := w.Git.Discover(p.ctx, at, environ)
	switch {
	case err == nil:
		w.Loc, w.inRepo = loc, true
	case !errors.Is(err, gitx.ErrNotFound):
		return nil, fail("", err)
	}
	w.holds = sync.OnceValue(w.readHoldings)
	if err := w.configure(w.Loc.CommonDir, settingsOf(loc)); err != nil {
		return nil, err
	}
	root := w.Config.Text("tilth.sessionsDir")
	if root != "" {
		root = w.InHome(root) // the repository that a relative one is read in varies
	}
	w.Store = session.Store{Root: sessionsRoot(p.getenv, root)}
	if w.Store.Root == "" {
		return nil, refuse(equip.AnyRoot(),
			"HOME is not set, so there is no directory for sessions")
	}
	w.Git.FilterTime = w.Config.Duration("tilth.validatorTimeout")
	w.Git.MaxFileSize = w.Config.Count("tilth.maxFileSize")
	return w, w.notInside()
}

// readHoldings reads the repository's branches and worktrees.
func (w *repoContext) readHoldings() func(branch, path string) bool {
	refs, err := w.Git.Refs(w.p.ctx, w.Loc.CommonDir, "refs/heads/")
	places := gitx.WorktreesBelow(w.Loc.CommonDir, w.Store.Root)
	return func(branch, path string) bool {
		return err != nil || refs["refs/heads/"+branch] != "" || slices.Contains(places, path)
	}
}

// notInside refuses a changing command that a run's worker, validator or hook calls. A variable marks such a call.
// This is advice for a well-meaning worker; the sandbox stops the others.
func (w *repoContext) notInside() error {
	id := w.p.getenv(session.MarkVar)
	if !w.p.changes || w.p.dryRun || id == "" {
		return nil
	}
	return refuse("", "this command runs inside the run of session %s, where git tilth changes nothing", id)
}

// settingsOf returns the git directory with the settings of a location: a linked worktree's own (git config
// --worktree), except for a session's worktree, where a worker could change them.
func settingsOf(loc gitx.Location) string {
	if session.IsWorkplace(loc.TopLevel) {
		return loc.CommonDir
	}
	return loc.GitDir
}

// configure loads the settings of a repository, "" for none, as read in one of its git directories.
func (w *repoContext) configure(common, in string) error {
	entries, err := w.Git.ConfigList(w.p.ctx, in)
	if err != nil {
		return fail("", err)
	}
	if err := w.Set(common, w.flags, entries); err != nil {
		return err
	}
	for name, keys := range w.Config.Agents() {
		if err := agent.KnownKeys(name, keys); err != nil {
			return refuse("git config --show-origin --get-regexp '^tilth[.]agent[.]'", "%s", err)
		}
	}
	return nil
}

// configureFor loads the settings of the session's repository, wherever the command is typed: another repository's
// validators might accept a change that the session's own refuse.
func (w *repoContext) configureFor(s *session.Session) error {
	check, err := s.Checkpoint()
	if err != nil {
		return nil // the next read reports it
	}
	common, err := held.CommonOf(s, check)
	if err != nil || common == w.Common {
		return nil // without its repository nothing is judged
	}
	err = w.configure(common, common)
	if failed := new(exitError); errors.As(err, &failed) && failed.code == exitFailed {
		return fail("git tilth doctor",
			fmt.Errorf("read the settings of session %s: %w", s.ID, err))
	}
	return err
}

// repo refuses a command outside a repository.
func (w *repoContext) repo() error {
	if !w.inRepo {
		return refuse("git init && "+w.FirstCommit(), "not inside a git repository")
	}
	return nil
}

// hold takes a session for this process.
func (w *repoContext) hold(s *session.Session, sink func(record.Line)) (*held.Handle, error) {
	return lifecycle.Open(w.p.ctx, w.Deps(sink), s)
}

// in returns the action of a command that runs in the current directory.
func (p *process) in(do func(*cli.Context, *repoContext) error) cli.ActionFunc {
	return func(ctx *cli.Context) error {
		dir := ""
		if ctx.Command.ArgsUsage == "[<workspace>]" {
			dir = ctx.Args().First()
		}
		w, err := p.enter(dir, givenSettings(ctx))
		if err != nil {
			return err
		}
		return do(ctx, w)
	}
}

// sessionAction is a command's action on its last argument, a session.
type sessionAction func(*cli.Context, *repoContext, *session.Session) error

// onSession is the action of a command that only looks at a session.
func (p *process) onSession(do sessionAction) cli.ActionFunc {
	return p.on(false, func(ctx *cli.Context, w *repoContext, s *session.Session) error {
		return w.orGone(s, do(ctx, w, s))
	})
}

// orGone returns the error of a command that read a session: the session was deleted meanwhile, or err.
func (w *repoContext) orGone(s *session.Session, err error) error {
	if err == nil || w.p.ctx.Err() != nil {
		return err
	}
	if _, gone := w.Store.Find(s.ID); gone != nil {
		return gone
	}
	if holder, busy := s.Holder(); busy && held.Resetting(s) {
		return holder
	}
	return err
}

// atRest refuses a session that is in use. changed reports whether the session changed since, so that a reader discards
// its findings.
func (w *repoContext) atRest(s *session.Session) (changed func() error, err error) {
	unchanged, err := held.UnchangedSince(s)
	return func() error {
		if unchanged() {
			return nil
		}
		return w.orGone(s, held.InUse(s))
	}, err
}

// onSessionToChange is the action of a command that changes one.
func (p *process) onSessionToChange(do sessionAction) cli.ActionFunc { return p.on(true, do) }

// onHeld is the action of a command that takes one for this process.
func (p *process) onHeld(do func(*cli.Context, *repoContext, *held.Handle) error) cli.ActionFunc {
	return p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
		h, err := w.hold(s, nil)
		if err != nil {
			return err
		}
		defer h.Close()
		return do(ctx, w, h)
	})
}

func (p *process) on(toChange bool, do sessionAction) cli.ActionFunc {
	return p.in(func(ctx *cli.Context, w *repoContext) (err error) {
		args, usage := ctx.Args().Slice(), ctx.Command.ArgsUsage
		var s *session.Session
		if strings.Contains(usage, "<task>") {
			s, err = w.tasksAndSession(ctx, toChange)
		} else {
			part := append(args[mostArgs(usage)-1:], "")[0]
			s, err = w.session(part, toChange)
			flag, task := taskFlags[ctx.Command.Name], taskNumber(part)
			if err != nil && flag != "" && task != "" {
				return refuse(fmt.Sprintf("git tilth %s %s T-%03s", ctx.Command.Name, flag, task),
					"%s is a task, not a session", part)
			}
		}
		if err == nil && toChange {
			err = w.configureFor(s)
		}
		if err == nil && strings.Contains(usage, "<task>") {
			_, err = tasksWith(s, w.tasks)
		}
		if err != nil {
			return err
		}
		return do(ctx, w, s)
	})
}

// taskFlags are the flags for a task in commands with a session as their argument.
var taskFlags = map[string]string{"log": "--task", "fork": "--at"}

// tasksAndSession reads the arguments of a command on tasks: tasks, then an optional session. A number is a task if the
// current session has that task, else a part of a session's id.
func (w *repoContext) tasksAndSession(ctx *cli.Context, toChange bool) (*session.Session, error) {
	args, most := ctx.Args().Slice(), mostArgs(ctx.Command.ArgsUsage)-1
	n := 0
	for n < len(args) && n < most && taskNumber(args[n]) != "" {
		n++
	}
	needed := ctx.Command.ArgsUsage[0] == '<'
	if len(args) > n+1 || needed && n == 0 {
		return nil, refuse(commandName(ctx)+" -h", "%q is not a task", args[n])
	}
	if n < len(args) {
		s, err := w.session(args[n], toChange)
		if err == nil {
			w.tasks = tasksIn(s, args[:n])
		}
		return s, err
	}
	s, err := w.session("", toChange)
	if n > 0 && !(needed && n == 1) {
		if plan, unread := tasksOf(s); err != nil || unread == nil && session.TaskOf(plan, args[n-1]) == "" {
			if other, unknown := w.session(args[n-1], toChange); unknown == nil {
				s, err, n = other, nil, n-1
			}
		}
	}
	if err == nil {
		w.tasks = tasksIn(s, args[:n])
	}
	return s, err
}

func tasksOf(s *session.Session) ([]session.Task, error) {
	if s == nil {
		return nil, fs.ErrNotExist
	}
	return s.Tasks()
}

// tasksIn returns the ids of the tasks that words name. Other words are returned unchanged.
func tasksIn(s *session.Session, words []string) (ids []string) {
	plan, _ := s.Tasks() // later readers report an unreadable plan
	for _, word := range words {
		id := session.TaskOf(plan, word)
		if id == "" && taskNumber(word) != "" {
			id = fmt.Sprintf("T-%03s", taskNumber(word))
		}
		ids = append(ids, cmp.Or(id, word))
	}
	return ids
}

// tasksWith are a session's tasks. A list that cannot be read is refused, and so is one without a task that is named.
func tasksWith(s *session.Session, named []string) ([]session.Task, error) {
	plan, err := s.Tasks()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if holder, busy := s.Holder(); busy {
			return nil, holder // it is being made
		}
		hint := "git tilth reset " + s.ID
		if _, err := os.Lstat(s.Path(session.InterviewFile)); err == nil {
			hint = goOn + "\n" + hint
		}
		return nil, refuse(hint, "session %s has no tasks: its preparation was not finished", s.ID)
	case err != nil:
		return nil, refuse("git tilth show "+s.ID, "%s", err)
	}
	for _, id := range named {
		if session.IndexOf(plan, id) < 0 {
			return nil, refuse("git tilth show "+s.ID, "session %s has no task %s", s.ID, id)
		}
	}
	return plan, nil
}
