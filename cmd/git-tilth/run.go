package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func detachFlag() cli.Flag {
	return &cli.BoolFlag{Name: "detach",
		Usage: "run in the background and write the output to run.log in the session's directory"}
}

// runFlags returns the flags of the commands that run tasks.
func runFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"},
			Usage: "continue with independent tasks after a failure (tilth.onFailure)"},
		&cli.UintFlag{Name: "auto-resume", Usage: "resume up to `N` times after a failed task"},
		&cli.BoolFlag{Name: "wait", Hidden: true}, // the default
		&cli.BoolFlag{Name: "no-preflight", Usage: "skip the checks before the first task"},
		&cli.BoolFlag{Name: "known-failures",
			Usage: "continue if validators fail on the base; ignore each of these failures until its test passes"},
		&cli.BoolFlag{Name: "json", Usage: "print the events, one JSON object per line"},
	}, settingFlags(false)...)
}

func (p *process) runCommand() *cli.Command {
	return p.declare(traits{wish: "begin", starts: true, hooked: true, ends: true}, &cli.Command{
		Name:      "run",
		Usage:     "run a task list, a sentence, or the prepared session",
		ArgsUsage: "[<what>]",
		Description: "Without <what>, runs the session that prep-feature prepared. <what> is a file or directory " +
			"of tasks, a sentence, issue:12, label:NAME (all open issues with that label) or pr:34 (its " +
			"review threads): run prepares a session from it first, without an interview. If <what> is a " +
			"repository or a session's worktree, run starts the session prepared there.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "from",
				Usage: "import tasks from `PATH` first: a checklist, plan, JSON file or directory; " +
					"- is standard input"},
			&cli.StringFlag{Name: "base", Usage: "start the branch of a new session at `REV` instead of HEAD"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"},
				Usage: "skip the pause after the note about a resumable session"},
			&cli.StringFlag{Name: "session", Hidden: true},
			detachFlag(),
		}, importFlags(), runFlags()),
		Action: func(ctx *cli.Context) error {
			r := newRunRequest(ctx)
			dir, err := p.readWhat(ctx.Args().First(), &r)
			if err != nil {
				return err
			}
			w, err := p.enter(dir, givenSettings(ctx))
			if err != nil {
				return err
			}
			return w.run(r)
		},
	})
}

// readWhat interprets the argument of run: a directory to run in ("" for the current one), or tasks.
func (p *process) readWhat(what string, r *runRequest) (dir string, err error) {
	if what == "" {
		return "", nil
	}
	path := p.inDir(what)
	info, missing := os.Stat(path)
	if missing == nil && info.IsDir() {
		if _, err := gitx.CommonDirOf(proc.RealPath(path)); err == nil {
			return what, nil
		}
	}
	switch {
	case r.from != "":
		return "", refuse("git tilth run --from "+text.ShellQuote(r.from),
			"tasks are given twice: with --from and as %q", what)
	case missing == nil || what == "-":
		r.from = what
	case forgeWord().MatchString(what):
		r.from, r.foreign = what, true
	case strings.ContainsAny(strings.TrimSpace(what), " \t\n") && !looksLikePath(what):
		r.from, r.sentence = what, true
	case looksLikePath(what):
		return "", refuse("git tilth run -h", "%s: no such file (a sentence that looks "+
			"like a path must end with a full stop)", what)
	default:
		hint := "git tilth run -h"
		if session.ValidID(what) {
			hint = "git tilth resume " + what
		}
		return "", refuse(hint, "%s: no such file (a task given as a sentence needs at least two words)", what)
	}
	return "", nil
}

// looksLikePath reports whether text is a path rather than a sentence: it has the extension of a task list, or a slash
// and no other punctuation.
func looksLikePath(what string) bool {
	if slices.Contains([]string{".md", ".json", ".jsonl", ".yaml"}, filepath.Ext(what)) {
		return true
	}
	return strings.Contains(what, "/") && !strings.ContainsFunc(what, func(r rune) bool {
		return r != '/' && unicode.IsPunct(r)
	})
}

