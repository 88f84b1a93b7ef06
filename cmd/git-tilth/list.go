package main

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) listCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", looks: true}, &cli.Command{
		Name:      "list",
		Usage:     "sessions of this repository, newest first",
		ArgsUsage: "[<remote>]",
		Description: "STATUS is running while a process runs the session, else prepared, all_done or failed, or " +
			"what has become of it:\nstopped (nothing about its work is wrong: a resume goes on), crashed (it ended " +
			"without a stop), rewound, rewinding or\nresetting (begun and not finished), taken (all of it is " +
			"elsewhere too), cleansed (worktree and branch are gone),\ndamaged (checkpoint.json cannot be read). " +
			"With --json, status is as in checkpoint.json, where what was\n" +
			"stopped is running, and state is that, taken, cleansed or damaged.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "sessions of all repositories"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON array"},
			&cli.BoolFlag{Name: "remote",
				Usage: "sessions of a remote (origin, or the one named), and who works on each"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			if ctx.Bool("remote") {
				return w.listRemote(ctx.Args().First(), ctx.Bool("json"))
			}
			if ctx.NArg() > 0 {
				return refuse("git tilth list --remote "+text.ShellQuote(ctx.Args().First()),
					"only the sessions of a remote have a place")
			}
			all := ctx.Bool("all") || !w.inRepo
			rows, err := w.overviews(all)
			if err = cmp.Or(p.ctx.Err(), err); err != nil {
				return err
			}
			for _, r := range rows {
				if r.Skipped > 0 && !ctx.Bool("json") {
					p.warnf("git-tilth: session %s: lines at the end of its record that are no events: %d\n", r.ID,
						r.Skipped)
				}
			}
			return view.List(p.stdout, rows, p.terminal(ctx.Bool("json")), all)
		}),
	})
}
