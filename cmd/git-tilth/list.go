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
		Usage:     "list the sessions of this repository, newest first",
		ArgsUsage: "[<remote>]",
		Description: "The state of a session is prepared, running, all_done, failed, or one of: stopped (resume " +
			"continues it), crashed (ended without recording a stop), rewound, rewinding (an " +
			"interrupted rewind), resetting (an interrupted reset), proposed (its pull request is open), " +
			"taken (its work is merged, taken or pushed), cleansed (worktree and branch are deleted), " +
			"damaged (checkpoint.json cannot be read). With --json, status is prepared, running, all_done " +
			"or failed; state is proposed, taken, cleansed, damaged or the same as status.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list the sessions of all repositories"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON array"},
			&cli.BoolFlag{Name: "remote",
				Usage: "list the sessions of a remote, and the machine that works on each"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			if ctx.Bool("remote") {
				return w.listRemote(ctx.Args().First(), ctx.Bool("json"))
			}
			if ctx.NArg() > 0 {
				return refuse("git tilth list --remote "+text.ShellQuote(ctx.Args().First()),
					"list takes a remote only with --remote")
			}
			all := ctx.Bool("all") || !w.inRepo
			rows, err := w.overviews(all)
			if err = cmp.Or(p.ctx.Err(), err); err != nil {
				return err
			}
			for _, r := range rows {
				if r.Skipped > 0 && !ctx.Bool("json") {
					p.warnf("git-tilth: session %s: lines of the record that are not events: %d\n", r.ID,
						r.Skipped)
				}
			}
			return view.List(p.stdout, rows, p.terminal(ctx.Bool("json")), all)
		}),
	})
}
