package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write a session's record as OpenTelemetry traces",
		ArgsUsage: "[<session>]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "otlp", Usage: "a `FILE` (JSON, or protobuf if it ends in .pb) or the URL of an OTLP/HTTP receiver"},
		},
		Action: p.onSession(func(ctx *cli.Context, _ *world, s *session.Session) error {
			dest := ctx.String("otlp")
			if dest == "" {
				return refuse("git tilth export --otlp trace.json", "where to export to is missing")
			}
			if p.dryRun {
				p.printf("would export session %s to %s\n", s.ID, dest)
				return nil
			}
			if err := view.Export(p.ctx, s, dest); err != nil {
				return fail("", err)
			}
			p.printf("session %s exported to %s\n", s.ID, dest)
			return nil
		}),
	}
}
