package main

import (
	"errors"
	"os"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/tool"
)

// readyInterview finds out what an interview needs before anything is made: a model, answers and a brief.
func (w *repoContext) readyInterview(r *prepRequest) error {
	if r.imported != nil {
		return nil
	}
	client, name, err := w.client(config.Prep)
	if err != nil {
		var e *exitError
		if errors.As(err, &e) {
			e.hint += "\n  or write the tasks down and use git tilth prep-feature --from PATH"
		}
		return err
	}
	r.interviewer = loop.Role{Client: client, Model: name}
	r.in, r.typed = w.p.lines, w.p.interactive()
	if r.answers != "" {
		r.typed = false
		if r.answers != "-" {
			answers, err := os.Open(r.answers)
			if err != nil {
				return refuse("", "--answers: %s", err)
			}
			r.in = text.NewLines(answers)
		}
	}
	if r.brief != "" {
		return nil
	}
	if !r.typed {
		return refuse(
			`git tilth prep-feature --brief "what is to be built"`,
			"there is no brief, and no terminal to ask for one on",
		)
	}
	w.p.warnf("What is to be built? One line is enough.\n> ")
	if r.brief, err = w.p.readLine(); err != nil {
		return err
	}
	if strings.TrimSpace(r.brief) == "" {
		return &exitError{code: exitNo, msg: "no brief, nothing was made"}
	}
	return nil
}

// interview lets the model ask until it hands in a seed.
func (w *repoContext) interview(h *lifecycle.Handle, r prepRequest, sink seed.Sink) (*seed.Bundle, error) {
	source := w.loc.TopLevel
	if source == "" {
		// A bare repository has no tree to read; the new worktree is one.
		source = h.Path()
	}
	box, err := tool.Open(source, tool.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer box.Close()
	files, err := w.git.TrackedFiles(w.p.ctx, source)
	if err != nil {
		return nil, err
	}
	script, err := h.S.OpenInterview(w.redact)
	if err != nil {
		return nil, err
	}
	defer script.Close()
	frontend := seed.NewTerminal(r.in, w.p.stderr, r.typed)
	before := h.Checkpoint.TokensUsed
	return seed.Interview(w.p.ctx, seed.Deps{
		Brief: r.brief, Context: loop.ProjectContext(source), Source: source, Files: files,
		Model: r.interviewer.Client, ModelName: r.interviewer.Model,
		Retry: model.Retry{Attempts: int(w.config.Count("tilth.providerAttempts"))},
		Tools: box, Specs: box.Specs(), Frontend: frontend, Sink: sink,
		Transcript: script.AppendMessage,
		Emit:       h.Record.Append,
		Spent: func(u session.RoleUsage) error {
			h.Checkpoint.Usage.Interview = u
			h.Checkpoint.TokensUsed = before + u.Total()
			return h.Save()
		},
		Prompts: r.prompts, Now: w.p.now,
	})
}
