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
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// repoContext is where a command stands: the repository it was called in, if any, the settings that hold there and the
// sessions root.
type repoContext struct {
	p      *process
	git    *gitx.Git
	loc    gitx.Location // zero outside a repository
	inRepo bool
	config *config.Config
	common string            // the repository whose settings these are, "" for none
	flags  map[string]string // the settings among the command's flags
	store  session.Store
	redact *record.Redactor
	tasks  []string          // that the command names
	keys   map[string]string // credentials that did not come from the environment
	asked  map[string]string // what git's credential helpers said, by URL
	said   map[string]bool   // settings without an effect that were named

	credentials []string // files of git's that hold them
	gitFiles    []string // files that git's settings name

	gone  sync.Map                              // by name of a repository: whether nothing is there any more
	holds func() func(branch, path string) bool // what the repository has of a session, read once
}

// enter finds out where the command stands. dir is the workspace argument, "" for the current directory. git's
// variables are honoured once, here, and not when a directory was named: then that is what the user meant.
func (p *process) enter(dir string, flags map[string]string) (*repoContext, error) {
	w := &repoContext{p: p, flags: flags, keys: map[string]string{}, asked: map[string]string{},
		said: map[string]bool{}}
	w.git = p.git(p.dryRun)
	w.git.Sandbox = w.sandbox
	at, environ := p.dir, p.environ
	if dir != "" {
		at, environ = p.inDir(dir), nil
		if fi, err := os.Stat(at); err != nil || !fi.IsDir() {
			return nil, refuse("", "%s is not a directory", dir)
		}
	}
	loc, err := w.git.Discover(p.ctx, at, environ)
	switch {
	case err == nil:
		w.loc, w.inRepo = loc, true
	case !errors.Is(err, gitx.ErrNotFound):
		return nil, fail("", err)
	}
	w.holds = sync.OnceValue(func() func(string, string) bool { return gitx.SessionRefs(w.loc.CommonDir) })
	if err := w.configure(w.loc.CommonDir); err != nil {
		return nil, err
	}
	root := w.config.Text("tilth.sessionsDir")
	if root != "" {
		root = w.inHome(root) // the repository that a relative one is read in varies
	}
	w.store = session.Store{Root: sessionsRoot(p.getenv, root)}
	if w.store.Root == "" {
		return nil, refuse(anyRoot(),
			"there is no home directory to keep sessions in: HOME is not set")
	}
	w.git.FilterTime = w.config.Duration("tilth.validatorTimeout")
	return w, w.notInside()
}

// notInside refuses a command that changes something when a run's worker, validator or hook calls it. The mark in the
// environment says so: advice to whoever means well, since the wall keeps the others from it.
func (w *repoContext) notInside() error {
	id := w.p.getenv(session.MarkVar)
	if !w.p.changes || w.p.dryRun || id == "" {
		return nil
	}
	return refuse("", "this was called from inside the run of session %s, where git tilth changes nothing", id)
}

// configure takes the settings that hold in a repository, "" for none.
func (w *repoContext) configure(common string) error {
	entries, err := w.git.ConfigList(w.p.ctx, common)
	if err != nil {
		return fail("", err)
	}
	w.common, w.credentials, w.gitFiles = common, credentialFiles(entries), namedFiles(entries)
	if w.config, err = config.Load(w.p.environ, w.flags, entries); err != nil {
		return err
	}
	for _, name := range w.config.Gone {
		if !w.said[name] {
			w.said[name] = true
			w.p.warnf("git-tilth: the setting %s is one of earlier builds and is ignored\n", text.VisibleLine(name))
		}
	}
	for name, keys := range w.config.Agents() {
		if err := agent.KnownKeys(name, keys); err != nil {
			return refuse("git config --show-origin --get-regexp '^tilth[.]agent[.]'", "%s", err)
		}
	}
	w.redact = w.redactor()
	return nil
}

// configureFor takes the settings of a session's own repository, wherever it was named: judging by another's
// validators, or by none, would pass what the session's own refuse.
func (w *repoContext) configureFor(s *session.Session) error {
	check, err := s.Checkpoint()
	if err != nil {
		return nil // who reads it next says so
	}
	common, err := held.CommonOf(s, check)
	if err != nil || common == w.common {
		return nil // without its repository nothing is judged
	}
	err = w.configure(common)
	if failed := new(exitError); errors.As(err, &failed) && failed.code == exitFailed {
		return fail("git tilth doctor",
			fmt.Errorf("looking at the settings of session %s: %w", s.ID, err))
	}
	return err
}

