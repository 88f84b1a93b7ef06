package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) exportCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", rare: true, looks: true}, &cli.Command{
		Name:      "export",
		Usage:     "write a session's record as OpenTelemetry traces",
		ArgsUsage: "[<session>]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "otlp",
				Usage: "a `FILE` (- is standard output) or the URL of an OTLP/HTTP receiver, as JSON"},
		},
		Action: p.onSession(func(ctx *cli.Context, _ *repoContext, s *session.Session) error {
			dest := ctx.String("otlp")
			if dest == "" {
				return refuse("git tilth export --otlp trace.json", "where to export to is missing")
			}
			if to, err := os.Stat(dest); err == nil {
				if out, err := p.stdout.file.Stat(); err == nil && os.SameFile(to, out) {
					dest = "-" // as /dev/stdout is
				}
			}
			shown := dest
			if strings.Contains(dest, "://") {
				shown = config.ShownURL(dest)
			}
			if p.dryRun {
				p.printf("would export session %s to %s\n", s.ID, shown)
				return nil
			}
			skipped, err := view.Export(p.ctx, s, dest, p.stdout)
			if err != nil {
				return fail("", err)
			}
			if skipped > 0 {
				p.warnf("git-tilth: lines of the record that are no events, and were not exported: %d\n", skipped)
			}
			if dest != "-" {
				p.printf("session %s exported to %s\n", s.ID, shown)
			}
			return nil
		}),
	})
}
