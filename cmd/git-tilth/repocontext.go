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

// repoContext is the context of a command: its repository, if any, the settings, and the sessions root.
type repoContext struct {
	*equip.Kit
	p      *process
	inRepo bool
	flags  map[string]string // settings given as flags
	tasks  []string          // tasks named by the command

	repos sync.Map                              // repositories by the paths that sessions name
	holds func() func(branch, path string) bool // whether the repository has a session's branch or worktree; read once
}

// enter finds the command's repository. dir is the workspace argument, or "" for the current directory. enter reads
// git's environment variables once; a named directory takes precedence.
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
		root = w.InHome(root) // a relative root is below the home directory, for every repository
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

// readHoldings reads the repository's branches and worktrees once.
func (w *repoContext) readHoldings() func(branch, path string) bool {
	refs, err := w.Git.Refs(w.p.ctx, w.Loc.CommonDir, "refs/heads/")
	places := gitx.WorktreesBelow(w.Loc.CommonDir, w.Store.Root)
	return func(branch, path string) bool {
		return err != nil || refs["refs/heads/"+branch] != "" || slices.Contains(places, path)
	}
}

// notInside refuses a changing command inside a run's worker, validator or hook, which a variable marks. This is
// advice for a well-meaning worker; the sandbox stops the others.
func (w *repoContext) notInside() error {
	id := w.p.getenv(session.MarkVar)
	if !w.p.changes || w.p.dryRun || id == "" {
		return nil
	}
	return refuse("", "this command runs inside the run of session %s, where git tilth changes nothing", id)
}

// settingsOf returns the git directory that has a location's settings. That is a linked worktree's own (git config
// --worktree), except for a session's worktree, because a worker could change its settings.
func settingsOf(loc gitx.Location) string {
	if session.IsWorkplace(loc.TopLevel) {
		return loc.CommonDir
	}
	return loc.GitDir
}

// configure loads the settings of a repository, or the defaults for "", from one of its git directories.
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

// configureFor loads the settings of the session's repository, from any directory. Another repository's validators
// might accept a change that the session's own refuse.
func (w *repoContext) configureFor(s *session.Session) error {
	check, err := s.Checkpoint()
	if err != nil {
		return nil // the next read reports the error
	}
	common, err := held.CommonOf(s, check)
	if err != nil || common == w.Common {
		return nil // without its repository, nothing is judged
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

// hold locks a session for this process.
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

// sessionAction is a command's action on the session in its last argument.
type sessionAction func(*cli.Context, *repoContext, *session.Session) error

// onSession is the action of a command that only reads a session.
func (p *process) onSession(do sessionAction) cli.ActionFunc {
	return p.on(false, func(ctx *cli.Context, w *repoContext, s *session.Session) error {
		return w.orGone(s, do(ctx, w, s))
	})
}

// orGone returns err, or a better error if the session was deleted meanwhile.
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

// atRest refuses a session that is in use. changed reports whether the session has changed since; the reader then
// discards its findings.
func (w *repoContext) atRest(s *session.Session) (changed func() error, err error) {
	unchanged, err := held.UnchangedSince(s)
	return func() error {
		if unchanged() {
			return nil
		}
		return w.orGone(s, held.InUse(s))
	}, err
}

// onSessionToChange is the action of a command that changes a session.
func (p *process) onSessionToChange(do sessionAction) cli.ActionFunc { return p.on(true, do) }

// onHeld is the action of a command that locks a session.
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

// taskFlags are the task flags of commands with a session argument.
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

// tasksIn returns the ids of the tasks in a list of words. It returns other words unchanged.
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

// tasksWith returns a session's tasks. It refuses an unreadable list, and a list that lacks a named task.
func tasksWith(s *session.Session, named []string) ([]session.Task, error) {
	plan, err := s.Tasks()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if holder, busy := s.Holder(); busy {
			return nil, holder // another process is creating the session
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
