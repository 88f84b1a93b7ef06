package main

import (
	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/fleet"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
)

func (p *process) cleanseCommand() *cli.Command {
	return p.declare(traits{wish: "review", rare: true}, &cli.Command{
		Name:      "cleanse",
		Usage:     "delete the worktree and branch once the work is merged, taken or pushed",
		ArgsUsage: "[<session>]",
		Action: p.onSessionToChange(func(_ *cli.Context, w *repoContext, s *session.Session) error {
			unlock, err := held.Lock(w.Deps(nil), s)
			if err != nil {
				return err
			}
			defer unlock()
			remote := fleet.RemoteOf(s)
			if common, err := commonOf(s); err == nil && remote == "" {
				remote, _, _ = w.pushRemote(common) // a remote is optional
			}
			return lifecycle.Cleanse(p.ctx, w.Git, s, w.Loc.CommonDir, remote, p.sayRemoved)
		}),
	})
}
