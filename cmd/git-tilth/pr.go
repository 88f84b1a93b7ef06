package main

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

func (p *process) prCommand() *cli.Command {
	return p.declare(traits{wish: "share"}, &cli.Command{
		Name:      "pr",
		Usage:     "push the branch and open a pull or merge request",
		ArgsUsage: "[<session>]",
		Description: "Pushes to your push remote and opens the pull request with gh or glab, with the " +
			"review as its text. Without gh or glab, pr prints a URL to open in the browser. It " +
			"configures no upstream.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base", Usage: "the `BRANCH` to merge into (default: the remote's default branch)"},
			&cli.BoolFlag{Name: "stack", Usage: "open a pull request for each task, each based on the one before"},
			&cli.BoolFlag{Name: "draft", Usage: "open a draft"},
			&cli.BoolFlag{Name: "web", Usage: "continue in the browser"},
		},
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			p := &proposal{w: w, s: s, again: "git tilth pr " + s.ID, draft: ctx.Bool("draft"), refresh: true}
			if ctx.Bool("stack") {
				p.again = "git tilth pr --stack " + s.ID
			}
			return w.forgeError(p.pullRequest(ctx.String("base"), ctx.Bool("stack"), ctx.Bool("web")), p.again)
		}),
	})
}

// pullRequest pushes the branch and opens its request or stack of requests. Without a forge program it prints a URL.
func (p *proposal) pullRequest(base string, stack, web bool) error {
	w, s := p.w, p.s
	if s.Overview().Tasks.Done == 0 {
		return refuse("git tilth review "+s.ID, "no task of session %s is done yet", s.ID)
	}
	if err := p.read(); err != nil {
		return err
	}
	if err := p.updated(); err != nil {
		return err
	}
	stack = stack || p.isStack()
	if stack && p.missing != nil {
		return refuse("https://cli.github.com", "--stack needs gh or glab")
	}
	switch {
	case base != "":
	case p.top != nil:
		base = p.top.Root()
	case p.missing == nil:
		base = p.f.Default
	default:
		head := "refs/remotes/" + p.remote + "/"
		ref, _ := w.Git.Line(w.p.ctx, gitx.InRepo(p.common, "symbolic-ref", "--quiet", head+"HEAD"))
		base = strings.TrimPrefix(ref, head)
	}
	base = cmp.Or(base, "main")
	if p.missing != nil || web && p.top == nil {
		return p.create(base, web)
	}
	existed := p.top != nil
	if err := p.publish(stack, base); err != nil || w.p.dryRun {
		return err
	}
	if existed {
		if err := p.look(); err != nil {
			return err
		}
	}
	for _, r := range p.top.All() {
		w.p.printf("%s %s: %s\n", r.Name(), r.State, r.URL)
	}
	return nil
}

// create pushes the branch and opens a request with gh or glab, else prints a URL for it.
func (p *proposal) create(base string, web bool) error {
	w, branch := p.w, p.s.Branch()
	parts, err := p.parts(false)
	if err == nil {
		err = p.push(parts)
	}
	if err != nil || w.p.dryRun {
		return err
	}
	at := compareURL(p.address, base, branch)
	if p.f == nil {
		if at == "" {
			w.p.printf("pushed %s, to be merged into %s\n", branch, base)
		} else {
			w.p.printf("open the pull request at %s\n", at)
		}
		return nil
	}
	title, body, err := p.text(parts[0])
	if err != nil {
		return err
	}
	argv := []string{"glab", "mr", "create", "--yes", "--source-branch", branch, "--target-branch", base,
		"--title", title, "--description", body}
	if p.f.Program == "gh" {
		dir, remove, err := proc.TempDir()
		if err != nil {
			return err
		}
		defer remove()
		file := filepath.Join(dir, "body.md")
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			return err
		}
		argv = []string{"gh", "pr", "create", "--head", branch, "--base", base, "--title", title, "--body-file", file}
	}
	if p.draft {
		argv = append(argv, "--draft")
	}
	if web {
		argv = append(argv, "--web")
	}
	if err := proc.Attach(p.dir, argv, w.p.environ, nil, w.p.stdin, w.p.stdout.file, w.p.stderr); err != nil {
		return &exitError{code: exitFailed, msg: "the branch is pushed, but " + argv[0] + " could not open the request",
			hint: at, err: err}
	}
	return nil
}

// compareURL returns the URL for opening a request manually, "" for a remote on this machine.
func compareURL(address, base, branch string) string {
	host, path := forge.HostOf(address)
	switch {
	case host == "":
		return ""
	case strings.Contains(host, "gitlab"):
		q := url.Values{"merge_request[source_branch]": {branch}, "merge_request[target_branch]": {base}}
		return "https://" + host + "/" + path + "/-/merge_requests/new?" + q.Encode()
	}
	return "https://" + host + "/" + path + "/compare/" + base + "..." + branch + "?expand=1"
}
