package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/session"
)

func (p *process) resumeCommand() *cli.Command {
	return p.declare(traits{wish: "steer", starts: true, hooked: true, ends: true}, &cli.Command{
		Name:      "resume",
		Usage:     "continue a session exactly where it stopped",
		ArgsUsage: "[<session>]",
		Description: "Continues a session after any stop, cap, Ctrl-C, crash or reboot. Failed tasks become " +
			"pending again, and their partial work is staged again. -n prints the plan.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "fresh",
				Usage: "start a new conversation, with the ledger and the working tree as context"},
			&cli.BoolFlag{Name: "continue", Usage: "continue the earlier conversation"},
			detachFlag(),
		}, runFlags()...),
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			r := newRunRequest(ctx)
			if r.options.Fresh && r.options.Continue {
				return refuse("git tilth resume -h", "--fresh and --continue cannot be combined")
			}
			return w.proceed(s, r)
		}),
	})
}
