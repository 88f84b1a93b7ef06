package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/replay"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) replayCommand() *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "carry out again what a session's model answered, and compare the trees with what was committed",
		ArgsUsage: "[<session>]",
		Description: "Needs no key and no network, and changes nothing of the session. Hooks, tilth.setup and " +
			"validators do\nnot run again: a tree that one of them changed diverges. A task that a person did " +
			"is taken as it is.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "harness",
			Usage: "name the parts of the prompts that this build words otherwise"}},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			changed, err := w.atRest(s)
			if err != nil {
				return err
			}
			// A dry run is the run: it works in a directory of its own.
			o := replay.Options{Git: p.git(false), KeepEnv: w.config.List("tilth.sandboxEnv")}
			if o.Sandbox, err = w.sandbox(); err != nil {
				return err
			}
			if ctx.Bool("harness") {
				if o.Prompts, err = loop.LoadPrompts(w.promptDir()); err != nil {
					return err
				}
			}
			done, err := replay.Run(p.ctx, o, s)
			if err == nil && done.Divergence != "" {
				err = changed()
			}
			if err != nil {
				return err
			}
			for _, note := range done.Notes {
				p.printf("%s\n", text.VisibleLine(note))
			}
			if done.Divergence != "" {
				return &exitError{code: exitNo, msg: "session " + s.ID + " diverges: " + done.Divergence,
					hint: "git tilth verify " + s.ID +
						"; hooks and tilth.setup are not run again, which may be the cause"}
			}
			p.printf("%s: %s again, %s equal to what was committed\n", s.ID, text.Plural(done.Calls, "call"),
				text.Plural(done.Commits, "tree"))
			return nil
		}),
	}
}
