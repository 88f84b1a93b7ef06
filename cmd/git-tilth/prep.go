package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) prepCommand() *cli.Command {
	return p.declare(traits{wish: "begin", starts: true, hooked: true}, &cli.Command{
		Name:      "prep-feature",
		Aliases:   []string{"prep"},
		Usage:     "make a task list by an interview or from a file",
		ArgsUsage: "[<workspace>]",
		Description: "In the interview the model reads the code, asks one question at a time, and writes a " +
			"task list with an acceptance test for each task. With --from it reads existing tasks " +
			"instead, without a model. The tests become one commit on the session's branch.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "brief", Usage: "describe the feature in `TEXT`"},
			&cli.StringFlag{
				Name: "from",
				Usage: "import tasks from `PATH`: a checklist, plan, JSON file or directory; " +
					"- is standard input",
			},
			&cli.StringFlag{Name: "base", Usage: "start the branch at `REV` instead of HEAD"},
			&cli.StringFlag{
				Name:  "answers",
				Usage: "read the interview's answers from `FILE`, one per line; - is standard input",
			},
			&cli.BoolFlag{Name: "force", Usage: "discard the newest unfinished session first"},
			&cli.BoolFlag{Name: "keep-existing", Usage: "keep unfinished sessions and start another one"},
			&cli.BoolFlag{Name: "continue",
				Usage: "continue an interview that was cut off, without repeating its questions"},
		}, importFlags(), settingFlags(false)),
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			s, err := w.prep(prepRequest{
				brief: ctx.String("brief"), from: ctx.String("from"), base: ctx.String("base"),
				answers: ctx.String("answers"), force: ctx.Bool("force"), keep: ctx.Bool("keep-existing"),
				cont: ctx.Bool("continue"), all: ctx.Bool("all"),
			})
			if s != nil && err == nil {
				p.printf("Session %s is prepared.\nnext: git tilth run\n", s.ID)
			}
			return err
		}),
	})
}

// prepRequest has the arguments of a preparation and the results of checkPrep.
type prepRequest struct {
	brief, from, base, answers string
	sentence                   bool // from is a task written as a sentence
	foreign                    bool // from names an issue, a label or a pull request
	force, keep, cont, all     bool
	committed                  bool // the base has the commits of all tasks in the list
	runs, json                 bool // run follows; print the events as they happen
	noPreflight                bool
	unready                    error // reason why check failed
	// before prints a note before anything is created, and reports whether to pause; nil for none.
	before func() (wait bool)
	// check runs the preflight before a session is created; nil for none.
	check func(*held.Handle, loop.Ahead) error

	baseSHA  string
	imported *seed.Imported
	discard  *session.Session  // session to delete first
	asFound  session.Overview  // the session to discard, as the note showed it
	history  []json.RawMessage // of the continued interview

	// The interviewer and the source of the answers, for an interview.
	interviewer loop.Role
	prompts     *text.Prompts
	in          *text.Lines
	typed       bool // typed by the user
}

// prep creates a session and its seed, or continues an interrupted interview. It returns nil if it created nothing. It
// makes all refusals before the pause, and changes nothing before the pause ends.
func (w *repoContext) prep(r prepRequest) (*session.Session, error) {
	if err := w.checkPrep(&r); err != nil {
		return nil, err
	}
	if r.cont {
		return w.continuePrep(r)
	}
	wait := r.before != nil && r.before()
	if w.nothingLeft(&r) {
		return nil, nil
	}
	if s, err := w.inFlight(&r); err != nil || r.baseSHA == "" {
		return s, err
	}
	if w.p.dryRun {
		if r.imported == nil && r.unready == nil {
			_, r.unready = w.Role(config.Prep)
		}
		if r.unready != nil {
			w.p.warnf("note: without -n this is refused: %s\n", r.unready) // a dry run shows the plan anyway
		}
	} else if wait {
		if err := w.pause(); err != nil {
			return nil, err
		}
	}
	if err := w.readyInterview(&r); err != nil {
		return nil, err
	}
	w.p.planOut = w.p.humanOut(r.json)
	if r.discard != nil {
		if w.p.dryRun {
			w.p.printf("would discard session %s first\n", r.discard.ID)
		}
		if err := w.tearDown(r.discard, true, r.unchanged); err != nil {
			return nil, err
		}
	}
	s, err := w.prepare(r)
	if w.p.dryRun {
		s = nil
	}
	if f := refusedAtOnce(s, r, err); f != nil {
		return nil, errors.Join(w.awayRefusal(f.Message+"; "+f.Hint(), r.interviewer.Program.Login), w.takeBack(s))
	}
	return s, err
}

