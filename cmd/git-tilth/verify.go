package main

import (
	"cmp"
	"fmt"

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
				return err // a signal interrupted the check
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

// printVerified prints the first difference, or ok, and the notes.
func (p *process) printVerified(r *verify.Result) {
	if len(r.Differences) > 0 {
		p.printf("%s\n", r.Differences[0])
	} else {
		newer := ""
		if n := r.Bytes - r.AnchoredBytes; r.Anchored && n > 0 {
			newer = fmt.Sprintf(" (its last %d bytes are newer than the last commit)", n)
		}
		p.printf("%s: ok, no difference between %s and the record%s\n", r.SessionID,
			text.Plural(len(r.Commits), "commit"), newer)
	}
	for _, note := range r.Notes {
		p.printf("  %s\n", note)
	}
}