// runRequest has the arguments of run or resume.
type runRequest struct {
	verb                string // run or resume
	from, base, session string
	sentence            bool // from is a task written as a sentence
	foreign             bool // from names an issue, a label or a pull request
	detach, yes, json   bool
	all                 bool // also the finished tasks of the list
	prepares            bool // a typed flag applies only to a new session
	among               bool // one of several runs of this process
	forRemote           bool // the session belongs to a remote, which must get its end
	autoResume          uint
	options             loop.Options // loop options that have a flag

	flags []string // as typed, for a detached child
}

func newRunRequest(ctx *cli.Context) runRequest {
	r := runRequest{
		verb: ctx.Command.Name,
		from: ctx.String("from"), base: ctx.String("base"), session: ctx.String("session"), all: ctx.Bool("all"),
		detach: ctx.Bool("detach"), yes: ctx.Bool("yes"), json: ctx.Bool("json"), autoResume: ctx.Uint("auto-resume"),
		options: loop.Options{Fresh: ctx.Bool("fresh"), Continue: ctx.Bool("continue"),
			KeepGoing: ctx.Bool("keep-going"), NoPreflight: ctx.Bool("no-preflight"),
			KnownFailures: ctx.Bool("known-failures")},
	}
	r.prepares = r.from+r.base != "" || slices.ContainsFunc([]string{"all", "again", "optional"}, ctx.IsSet)
	once := []string{"detach", "from", "base", "yes", "session", "all", "verbose", "dry-run"}
	for _, f := range ctx.Command.Flags {
		if name := f.Names()[0]; ctx.IsSet(name) && !slices.Contains(once, name) {
			r.flags = append(r.flags, fmt.Sprintf("--%s=%v", name, ctx.Value(name)))
		}
	}
	return r
}

// run is `git tilth run`: the one prepared session, or a new one.
func (w *repoContext) run(r runRequest) error {
	if r.session != "" {
		return w.proceedWith(r.session, r)
	}
	if err := w.repo(); err != nil {
		return err
	}
	all, err := w.overviews(false)
	if err != nil {
		return err
	}
	prepared, prepares := preparedOf(all), r.prepares || r.from != ""
	here, within := containing(w.Store, w.Loc.TopLevel)
	isHere := func(o session.Overview) bool { return o.ID == here.ID }
	switch {
	case within && !prepares && slices.ContainsFunc(prepared, isHere):
		return w.proceed(here, r)
	case len(prepared) > 1 || (len(prepared) > 0 && prepares):
		return severalPrepared(prepared)
	case len(prepared) == 1:
		return w.proceedWith(prepared[0].ID, r)
	}
	return w.runNew(r, all)
}

func (w *repoContext) proceedWith(id string, r runRequest) error {
	s, err := w.Store.Find(id)
	if err != nil {
		return err
	}
	return w.proceed(s, r)
}

// preparedOf returns the sessions that are ready to run, including an unfinished rewind.
func preparedOf(all []session.Overview) []session.Overview {
	return slices.DeleteFunc(slices.Clone(all), func(o session.Overview) bool {
		return o.Status != session.Prepared && !o.Rewinding || o.Resetting
	})
}

func severalPrepared(prepared []session.Overview) error {
	what := "several sessions are prepared"
	if len(prepared) == 1 {
		what = "a session is prepared already"
	}
	var names, ways []string
	for _, o := range prepared {
		names = append(names, strings.TrimSpace(o.ID+" "+o.Label))
		ways = append(ways, "git tilth resume "+o.ID)
	}
	if len(prepared) == 1 {
		ways = append(ways, "git tilth reset "+prepared[0].ID)
	}
	return refuse(strings.Join(ways, "\n"), "%s:\n  %s", what, strings.Join(names, "\n  "))
}