// refusedAtOnce returns the failure of an agent program that could not start the interview because it is logged out or
// has a wrong setting. It returns nil after a start, and for any other error.
func refusedAtOnce(s *session.Session, r prepRequest, err error) *model.Failure {
	f, failed := errors.AsType[*model.Failure](err)
	if !failed || s == nil || r.interviewer.Program == nil || f.Kind != model.Fatal {
		return nil
	}
	const asked = 2 // number of messages: the instructions and the brief
	if history, err := s.ReadTranscript(record.RoleInterview, ""); err != nil || len(history) > asked {
		return nil
	}
	return f
}

// again returns the command of a preparation with one more flag.
func (r prepRequest) again(flag string) string {
	words := []string{"git", "tilth", "prep-feature", flag}
	for _, given := range [][2]string{{"--from", r.from}, {"--base", r.base}, {"--brief", r.brief}} {
		if given[1] != "" {
			words = append(words, given[:]...)
		}
	}
	return text.ShellQuote(words...)
}

// importAgain returns the command that imports the same tasks into a new session, from any directory; "" if they cannot
// be read again.
func (w *repoContext) importAgain(r prepRequest) string {
	if r.imported == nil || r.from == "-" {
		return ""
	}
	words := []string{"git", "tilth", "prep-feature"}
	if r.runs {
		words[2] = "run"
	}
	if r.base != "" {
		words = append(words, "--base", r.base)
	}
	if r.all {
		words = append(words, "--all")
	}
	if r.sentence || r.foreign {
		return text.ShellQuote(append(words, r.from)...)
	}
	return text.ShellQuote(append(words, "--from", w.p.inDir(r.from))...)
}

// unchanged refuses to discard a session that was run or edited after the user chose to discard it, for example while
// they typed a brief.
func (r prepRequest) unchanged() error {
	if now := r.discard.Overview(); now.Status != r.asFound.Status || now.LastEventAt != r.asFound.LastEventAt {
		return refuse("git tilth show "+r.discard.ID, "session %s changed in the meantime and was not discarded",
			r.discard.ID)
	}
	return nil
}

// checkPrep refuses an impossible preparation before anything changes: no repository, no commit, or tasks that break a
// rule.
func (w *repoContext) checkPrep(r *prepRequest) error {
	if err := w.repo(); err != nil {
		return err
	}
	if r.force && r.keep {
		return refuse("git tilth prep-feature -h", "--force and --keep-existing cannot be combined")
	}
	if r.cont && (r.force || r.keep || r.from != "" || r.brief != "" || r.base != "") {
		return refuse("git tilth prep-feature -h",
			"--continue keeps the brief and base of that interview; leave the other options out")
	}
	// checkpoint.json and the record are JSON and cannot store a path that is not UTF-8.
	for _, path := range []string{w.Loc.Source, w.Loc.CommonDir, w.Store.Root} {
		if !utf8.ValidString(path) {
			return refuse("", "the path %q is not UTF-8, so it cannot be recorded", path)
		}
	}
	for dir := w.Store.Root; !r.noPreflight && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		common, err := gitx.CommonDirOf(dir)
		if err == nil && common == w.Loc.CommonDir && held.Exists(filepath.Join(dir, ".git")) {
			return refuse(w.Change("tilth.sessionsDir", "~/.tilth/sessions"),
				"the sessions directory %s is inside the worktree %s: its tests and tools would find the sessions",
				w.Store.Root, dir)
		}
	}
	var err error
	if r.baseSHA, err = w.Git.RevParse(w.p.ctx, w.Loc.GitDir, cmp.Or(r.base, "HEAD")+"^{commit}"); err != nil {
		if r.base == "" {
			return refuse(w.FirstCommit(), "the repository has no commit to start from")
		}
		return refuse("git log --oneline --all", "--base %s is not a commit", r.base)
	}
	// Refs are files: if a branch named session exists, session/<id> cannot.
	form := w.Config.Text("tilth.branch")
	for dir := path.Dir(form); dir != "."; dir = path.Dir(dir) {
		if _, taken, err := w.Git.BranchTip(w.p.ctx, w.Loc.CommonDir, dir); err == nil && taken {
			return refuse("git branch -m "+dir+" another-name", "a branch is named %s, so git cannot create %s", dir,
				strings.NewReplacer("{", "<", "}", ">").Replace(form))
		}
	}
	if r.from != "" {
		if err := w.importTasks(r); err != nil {
			return err
		}
		return w.trySignature(r)
	}
	if r.prompts, err = seed.LoadPrompts(w.PromptDir()); err != nil {
		return refuse("git config tilth.prompts", "%s", err)
	}
	return w.trySignature(r)
}

