package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) seedCommand() *cli.Command {
	return p.declare(traits{wish: "begin", rare: true}, &cli.Command{
		Name:  "seed",
		Usage: "change a seed that has not been run",
		Subcommands: []*cli.Command{
			{
				Name: "edit", Usage: "edit prd.json and commit the seed again", ArgsUsage: "[<session>]",
				Action: p.onHeld(func(_ *cli.Context, w *repoContext, h *held.Handle) error {
					return w.editSeed(h)
				}),
			},
		},
		Action: func(ctx *cli.Context) error {
			return refuse("git tilth seed edit", "seed needs a subcommand")
		},
	})
}

// editSeed opens a copy of prd.json and adopts it if it breaks no rule. It keeps an invalid copy, so that no text is
// lost.
func (w *repoContext) editSeed(h *held.Handle) error {
	s := h.S
	if !held.Seeded(h.S) {
		return refuse("git tilth reset "+s.ID+" && git tilth prep-feature", "session %s has no seed", s.ID)
	}
	ran, err := lifecycle.HasRun(w.p.ctx, h)
	if err != nil {
		return fail("git tilth doctor", err)
	}
	if ran {
		return refuse("git tilth plan "+s.ID+"\ngit tilth reset --to-seed "+s.ID,
			"session %s has already run: edit its remaining tasks, or reset it to its seed first", s.ID)
	}
	return w.editUnrun(h)
}

// editUnrun edits the seed of a session that has not been run.
func (w *repoContext) editUnrun(h *held.Handle) error {
	s := h.S
	old, err := os.ReadFile(s.Path(session.TasksFile))
	if err != nil {
		return refuse("git tilth reset "+s.ID, "the seed cannot be read: %s", err)
	}
	return w.editTasks(h, "git tilth seed edit "+s.ID, old, nil, func(tasks []session.Task, tests int) (string, error) {
		return fmt.Sprintf("Session %s has a new seed of %s.\nnext: git tilth run\n", s.ID,
			text.Plural(len(tasks), "task")), lifecycle.Reseed(w.p.ctx, h, tasks, tests)
	})
}

func draftOf(s *session.Session) string { return s.Path("prd.edit.json") }

// editDraft lets the user edit a copy of the plan, or the copy that was refused last time. It returns the saved text,
// or nil if nothing changed.
func (w *repoContext) editDraft(h *held.Handle, again string, old []byte) ([]byte, error) {
	draft := draftOf(h.S)
	if _, err := os.Stat(draft); err != nil {
		if err := jsonl.WriteFile(draft, old); err != nil {
			return nil, fail("", err)
		}
	} else {
		w.p.warnf("continuing the edit that was rejected last time (%s)\n", draft)
	}
	failed := w.openEditor(h, again, draft)
	edited, err := os.ReadFile(draft)
	if err != nil {
		return nil, fail("", err)
	}
	// As for a commit message, an unchanged or empty copy is discarded.
	untouched, empty := bytes.Equal(edited, old), len(bytes.TrimSpace(edited)) == 0
	if untouched || empty {
		if err := os.Remove(draft); err != nil {
			return nil, fail("", err)
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case empty:
		return nil, &exitError{code: exitNo, msg: "the file was saved empty; the plan is unchanged"}
	case untouched:
		w.p.printf("nothing was changed\n")
		return nil, nil
	}
	return edited, nil
}

// openEditor opens a file in the user's editor. Without an editor the error names again, the command to repeat.
func (w *repoContext) openEditor(h *held.Handle, again, file string) error {
	environ := w.editorEnviron()
	ask := gitx.InRepo(h.Common, "var", "GIT_EDITOR")
	ask.Environ = environ
	editor, err := w.Git.Line(w.p.ctx, ask)
	if err != nil || editor == "" {
		return refuse("GIT_EDITOR=vi "+again, "there is no editor to open the tasks in")
	}
	w.p.editing.Store(true)
	defer w.p.editing.Store(false)
	if err := w.edit(editor, file, environ); err != nil {
		return fail("git config core.editor", err)
	}
	return nil
}

// edit opens a file in the user's editor on this terminal and waits until the editor exits. As in git, a shell reads
// the command, which may have arguments.
func (w *repoContext) edit(editor, file string, environ []string) error {
	// The shell survives a Ctrl-C and waits for the editor. With a non-empty trap the editor still gets the default
	// action.
	argv := []string{"sh", "-c", "trap : INT; " + editor + ` "$@"`, editor, file}
	if err := proc.Attach("", argv, environ, nil, w.p.stdin, w.p.stdout.file, w.p.stderr); err != nil {
		return fmt.Errorf("the editor %s: %w", editor, err)
	}
	return nil
}

// editorEnviron returns the environment in which git finds the user's editor. Without a terminal git returns only a
// configured editor, because its default, vi, would wait for ever.
func (w *repoContext) editorEnviron() []string {
	if w.p.interactive() {
		return w.p.environ
	}
	return append(slices.Clone(w.p.environ), "TERM=dumb")
}

// seedFiles returns the test files of a seed's commit.
func (w *repoContext) seedFiles(h *held.Handle) ([]string, error) {
	_, changes, err := h.SeedFiles(w.p.ctx)
	var files []string
	for _, c := range changes {
		files = append(files, c.Path)
	}
	return files, err
}