// runNew makes a session and runs it, after a note about a resumable one.
func (w *repoContext) runNew(r runRequest, all []session.Overview) error {
	if r.from == "" && len(all) > 0 && all[0].Busy != nil {
		return all[0].Busy // that session is running
	}
	if r.from == "" && !w.p.interactive() {
		w.headsUp(all)
		return refuse("git tilth prep-feature\ngit tilth run --from tasks.md\ngit tilth run 'describe one task'",
			"no prepared session in this repository")
	}
	o, unready := w.Options(r.options)
	if unready != nil && !w.p.dryRun {
		return unready
	}
	request := prepRequest{from: r.from, sentence: r.sentence, foreign: r.foreign, all: r.all,
		base: r.base, keep: true, runs: true,
		json: r.json, unready: unready, noPreflight: r.options.NoPreflight,
		before: func() bool { return w.headsUp(all) && !r.yes }}
	if r.from != "" && !r.options.NoPreflight && !w.p.dryRun {
		request.check = func(draft *held.Handle, what loop.Ahead) (err error) {
			o.Validating = w.trial()
			r.options.Checked, err = loop.CheckAhead(w.p.ctx, draft, o, what)
			return w.preflightRefusal(err)
		}
	}
	s, err := w.prep(request)
	if s != nil && r.from != "" && errors.As(err, new(*held.SetupError)) { // setup failed only in the worktree
		why := w.preflightRefusal(loop.Stop{Reason: record.PreflightFailed, Detail: err.Error(),
			Away: true, Hint: w.Deps(nil).Setup.Setting.Off()})
		return errors.Join(why, w.takeBack(s))
	}
	if err != nil || s == nil {
		return err
	}
	return w.proceed(s, r)
}

// headsUp prints a note about the newest session that could be resumed instead. It changes nothing.
func (w *repoContext) headsUp(all []session.Overview) bool {
	for _, o := range all {
		if o.Status == session.Prepared || record.ReasonOf(o.LastStop).Last || o.Busy != nil {
			continue
		}
		s, err := w.Store.Find(o.ID)
		if err != nil {
			continue
		}
		plan, err := w.planOf(s)
		if err != nil || plan.Action == lifecycle.Refuse || plan.Action == lifecycle.Nothing {
			continue
		}
		stop := o.LastStop
		if stop == "" {
			stop = "none: the run was cut off"
			if o.Rewound != "" {
				stop = "none: it was rewound"
			}
		}
		ways := []string{w.resumeOf(o)}
		if o.Tasks.Done > 0 {
			ways = append(ways, "git tilth review "+o.ID, "git tilth take "+o.ID)
		}
		ways = append(ways, "git tilth reset "+o.ID)
		w.p.warnf("A session of this repository can be resumed: %s\n  last stop: %s\n  %s\n",
			strings.TrimSpace(o.ID+"  "+o.Label), stop, strings.Join(ways, "\n  "))
		return true
	}
	return false
}

// pause gives the user time to reconsider.
func (w *repoContext) pause() error {
	seconds := w.Config.Number("tilth.resumeNotice")
	if seconds <= 0 {
		return nil
	}
	w.p.warnf("A new session starts in %g s; Ctrl-C stops here, --yes skips the wait.\n", seconds)
	select {
	case <-w.p.ctx.Done():
		return context.Canceled
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return nil
	}
}