// prepare creates a session and its seed. It returns the prepared session, unlocked.
func (w *repoContext) prepare(r prepRequest) (*session.Session, error) {
	// With --json, standard output has only events.
	out, sink := w.p.humanOut(r.json), (func(record.Line))(nil)
	if r.json {
		sink = func(l record.Line) { fmt.Fprintf(w.p.stdout, "%s\n", l.Raw) }
	}
	if r.imported != nil {
		describeImport(out, r.imported, !r.runs || w.p.dryRun)
	}
	if !w.Loc.Bare {
		var list []string
		if r.from != "" {
			list = []string{w.p.inDir(r.from)}
		}
		if dirty, err := w.Git.IsDirty(w.p.ctx, w.Loc.TopLevel, list...); err == nil && dirty {
			w.p.warnf("note: %s has uncommitted changes; they are left alone and are not part of the session\n",
				w.Loc.TopLevel)
		}
	}
	w.noteBehind(r)
	if w.p.dryRun {
		fmt.Fprintf(out, "would create a session from %.10s in %s\n", r.baseSHA, w.Store.Root)
	}
	start := w.prepStart()
	start.InterviewerModel = r.interviewer.Model
	if r.imported != nil {
		start.TaskCount = len(r.imported.Tasks)
	}
	n := lifecycle.New{Store: w.Store, Location: w.Loc, Base: r.baseSHA, Label: w.label(r), Start: start,
		Recreate: w.importAgain(r)}
	if r.check != nil {
		if err := w.tryFirst(&n, r); err != nil {
			return nil, err
		}
	}
	h, err := lifecycle.Create(w.p.ctx, w.Deps(sink), n)
	if err != nil {
		if w.p.ctx.Err() != nil {
			return nil, context.Canceled
		}
		return nil, fail("", fmt.Errorf("the session could not be created: %w", err))
	}
	defer h.Close()
	return h.S, w.seedIt(h, r)
}

// noteBehind prints a note if the base is behind its upstream as last fetched.
func (w *repoContext) noteBehind(r prepRequest) {
	git := func(args ...string) string {
		out, _ := w.Git.Line(w.p.ctx, w.Git.In(w.Loc.Source, args...)) // "" without an upstream
		return out
	}
	upstream := git("rev-parse", "--abbrev-ref", "--quiet", r.base+"@{upstream}")
	if n, _ := strconv.Atoi(git("rev-list", "--count", r.baseSHA+".."+r.base+"@{upstream}")); upstream != "" && n > 0 {
		w.p.warnf("note: the base %.10s is %s behind %s\n", r.baseSHA, text.Plural(n, "commit"), upstream)
	}
}

// prepStart returns the session_start event of a new session, with the worker and evaluator configured now. A run
// writes another session_start.
func (w *repoContext) prepStart() record.SessionStart {
	return record.SessionStart{Agents: record.Agents{
		BaseURL: config.ShownURL(w.Config.Endpoint(config.Prep).BaseURL), Limits: w.Config.Caps(),
		WorkerModel:    record.Optional(w.Config.Endpoint(config.Worker).Model),
		EvaluatorModel: record.Optional(w.Config.Endpoint(config.Evaluator).Model),
	}}
}

// seedIt creates the session's seed, or ends the session with the reason for the failure.
func (w *repoContext) seedIt(h *held.Handle, r prepRequest) error {
	err := w.fillSeed(h, r)
	switch {
	case err == nil:
		return nil
	case w.p.dryRun:
		return fail("", err)
	case held.Seeded(h.S):
		// The seed is complete; only the checkpoint lacks it.
		return fail("git tilth resume "+h.S.ID, err)
	}
	reason := record.Errored
	if w.p.ctx.Err() != nil || errors.Is(err, seed.ErrAborted) {
		reason = record.Interrupted
	}
	if ferr := lifecycle.Fail(h, reason, err); ferr != nil {
		w.p.warnf("git-tilth: %s\n", ferr)
	}
	return prepError(err, h, reason)
}

