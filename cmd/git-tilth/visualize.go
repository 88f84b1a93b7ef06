package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"runtime"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

// diffCap bounds the diff of one commit in a page, in bytes.
const diffCap = 256 << 10

func (p *process) visualizeCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", rare: true, looks: true, plans: true}, &cli.Command{
		Name:      "visualize",
		Usage:     "write a session as one HTML file, or serve it live",
		ArgsUsage: "[<session>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "open", Usage: "open the page in the browser"},
			&cli.BoolFlag{Name: "serve", Usage: "serve the live page and a list of all sessions on loopback"},
			&cli.StringFlag{Name: "addr", Value: view.DefaultAddr,
				Usage: "listen on this loopback `ADDRESS`, with --serve"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			if ctx.IsSet("addr") && !ctx.Bool("serve") {
				return refuse("git tilth visualize -h", "--addr needs --serve")
			}
			var one sync.Mutex // the repository context is not safe for concurrent use
			review := func(s *session.Session) *view.Report {
				one.Lock()
				defer one.Unlock()
				return w.report(s)
			}
			rows := func() ([]session.Overview, error) {
				one.Lock()
				defer one.Unlock()
				return w.overviews(true)
			}
			o := view.ServeOptions{Diff: w.diffOf, Review: review, Rows: rows,
				Ready: func(url string) { w.say(url, false) }}
			if ctx.Bool("serve") && ctx.Bool("open") {
				forget := func() {}
				o.Ready = func(url string) {
					w.say(url, false)
					forget = w.openURL(url)
				}
				defer func() { forget() }()
			}
			if ctx.Bool("serve") {
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
			if err := view.RenderFile(p.ctx, s, p.now(), w.diffOf, w.report(s)); err != nil {
				return w.orGone(s, fail("", err))
			}
			w.say(s.Path(session.ChatHTMLFile), ctx.Bool("open"))
			return nil
		}),
	})
}

// serve runs the live viewer until an interrupt. own limits it to sessions of this repository.
func (w *repoContext) serve(o view.ServeOptions, addr, arg string) error {
	ln, err := view.Listen(addr)
	if err != nil {
		return refuse("git tilth visualize --serve --addr 127.0.0.1:0", "%s", err) // any free port
	}
	defer ln.Close()
	if arg != "" || w.inRepo {
		s, err := w.session(arg, false)
		switch {
		case err == nil:
			o.Session = s.ID
		case arg != "":
			return err
		}
	}
	err = view.Serve(w.p.ctx, ln, w.Store, o)
	if w.p.ctx.Err() != nil {
		return nil // an interrupt is the normal end
	}
	return err
}

// diffOf shows a commit of a session against its parent.
func (w *repoContext) diffOf(ctx context.Context, s *session.Session, sha string) (patch string, truncated bool) {
	common, err := commonOf(s)
	if err != nil {
		return "", false
	}
	data, cut, err := w.Git.Diff(ctx, common, "", sha, diffCap)
	if err != nil {
		return "", false
	}
	return w.Redact.String(string(data)), cut // a commit may contain a secret; a page must not
}

// openURL opens a URL in the user's browser through a file that redirects to it. Only the user can read the file: the
// URL has a token, and every user can read command lines. forget removes the file.
func (w *repoContext) openURL(url string) (forget func()) {
	f, err := os.CreateTemp(w.Store.Root, ".open-*.html")
	if err == nil {
		_, err = fmt.Fprintf(f, "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"+
			"<meta http-equiv=refresh content=\"0; url=%[1]s\"><a href=\"%[1]s\">git tilth</a>\n",
			html.EscapeString(url))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.p.warnf("git-tilth: no browser could be opened: %s\n", err)
		return func() {}
	}
	w.open(f.Name())
	return func() { os.Remove(f.Name()) }
}

// say prints the name of a file or URL and opens it in the user's browser if open is true.
func (w *repoContext) say(what string, open bool) {
	w.p.printf("%s\n", what)
	if open {
		w.open(what)
	}
}

// open opens a file in the user's browser. It only prints an error.
func (w *repoContext) open(what string) {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if _, err := proc.Detach([]string{opener, what}, w.p.dir, w.p.environ, os.DevNull); err != nil {
		w.p.warnf("git-tilth: no browser could be opened: %s\n", err)
	}
}
