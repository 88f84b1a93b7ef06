package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/session"
)

func (p *process) resumeCommand() *cli.Command {
	return p.declare(traits{wish: "steer", starts: true, hooked: true, ends: true}, &cli.Command{
		Name:      "resume",
		Usage:     "go on with a session exactly where it stopped",
		ArgsUsage: "[<session>]",
		Description: "Wakes a session after any stop, cap, Ctrl-C, crash or reboot: failed tasks go back to pending, " +
			"their partial work\nreturns to the index, and the loop goes on. -n shows what it would do.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "fresh",
				Usage: "begin a new conversation, with the ledger and the working tree as context"},
			&cli.BoolFlag{Name: "continue", Usage: "go on with the earlier conversation"},
		}, runFlags()...),
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			r := newRunRequest(ctx)
			if r.options.Fresh && r.options.Continue {
				return refuse("git tilth resume -h", "--fresh and --continue exclude each other")
			}
			return w.proceed(s, r)
		}),
	})
}
