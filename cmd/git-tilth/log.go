package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) logCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", looks: true, counts: true}, &cli.Command{
		Name:      "log",
		Usage:     "print a session's record, or follow it",
		ArgsUsage: "[<session>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"},
				Usage: "follow the record until interrupted"},
			&cli.IntFlag{Name: "tail", Aliases: []string{"n"}, DefaultText: "all",
				Usage: "print only the last `N` events"},
			&cli.StringFlag{Name: "task", Usage: "print only events of `TASK`"},
			&cli.StringFlag{Name: "type", Usage: "print only events of `TYPE`"},
			&cli.BoolFlag{Name: "json", Usage: "print the record's lines as they are"},
		},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.IsSet("tail") && ctx.Int("tail") < 1 {
				return refuse("git tilth log -h", "--tail must be at least 1")
			}
			o := view.LogOptions{
				Terminal: p.terminal(ctx.Bool("json")), Follow: ctx.Bool("follow"), Tail: ctx.Int("tail"),
				Task: ctx.String("task"), Type: ctx.String("type"),
			}
			if o.Task != "" {
				o.Task = tasksIn(s, []string{o.Task})[0]
			}
			if err := view.CheckLogFilter(s, o); err != nil {
				return refuse("git tilth show "+s.ID, "%s", err)
			}
			skipped, err := view.Log(p.ctx, p.stdout, s, o)
			if skipped > 0 {
				p.warnf("git-tilth: skipped lines of the record that are not events: %s\n",
					text.Plural(skipped, "line"))
			}
			if err == nil && o.Follow && p.ctx.Err() == nil {
				p.warnf("git-tilth: session %s was removed\n", s.ID)
			}
			return err
		}),
	})
}
