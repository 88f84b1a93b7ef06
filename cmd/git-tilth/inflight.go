package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
)

// inFlight asks about unfinished sessions of this repository: prepared, running or failed. It returns a request with
// an empty base if the user chose something else.
func (w *repoContext) inFlight(r *prepRequest) (*session.Session, error) {
	if r.keep {
		return nil, nil
	}
	all, err := w.overviews(false)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(all, func(o session.Overview) bool {
		return o.Status != session.Prepared && o.Status != session.Running && o.Status != session.Failed
	})
	if len(found) == 0 {
		return nil, nil
	}
	newest, err := w.Store.Find(found[0].ID)
	if err != nil {
		return nil, err
	}
	if r.force {
		if found[0].Busy != nil {
			return nil, found[0].Busy
		}
		r.discard, r.asFound = newest, found[0]
		return nil, nil
	}
	var names []string
	for _, o := range found {
		status := o.State()
		if o.Tasks.Total == 0 {
			status += ", no seed"
		}
		if o.Busy != nil && o.Busy.PID != 0 {
			status += fmt.Sprintf(", in use by pid %d", o.Busy.PID)
		}
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s  %s  %s", o.ID, status, o.Label)))
	}
	if !w.p.interactive() {
		force, beside := r.again("--force"), r.again("--keep-existing")
		next := force + "\n" + beside
		switch way := w.nextVerb(newest); {
		case found[0].Busy != nil:
			next = "git tilth stop " + newest.ID + "\ngit tilth log -f " + newest.ID + "\n" + beside
		case way == "run" && len(preparedOf(found)) > 1:
			next = "git tilth resume " + newest.ID + "\n" + next
		case way == "run":
			next = "git tilth run\n" + next
		case way == "resume":
			next = w.resumeOf(found[0]) + "\n" + next
		case way == goOn:
			next = goOn + "\n" + next
		}
		what := "--force discards the newest first, --keep-existing starts another"
		if found[0].Busy != nil {
			what = "--keep-existing starts another"
		}
		return nil, refuse(next, "this repository has unfinished sessions; %s:\n  %s", what,
			strings.Join(names, "\n  "))
	}
	return w.menu(r, newest, found[0], names)
}

// goOn returns the command that continues an interview.
const goOn = "git tilth prep-feature --continue"

// nextVerb returns the command that continues a session in flight: run or resume. It returns "" for a session that
// cannot be continued, for example after an interview without a seed.
func (w *repoContext) nextVerb(s *session.Session) string {
	plan, err := w.planOf(s)
	switch {
	case err == nil && plan.Action == lifecycle.Refuse && !held.Seeded(s) && begun(s) != nil:
		return goOn
	case err != nil, plan.Action == lifecycle.Refuse:
		return ""
	case plan.Fresh:
		return "run"
	}
	return "resume"
}

// planOf returns the plan of a resume. It changes nothing.
func (w *repoContext) planOf(s *session.Session) (lifecycle.Plan, error) {
	check, err := s.Checkpoint()
	if err != nil {
		return lifecycle.Plan{}, err
	}
	state, err := lifecycle.ReadState(w.p.ctx, w.Git, s, check)
	return lifecycle.MakePlan(state), err
}

// menu asks the user about unfinished sessions.
func (w *repoContext) menu(r *prepRequest, newest *session.Session, o session.Overview,
	names []string) (*session.Session, error) {
	way := w.nextVerb(newest)
	first := way + " it"
	switch {
	case way == goOn:
		first = "continue its interview"
	case o.Busy != nil:
		first = "it is running; follow it with git tilth log -f"
	case way == "":
		first = "(nothing to run: it has no seed)"
	}
	w.p.warnf("This repository has unfinished sessions:\n  %s\n\n  1  %s (%s)\n"+
		"  2  discard it and start over\n  3  start alongside\n  4  cancel\n> ", strings.Join(names, "\n  "),
		first, o.ID)
	line, err := w.p.readLine()
	if err != nil {
		return nil, err
	}
	switch n, _ := strconv.Atoi(strings.TrimSpace(line)); n {
	case 1:
		r.baseSHA = ""
		if o.Busy != nil {
			return nil, o.Busy
		}
		if way == goOn {
			return w.continuePrep(prepRequest{cont: true, prompts: r.prompts, answers: r.answers})
		}
		return nil, w.proceed(newest, runRequest{verb: cmp.Or(way, "run")})
	case 2:
		if o.Busy != nil {
			return nil, o.Busy
		}
		r.discard, r.asFound = newest, o
		return nil, nil
	case 3:
		return nil, nil
	}
	return nil, &exitError{code: exitNo, msg: "nothing was changed"}
}
