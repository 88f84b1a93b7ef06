package main

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/verify"
)

func (p *process) verifyCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", rare: true, looks: true, starts: true}, &cli.Command{
		Name:      "verify",
		Usage:     "check that the commits and the record agree and were not altered",
		ArgsUsage: "[<session>]",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print a JSON object with all differences"}},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			changed, err := w.atRest(s)
			if err != nil {
				return err
			}
			found, err := verify.Session(p.ctx, w.Git, s)
			if err = cmp.Or(err, p.ctx.Err()); err == nil && len(found.Differences) > 0 {
				err = changed()
			}
			if err != nil {
				return err // what a signal kept from being read is no difference
			}
			if ctx.Bool("json") {
				err = p.printJSON(found)
			} else {
				p.printVerified(found)
			}
			if err == nil && len(found.Differences) > 0 {
				err = &exitError{code: exitNo, msg: "session " + s.ID + ": " +
					text.Plural(len(found.Differences), "difference"),
					hint: "git tilth verify --json " + s.ID}
			}
			return err
		}),
	})
}

// printVerified prints the first difference, or that there is none, and the notes.
func (p *process) printVerified(r *verify.Result) {
	if len(r.Differences) > 0 {
		p.printf("%s\n", r.Differences[0])
	} else {
		p.printf("%s: no difference in %s; they vouch for %d of the record's %d bytes\n", r.SessionID,
			text.Plural(len(r.Commits), "commit"), r.AnchoredBytes, r.Bytes)
	}
	for _, note := range r.Notes {
		p.printf("  %s\n", note)
	}
}
