package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// readyInterview checks that an interview has a model, answers and a brief before anything is created.
func (w *repoContext) readyInterview(r *prepRequest) error {
	if r.imported != nil || w.p.dryRun {
		return nil
	}
	role, err := w.Role(config.Prep)
	if err != nil {
		var e *held.RefusedError
		if errors.As(err, &e) {
			e.Hint += "\n  or write the tasks into a file: git tilth prep-feature --from PATH"
		}
		return err
	}
	if role.Program != nil {
		if c := w.CheckRole(config.Prep, map[string]record.Check{}); c.Status == record.CheckFinding {
			return w.awayRefusal(c.Detail, c.Command)
		}
	}
	r.interviewer = role
	r.in, r.typed = w.p.lines, w.p.interactive()
	if r.answers != "" {
		r.typed = false
		if r.answers != "-" {
			answers, err := await(w.p.ctx, func() (*os.File, error) { return os.Open(r.answers) })
			if err != nil {
				return refuse("", "--answers: %s", err)
			}
			r.in = text.NewLines(answers)
		}
	}
	if r.brief != "" || r.cont {
		return nil
	}
	if !r.typed {
		return refuse(
			`git tilth prep-feature --brief "describe the feature"`,
			"there is no brief, and no terminal to ask for one",
		)
	}
	w.p.warnf("What should be built? One line is enough.\n> ")
	if r.brief, err = w.p.readLine(); err != nil {
		return err
	}
	if strings.TrimSpace(r.brief) == "" {
		return &exitError{code: exitNo, msg: "no brief; nothing was created"}
	}
	return nil
}

// interview lets the model ask questions until it hands in a seed.
func (w *repoContext) interview(h *held.Handle, r prepRequest, sink *bundleSink) (*seed.Bundle, error) {
	source := w.Loc.TopLevel
	if source == "" {
		// A bare repository has no tree to read; the new worktree has one.
		source = h.Path()
	}
	box, err := agent.OpenTools(source, agent.ToolOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer box.Close()
	files, err := w.TrackedFiles(source)
	if err != nil {
		return nil, err
	}
	add, shut, err := h.S.OpenTranscript(record.RoleInterview, record.Scope{}, w.p.now(), w.Redact)
	if err != nil {
		return nil, err
	}
	defer shut()
	terminal := seed.NewTerminal(r.in, w.p.stderr, w.p.shownOn(w.p.stderr), r.typed)
	if r.typed {
		sink.approve = terminal.Approve
	}
	calls := agent.Calls{Attempts: int(w.Config.Count("tilth.providerAttempts")), MaxOutage: w.MaxOutage()}
	var turn agent.Turn
	if r.interviewer.Program == nil {
		calls.Chat = r.interviewer.Client.Chat
	} else {
		box, err := w.Sandbox()
		if err != nil {
			return nil, err
		}
		temp, done, err := proc.TempDir()
		if err != nil {
			return nil, err
		}
		defer done()
		turn = w.interviewTurn(h, r.interviewer, source)
		turn.Box = box.In(temp).Reading(source)
	}
	turn.Redact = w.Redact
	return seed.Interview(w.p.ctx, seed.Deps{
		History: r.history, Prior: h.Checkpoint.Usage.Interview,
		Brief: r.brief, Context: loop.ProjectContext(source), Source: source, Files: files,
		Calls: calls, Program: r.interviewer.Program, Turn: turn, ModelName: equip.ModelOf(r.interviewer),
		Tools: box, Terminal: terminal, Propose: sink.propose,
		Transcript: add,
		Emit:       h.Record.Append,
		Spent: func(u session.RoleUsage) error {
			h.Checkpoint.TokensUsed += u.Total() - h.Checkpoint.Usage.Interview.Total()
			h.Checkpoint.Usage.Interview = u
			return h.Save()
		},
		Prompts: r.prompts, Now: w.p.now,
	})
}

// interviewTurn returns the common parts of an interviewing program's turns. It may read the source.
func (w *repoContext) interviewTurn(h *held.Handle, r loop.Role, source string) agent.Turn {
	env := r.Program.Environ(w.Git.Environ(w.p.ctx, source), w.Config.List("tilth.sandboxEnv"))
	return agent.Turn{
		Dir: source, Model: r.Model, MaxTurns: int(w.Config.Count("tilth.maxTurns")),
		Timeout: w.Config.Duration("tilth.turnTimeout"),
		Linger:  w.Config.Duration("tilth.linger"), Env: append(env, h.S.Mark()),
		GitDir: w.Loc.GitDir, CommonDir: w.Loc.CommonDir, Private: h.S.Path(session.AgentDir),
	}
}

// begun returns the messages of a session's interview, or nil.
func begun(s *session.Session) []json.RawMessage {
	history, err := s.ReadTranscript(record.RoleInterview, "")
	if err != nil || agent.Continuable(history) != nil {
		return nil
	}
	return history
}

// unseeded finds the newest session of this repository with an unfinished interview.
func (w *repoContext) unseeded() (*session.Session, error) {
	all, err := w.overviews(false)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		s, err := w.Store.Find(o.ID)
		if err != nil || o.Resetting || held.Seeded(s) || begun(s) == nil {
			continue
		}
		return s, nil
	}
	return nil, refuse("git tilth prep-feature", "no unfinished interview in this repository")
}

// continuePrep continues an interrupted interview from interview.jsonl.
func (w *repoContext) continuePrep(r prepRequest) (*session.Session, error) {
	s, err := w.unseeded()
	if err != nil {
		return nil, err
	}
	if w.p.dryRun {
		w.p.printf("would continue the interview of session %s\n", s.ID)
		return nil, nil
	}
	if err := w.readyInterview(&r); err != nil {
		return nil, err
	}
	h, err := w.hold(s, nil)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if held.Seeded(h.S) {
		return s, nil // the process died after the seed's commit
	}
	if err := lifecycle.Reopen(w.p.ctx, h); err != nil {
		return nil, fail("git tilth reset "+s.ID, err)
	}
	files, err := w.TrackedFiles(h.Path())
	if err != nil {
		return nil, fail("", err)
	}
	r.history = seed.TakeUp(begun(s), h.Path(), s, files)
	return s, w.seedIt(h, r)
}