// draftFile has the refused seed of an interview, for git tilth plan.
const draftFile = "seed-draft.json"

func prepError(err error, h *held.Handle, reason string) error {
	s := h.S
	var refused *seed.RefusedError
	reset := "git tilth reset " + s.ID
	e := &exitError{code: exitFailed, msg: err.Error(), hint: reset, err: err}
	if begun(s) != nil {
		e.hint = goOn + "\n" + reset
	}
	if failure, ok := errors.AsType[*model.Failure](err); ok && failure.Hint() != "" {
		e.msg += "; " + failure.Hint()
	}
	if errors.As(err, new(*held.SetupError)) {
		e.hint = h.Setup.Setting.Off() + " && " + e.hint
	}
	switch {
	case reason == record.Interrupted:
		e.code, e.msg = exitInterrupted, "the preparation was interrupted; there is no seed"
	case errors.Is(err, seed.ErrGaveUp), errors.Is(err, seed.ErrIterations):
		e.code = exitNo
	case errors.As(err, &refused):
		e.code = exitNo
		if draft := s.Path(draftFile); jsonl.WriteFile(draft, []byte(refused.Draft)) == nil {
			e.hint = "git tilth plan " + s.ID
		}
	case errors.Is(err, seed.ErrAnswers):
		e.code = exitRefused
		e.msg += " (--answers FILE reads them from a file)"
		e.hint = goOn + "\n" + reset
	}
	return e
}

// fillSeed gets the bundle, installs and commits it.
func (w *repoContext) fillSeed(h *held.Handle, r prepRequest) error {
	if r.history == nil {
		if err := h.RunSetup(w.p.ctx, h.Path()); err != nil {
			return fmt.Errorf("the worktree could not be set up: %w", err)
		}
	}
	sink := &bundleSink{w: w, h: h, rules: seed.Rules{TestsRequired: r.imported == nil}}
	var b *seed.Bundle
	var err error
	if r.imported != nil {
		b = &r.imported.Bundle
		b.Meta.StartedAt = h.Checkpoint.StartedAt
		vs, err := sink.propose(w.p.ctx, b)
		if err != nil {
			return err
		}
		if len(vs) > 0 {
			return fmt.Errorf("the tasks cannot be used:\n%s", seed.Explain(vs, 20))
		}
	} else if w.p.dryRun {
		b = &seed.Bundle{}
	} else if b, err = w.interview(h, r, sink); err != nil {
		return err
	}
	tests := len(b.TestFiles)
	if w.p.dryRun {
		seeded := "would commit the seed, " + held.SeedSubject(len(b.Tasks), tests) + ":"
		switch {
		case r.imported == nil:
			seeded, tests = "would commit the seed, with the interview's tests:", 1
		case tests == 0 && !h.KeepEmptySeed:
			seeded = "would commit no seed: there are no acceptance tests"
		}
		fmt.Fprintln(w.p.planOut, seeded)
	}
	prepared := record.SessionPrepared{InterviewerModel: record.Optional(r.interviewer.Model)}
	if im := r.imported; im != nil {
		prepared.Import = &record.Import{Format: im.Format, Tasks: len(im.Tasks), Done: im.Done, Optional: im.Optional,
			LeftOut: append([]string{}, im.Dropped...)}
	}
	err = lifecycle.CommitSeed(w.p.ctx, h, len(b.Tasks), tests, prepared)
	if err != nil && !held.Seeded(h.S) && sink.undo != nil {
		sink.undo()
	}
	return err
}

// label returns a few words that identify the session in a list.
func (w *repoContext) label(r prepRequest) string {
	subject := r.brief
	if r.imported != nil && subject == "" {
		subject = r.imported.Tasks[0].Title
		if n := len(r.imported.Tasks); n > 1 {
			subject += fmt.Sprintf(" (+%d)", n-1)
		}
		if t := strings.TrimSpace(r.imported.Meta.TLDR); t != "" {
			subject, _, _ = strings.Cut(strings.TrimLeft(t, "# "), "\n")
		}
	}
	return text.Clip(text.OneLine(subject), 160)
}