// proceed is the common part of run and resume: it locks a session, plans, executes the plan up to the loop, and runs
// the loop until it stops.
func (w *repoContext) proceed(s *session.Session, r runRequest) (err error) {
	show := w.newProgress(s, r.json)
	if r.among {
		show.Of = s.ID[len(s.ID)-6:] + "  "
	}
	news := w.newNotifier(s)
	defer news.end() // after the session and its claim are released
	h, err := w.hold(s, func(l record.Line) { show.Event(l); news.event(l) })
	if err != nil {
		return err
	}
	closeOnce := sync.OnceFunc(h.Close)
	defer closeOnce()
	h.Tell = show.Tell
	plan, err := lifecycle.PlanOf(w.p.ctx, h)
	if err != nil {
		return fail("", err)
	}
	if plan.Action == lifecycle.Refuse {
		what := "session " + s.ID
		if r.verb == "run" {
			what += " cannot be run"
		}
		return refuse(plan.Hint, "%s: %s", what, plan.Why)
	}
	if w.p.dryRun {
		return w.showPlan(h, plan, r)
	}
	var o loop.Options
	if plan.NeedsWorker() {
		// Choose the agents before anything changes.
		if o, err = w.Options(r.options); err != nil {
			return err
		}
		h.Redact = w.Redact
		show.Caps = o.Caps
	}
	if r.detach && plan.Action == lifecycle.Continue {
		closeOnce()
		return w.detach(s, r)
	}
	ctx := w.p.ctx
	// Claim even if no work is left: a run that was killed at its end has not pushed the end.
	release, err := w.claim(&ctx, h, &o, r.forRemote)
	if err != nil {
		return err
	}
	defer func() { err = release(err) }()
	with := lifecycle.Execution{Start: w.StartOf(o), First: r.verb == "run"}
	if plan.NeedsWorker() {
		with.Settings = w.noted(o)
	}
	o.Validating = show.Validating
	o.Given = r.flags
	for again := uint(0); ; again++ {
		out, err := plan.Execute(ctx, h, with)
		if err != nil {
			return w.p.executionError(err, s.ID)
		}
		tellChanged(show, out.SettingsChanged)
		show.Start(fmt.Sprintf("session %s: %s", s.ID, out))
		if out.Action == lifecycle.Nothing {
			return h.S.WriteSummary()
		}
		if again == 0 {
			show.Bounds(h)
			if o.Lanes > 1 && slices.IndexFunc(out.Tasks, func(t session.Task) bool {
				return len(t.Needs)+len(t.Touches) > 0
			}) < 0 {
				show.Tell("no task has needs or touches, so all count as independent")
			}
		}
		o.From = out
		stop, err := loop.Run(ctx, h, o)
		if err != nil {
			return w.ended(h, show, stop, w.p.executionError(err, s.ID))
		}
		result := w.ended(h, show, stop, w.p.outcome(stop))
		if again >= r.autoResume || !stop.TaskFailed() && !stop.Failed() || ctx.Err() != nil {
			news.stopped(stop.Reason)
			return result
		}
		w.p.warnf("%s; resuming automatically (%d of %d)\n", w.p.outcome(stop), again+1, r.autoResume)
		if plan, err = lifecycle.PlanOf(w.p.ctx, h); err != nil {
			return fail("", err)
		}
		with.First = false
	}
}

func (w *repoContext) newProgress(s *session.Session, asJSON bool) *runLines {
	term := func() view.Terminal { return w.p.terminal(asJSON) }
	return newRunLines(s, term, w.p.stdout, w.p.stderr, isTerminal(w.p.stderr))
}

// ended prints the end of a run. If that prints the error's text, it returns the error without the text.
func (w *repoContext) ended(h *held.Handle, show *runLines, stop loop.Stop, result error) error {
	why, r := w.hintOf(h, result)
	printed := show.Stopped(h, stop, why, r)
	if !show.Term.JSON {
		w.sayChanged(h)
	}
	if printed {
		code, _, _ := w.p.exitFor(result)
		return &exitError{code: code, err: result}
	}
	return result
}

// hintOf adds the next command as a hint to a run's result, and returns the message and the report.
func (w *repoContext) hintOf(h *held.Handle, result error) (why string, r *view.Report) {
	o := w.overview(h.S)
	o.Busy = nil // the holder is this process
	r = w.reportOf(o, h.S)
	var stopped *exitError
	if errors.As(result, &stopped) {
		why, stopped.hint = stopped.msg, cmp.Or(stopped.hint, r.Onward)
	}
	return why, r
}

// showPlan prints the plan of a session, then each git command in order.
func (w *repoContext) showPlan(h *held.Handle, plan lifecycle.Plan, r runRequest) error {
	w.p.planOut = w.p.humanOut(r.json)
	fmt.Fprintf(w.p.planOut, "session %s: %s\n", h.S.ID, strings.Join(plan.Outline(), "\n  "))
	ctx := w.p.ctx
	if _, err := w.claim(&ctx, h, nil, r.forRemote); err != nil {
		return err
	}
	if _, err := plan.Execute(w.p.ctx, h, lifecycle.Execution{}); err != nil {
		return w.p.executionError(err, h.S.ID)
	}
	return nil
}

// importFlags returns the flags of the commands that import tasks.
func importFlags() []cli.Flag {
	return append(settingFlags(true),
		&cli.BoolFlag{Name: "all", Usage: "also import tasks that are already committed on the base"})
}
