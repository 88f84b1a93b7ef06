package main

import (
	"context"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

// diffCap bounds what a page shows of one commit.
const diffCap = 256 << 10

func (p *process) visualizeCommand() *cli.Command {
	return &cli.Command{
		Name:      "visualize",
		Usage:     "render a session as one HTML file, or serve it live",
		ArgsUsage: "[<session>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "open", Usage: "open it in the browser"},
			&cli.BoolFlag{Name: "serve", Usage: "serve the live page and a list of all sessions, on loopback"},
			&cli.BoolFlag{Name: "remote",
				Usage: "with --serve: list the sessions of a remote (origin, or the one named), and who works on each"},
			&cli.StringFlag{Name: "addr", Value: view.DefaultAddr,
				Usage: "with --serve: listen on this loopback `ADDRESS`"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			if ctx.IsSet("addr") && !ctx.Bool("serve") {
				return refuse("git tilth visualize --serve --addr "+ctx.String("addr"), "--addr goes with --serve")
			}
			o := view.ServeOptions{Addr: ctx.String("addr")}
			switch {
			case ctx.Bool("remote") && !ctx.Bool("serve"):
				return refuse("git tilth visualize --serve --remote", "--remote goes with --serve")
			case ctx.Bool("remote"):
				place, err := w.placeHere(ctx.Args().First())
				if err != nil {
					return err
				}
				o.Remote = func(ctx context.Context) ([]view.RemoteRow, error) { return p.remoteRows(ctx, place) }
				return w.serve(o, "", ctx.Bool("open"))
			case ctx.Bool("serve"):
				return w.serve(o, ctx.Args().First(), ctx.Bool("open"))
			}
			s, err := w.session(ctx.Args().First())
			if err != nil {
				return err
			}
			if p.dryRun {
				p.printf("would write: %s\n", s.Path(session.ChatHTMLFile))
				return nil
			}
			with := view.RenderOptions{Diff: w.differ(p.ctx, s), Now: p.now()}
			if err := view.RenderFile(p.ctx, s, with); err != nil {
				return fail("", err)
			}
			p.printf("%s\n", s.Path(session.ChatHTMLFile))
			if ctx.Bool("open") {
				w.open(s.Path(session.ChatHTMLFile))
			}
			return nil
		}),
	}
}

// serve runs the live viewer until it is interrupted.
func (w *repoContext) serve(o view.ServeOptions, arg string, open bool) error {
	if err := view.CheckAddr(o.Addr); err != nil {
		return err
	}
	o.Out = w.p.stdout
	o.Diff = func(ctx context.Context, s *session.Session, sha string) (string, bool) {
		return w.differ(ctx, s)(sha)
	}
	if o.Remote == nil && (arg != "" || w.inRepo) {
		s, err := w.session(arg)
		switch {
		case err == nil:
			o.Session = s.ID
		case arg != "":
			return err
		}
	}
	if open {
		o.Open = w.open
	}
	err := view.Serve(w.p.ctx, w.store, o)
	if w.p.ctx.Err() != nil {
		return nil // interrupting is how serving ends
	}
	return err
}

// differ shows a commit of a session against its parent.
func (w *repoContext) differ(ctx context.Context, s *session.Session) view.DiffFunc {
	common, err := commonOf(s)
	if err != nil {
		return func(string) (string, bool) { return "", false }
	}
	return func(sha string) (string, bool) {
		patch, cut, err := w.git.Diff(ctx, common, "", sha, diffCap)
		if err != nil {
			return "", false
		}
		return w.redact.String(string(patch)), cut // what was committed may hold a secret; a page must not
	}
}

// open shows a file or URL in the user's browser. That it cannot is no failure: the path was printed.
func (w *repoContext) open(what string) {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if _, err := proc.Detach([]string{opener, what}, w.p.dir, w.p.environ, os.DevNull); err != nil {
		w.p.warnf("git-tilth: no browser could be opened: %s\n", err)
	}
}