// redactor takes out of the record what is secret in the environment, in the URLs that are configured, and the keys
// known so far.
func (w *repoContext) redactor() *record.Redactor {
	return record.NewRedactor(slices.Concat(w.p.environ, w.config.URLs()), w.keys)
}

// repo refuses to go on outside a repository.
func (w *repoContext) repo() error {
	if !w.inRepo {
		return refuse("git init && "+w.firstCommit(), "not inside a git repository")
	}
	return nil
}

// firstCommit is the command that makes the commit which a session can begin at: of what lies here, if anything does.
func (w *repoContext) firstCommit() string {
	files, _ := os.ReadDir(cmp.Or(w.loc.TopLevel, w.p.dir))
	if w.loc.Bare || !slices.ContainsFunc(files, func(d os.DirEntry) bool { return d.Name() != ".git" }) {
		return "git commit --allow-empty -m start"
	}
	return "git add -A && git commit -m start"
}

// deps are what a session needs of the outside world.
func (w *repoContext) deps(sink func(record.Line)) held.Deps {
	return held.Deps{
		Git: w.git, Environ: w.p.environ, Now: w.p.now, Redact: w.redact, Sink: sink,
		Sign: w.config.Bool("tilth.signCommits"), CommitSubject: w.config.Text("tilth.commitSubject"),
		KeepEmptySeed: w.config.Text("tilth.seedCommit") == "keep",
		UndoKeep:      int(w.config.Count("tilth.undoKeep")),
		Setup:         w.setup(),
	}
}

// hold takes a session for this process.
func (w *repoContext) hold(s *session.Session, sink func(record.Line)) (*held.Handle, error) {
	return lifecycle.Open(w.p.ctx, w.deps(sink), s)
}

// in is the action of a command where it stands: in the workspace that its argument names, else here.
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

// sessionAction does what a command does with its last argument, a session.
type sessionAction func(*cli.Context, *repoContext, *session.Session) error

// onSession is the action of a command that only looks at a session.
func (p *process) onSession(do sessionAction) cli.ActionFunc {
	return p.on(false, func(ctx *cli.Context, w *repoContext, s *session.Session) error {
		return w.orGone(s, do(ctx, w, s))
	})
}

// orGone is why a look at a session failed: that it was removed meanwhile, or err.
func (w *repoContext) orGone(s *session.Session, err error) error {
	if err == nil || w.p.ctx.Err() != nil {
		return err
	}
	if _, gone := w.store.Find(s.ID); gone != nil {
		return gone
	}
	if holder, busy := s.Holder(); busy && held.Resetting(s) {
		return holder
	}
	return err
}

// atRest refuses a session that is in use. changed tells what looked at it whether somebody has changed it since, which
// is no finding.
func (w *repoContext) atRest(s *session.Session) (changed func() error, err error) {
	left, err := lifecycle.Look(s)
	return func() error {
		if left() {
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
			s, err = w.session(append(args[mostArgs(usage)-1:], "")[0], toChange)
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

// tasksAndSession reads the arguments of a command on tasks: those first, then perhaps a session. A number is a task
// where the session at hand has it, else it may be a part of a session's name.
func (w *repoContext) tasksAndSession(ctx *cli.Context, toChange bool) (*session.Session, error) {
	args, most := ctx.Args().Slice(), mostArgs(ctx.Command.ArgsUsage)-1
	n := 0
	for n < len(args) && n < most && taskNumber(args[n]) != "" {
		n++
	}
	needed := ctx.Command.ArgsUsage[0] == '<'
	if len(args) > n+1 || needed && n == 0 {
		return nil, refuse(commandName(ctx)+" -h", "%q is no task", args[n])
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

// tasksIn are the ids of the tasks that words name. A word that names none of the session's stays what it means.
func tasksIn(s *session.Session, words []string) (ids []string) {
	plan, _ := s.Tasks() // of one that cannot be read, who needs it says so
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
		if !slices.ContainsFunc(plan, func(t session.Task) bool { return t.ID == id }) {
			return nil, refuse("git tilth show "+s.ID, "session %s has no task %s", s.ID, id)
		}
	}
	return plan, nil
}
