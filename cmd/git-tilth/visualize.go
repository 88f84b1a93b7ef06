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
			for _, flag := range []string{"addr", "remote"} {
				if ctx.IsSet(flag) && !ctx.Bool("serve") {
					return refuse("git tilth visualize -h", "--%s goes with --serve", flag)
				}
			}
			o := view.ServeOptions{Diff: w.diffOf, Ready: func(url string) { w.say(url, ctx.Bool("open")) }}
			switch {
			case ctx.Bool("remote"):
				place, err := w.placeToList(ctx.Args().First())
				if err != nil {
					return err
				}
				o.Remote = func(ctx context.Context) (any, error) { return w.remoteRows(ctx, place) }
				return w.serve(o, ctx.String("addr"), "")
			case ctx.Bool("serve"):
				return w.serve(o, ctx.String("addr"), ctx.Args().First())
			}
			s, err := w.session(ctx.Args().First(), false)
			if err != nil {
				return err
			}
			if p.dryRun {
				p.printf("would write: %s\n", s.Path(session.ChatHTMLFile))
				return nil
			}
			if err := view.RenderFile(p.ctx, s, p.now(), w.diffOf); err != nil {
				return w.orGone(s, fail("", err))
			}
			w.say(s.Path(session.ChatHTMLFile), ctx.Bool("open"))
			return nil
		}),
	}
}

// serve runs the live viewer until it is interrupted.
func (w *repoContext) serve(o view.ServeOptions, addr, arg string) error {
	ln, err := view.Listen(addr)
	if err != nil {
		return refuse("git tilth visualize --serve --addr 127.0.0.1:0", "%s", err) // any free port
	}
	defer ln.Close()
	if o.Remote == nil && (arg != "" || w.inRepo) {
		s, err := w.session(arg, false)
		switch {
		case err == nil:
			o.Session = s.ID
		case arg != "":
			return err
		}
	}
	err = view.Serve(w.p.ctx, ln, w.store, o)
	if w.p.ctx.Err() != nil {
		return nil // interrupting is how serving ends
	}
	return err
}

// diffOf shows a commit of a session against its parent.
func (w *repoContext) diffOf(ctx context.Context, s *session.Session, sha string) (patch string, truncated bool) {
	common, err := commonOf(s)
	if err != nil {
		return "", false
	}
	data, cut, err := w.git.Diff(ctx, common, "", sha, diffCap)
	if err != nil {
		return "", false
	}
	return w.redact.String(string(data)), cut // what was committed may hold a secret; a page must not
}

// say prints the name of a file or URL and shows it in the user's browser if it is to be opened. That it cannot is no
// failure.
func (w *repoContext) say(what string, open bool) {
	w.p.printf("%s\n", what)
	if !open {
		return
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if _, err := proc.Detach([]string{opener, what}, w.p.dir, w.p.environ, os.DevNull); err != nil {
		w.p.warnf("git-tilth: no browser could be opened: %s\n", err)
	}
}
