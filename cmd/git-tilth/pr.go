package main

import (
	"bytes"
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) prCommand() *cli.Command {
	return p.declare(traits{wish: "share"}, &cli.Command{
		Name:      "pr",
		Usage:     "push the branch and open a pull or merge request",
		ArgsUsage: "[<session>]",
		Description: "Pushes to your push remote and opens the request with gh or glab; its text is the " +
			"review. Without these programs it prints the address that opens one. It configures no " +
			"upstream.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base", Usage: "the `BRANCH` to merge into (default: the remote's default branch)"},
			&cli.BoolFlag{Name: "draft", Usage: "open a draft"},
			&cli.BoolFlag{Name: "web", Usage: "continue in the browser"},
		},
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			return w.pullRequest(s, request{base: ctx.String("base"), draft: ctx.Bool("draft"), web: ctx.Bool("web")})
		}),
	})
}

// request is a pull or merge request.
type request struct {
	base, branch, title, body string
	dir                       string // in the repository, where a remote's relative path begins
	draft, web                bool
}

// pullRequest is `git push <remote> <branch>`, then gh, glab or an address.
func (w *repoContext) pullRequest(s *session.Session, r request) error {
	common, err := commonOf(s)
	if err != nil {
		return refuse("git tilth show "+s.ID, "%s", err)
	}
	found := w.review(s)
	if s.Overview().Tasks.Done == 0 {
		return refuse("git tilth review "+s.ID, "no task of session %s is done yet", s.ID)
	}
	if found.Gone {
		return refuse("git tilth review "+s.ID, "branch %s is gone", s.Branch())
	}
	remote, address, err := w.pushRemote(common)
	if err != nil {
		return fail("", err)
	}
	if remote == "" {
		return refuse("git tilth take "+s.ID, "there is no remote to push to; add one with git remote add")
	}
	r.branch, r.dir = s.Branch(), held.SourceNow(s.Overview().Source, common)
	head, _ := w.Git.Line(w.p.ctx, gitx.InRepo(common, "symbolic-ref", "--quiet", "refs/remotes/"+remote+"/HEAD"))
	r.base = cmp.Or(r.base, strings.TrimPrefix(head, "refs/remotes/"+remote+"/"), "main")
	r.title = cmp.Or(text.OneLine(found.Label), found.Tasks[0].Title)
	var body bytes.Buffer
	if err := found.Write(&body, view.Terminal{}, "", true); err != nil {
		return err
	}
	r.body = body.String()
	ref := "refs/heads/" + r.branch
	if w.p.dryRun {
		w.p.printf("would run: git push %s %s:%s\n", remote, ref, ref)
		return nil
	}
	if err := w.userGit(r.dir, w.Git.ForUser(common), nil, "push", remote, ref+":"+ref); err != nil {
		return &exitError{code: exitFailed, msg: "the branch was not pushed to " + remote,
			hint: "git tilth pr " + s.ID, err: err}
	}
	return w.openRequest(r, address)
}

// openRequest opens a request with the program of the host, else prints where to do it by hand.
func (w *repoContext) openRequest(r request, address string) error {
	host, path := hostOf(address)
	dir, remove, err := proc.TempDir("pr")
	if err != nil {
		return err
	}
	defer remove()
	file := filepath.Join(dir, "body.md")
	if err := os.WriteFile(file, []byte(r.body), 0o600); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"gh", "pr", "create", "--head", r.branch, "--base", r.base, "--title", r.title, "--body-file", file},
		{"glab", "mr", "create", "--yes", "--source-branch", r.branch, "--target-branch", r.base, "--title", r.title,
			"--description", r.body},
	} {
		other := map[string]string{"gh": "gitlab", "glab": "github"}[argv[0]]
		if _, err := proc.LookPath(argv[0], "", w.p.environ); err != nil || strings.Contains(host, other) {
			continue
		}
		if r.draft {
			argv = append(argv, "--draft")
		}
		if r.web {
			argv = append(argv, "--web")
		}
		if err := proc.Attach(r.dir, argv, w.p.environ, nil, w.p.stdin, w.p.stdout.file, w.p.stderr); err != nil {
			return &exitError{code: exitFailed, msg: "the branch is pushed; " + argv[0] + " opened no request",
				hint: compareURL(host, path, r), err: err}
		}
		return nil
	}
	if at := compareURL(host, path, r); at != "" {
		w.p.printf("open the request at %s\n", at)
	} else {
		w.p.printf("pushed %s, to be merged into %s\n", r.branch, r.base)
	}
	return nil
}

// hostOf is the host and the path of a remote's URL, without a user or password; "" of a path on this machine.
func hostOf(address string) (host, path string) {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		host, path = u.Hostname(), u.Path
	} else if before, after, ok := strings.Cut(address, ":"); ok && !strings.Contains(before, "/") {
		host, path = before[strings.LastIndex(before, "@")+1:], after // user@host:path, as ssh has it
	}
	return host, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// compareURL is where a person opens a request by hand, "" where nothing is known of the host.
func compareURL(host, path string, r request) string {
	switch {
	case host == "":
		return ""
	case strings.Contains(host, "gitlab"):
		q := url.Values{"merge_request[source_branch]": {r.branch}, "merge_request[target_branch]": {r.base}}
		return "https://" + host + "/" + path + "/-/merge_requests/new?" + q.Encode()
	}
	return "https://" + host + "/" + path + "/compare/" + r.base + "..." + r.branch + "?expand=1"
}

// pushRemote is the remote that the user pushes to and its URL: remote.pushDefault, else origin, else the only one; ""
// for none.
func (w *repoContext) pushRemote(common string) (name, url string, err error) {
	ask := func(args ...string) (string, error) { return w.Git.Line(w.p.ctx, gitx.InRepo(common, args...)) }
	out, err := ask("remote")
	if err != nil {
		return "", "", err
	}
	names := strings.Fields(out)
	name, _ = ask("config", "--get", "remote.pushDefault")
	switch {
	case slices.Contains(names, name):
	case slices.Contains(names, "origin"):
		name = "origin"
	case len(names) == 1:
		name = names[0]
	default:
		return "", "", nil
	}
	url, err = ask("remote", "get-url", "--push", "--", name)
	return name, url, err
}
