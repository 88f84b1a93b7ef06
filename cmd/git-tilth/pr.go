package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/forge"
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
		Description: "Pushes to your push remote and opens the pull request with gh or glab, with the " +
			"review as its text. Without gh or glab, pr prints a URL to open it in the browser. It " +
			"configures no upstream.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base", Usage: "the `BRANCH` to merge into (default: the remote's default branch)"},
			&cli.BoolFlag{Name: "stack", Usage: "open a pull request for each task, each based on the one before"},
			&cli.BoolFlag{Name: "draft", Usage: "open a draft"},
			&cli.BoolFlag{Name: "web", Usage: "continue in the browser"},
		},
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			return w.pullRequest(s, request{base: ctx.String("base"), draft: ctx.Bool("draft"), web: ctx.Bool("web"),
				stack: ctx.Bool("stack")})
		}),
	})
}

// request is a pull or merge request.
type request struct {
	base, branch, title, body string
	dir                       string // in the repository, where a remote's relative path begins
	draft, web, stack         bool
}

// pullRequest is `git push <remote> <branch>`, then gh, glab or an address.
func (w *repoContext) pullRequest(s *session.Session, r request) error {
	common, err := commonOf(s)
	if err != nil {
		return refuse("git tilth show "+s.ID, "%s", err)
	}
	found := w.report(s)
	if s.Overview().Tasks.Done == 0 {
		return refuse("git tilth review "+s.ID, "no task of session %s is done yet", s.ID)
	}
	if state, err := s.State(); err == nil && len(state.Steps) > 0 {
		return refuse("git tilth update "+s.ID, "session %s is not yet on its new base", s.ID)
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
	f, open, err := w.lookForRequest(s, common, address)
	if err != nil {
		return err
	}
	head, _ := w.Git.Line(w.p.ctx, gitx.InRepo(common, "symbolic-ref", "--quiet", "refs/remotes/"+remote+"/HEAD"))
	r.base = cmp.Or(r.base, strings.TrimPrefix(head, "refs/remotes/"+remote+"/"))
	if f != nil {
		r.base = cmp.Or(r.base, f.Default)
	}
	r.base = cmp.Or(r.base, "main")
	if known := s.Request(); known != nil && known.Below != nil {
		r.base, r.stack = known.Root(), true
	}
	if r.stack {
		return w.stack(s, publishing{s, f, common, remote, r.base, r.draft, "git tilth pr --stack " + s.ID})
	}
	r.title = cmp.Or(text.OneLine(found.Label), found.Tasks[0].Title)
	if r.body, err = w.requestText(s); err != nil {
		return err
	}
	if err := w.pushBranch(s, common, remote, r.dir); err != nil || w.p.dryRun {
		return err
	}
	switch {
	case open != nil:
		if err = f.Set(w.p.ctx, open.Number, map[string]string{"body": r.body}); err == nil {
			_, _, err = f.Look(w.p.ctx, open)
		}
	case f != nil && !r.web:
		open, err = f.Open(w.p.ctx, forge.Draft{Base: r.base, Branch: r.branch, Title: r.title, Body: r.body,
			Draft: r.draft})
	default:
		return w.openRequest(r, address)
	}
	if err != nil {
		return w.forgeError(err, "git tilth pr "+s.ID)
	}
	if tip, there, err := w.Git.BranchTip(w.p.ctx, common, s.Branch()); err == nil && there {
		open.Head, open.Took = tip, tip
	}
	if err := s.SaveRequest(open, w.p.now()); err != nil {
		return fail("", err)
	}
	w.p.printf("%s %s: %s\n", open.Name(), open.State, open.URL)
	return nil
}

// stack opens a request for each task.
func (w *repoContext) stack(s *session.Session, p publishing) error {
	if p.f == nil {
		return refuse("https://cli.github.com", "--stack needs gh or glab")
	}
	top, err := w.publish(p)
	if err != nil || top == nil {
		return err
	}
	for _, r := range append(slices.Clone(top.Below), top) {
		if _, _, err := p.f.Look(w.p.ctx, r); err != nil {
			return w.forgeError(err, p.again)
		}
		w.p.printf("%s %s: %s\n", r.Name(), r.State, r.URL)
	}
	if err := s.SaveRequest(top, w.p.now()); err != nil {
		return fail("", err)
	}
	return nil
}

// requestText is the review as the text of a request, with the issues that the request closes.
func (w *repoContext) requestText(s *session.Session) (string, error) {
	var body bytes.Buffer
	if err := w.report(s).Write(&body, view.Terminal{}, "", true); err != nil {
		return "", err
	}
	tasks, err := s.Tasks()
	return body.String() + forge.Closing(tasks), err
}

// pushBranch pushes the session's branch. A branch that the remote has already is not pushed again.
func (w *repoContext) pushBranch(s *session.Session, common, remote, dir string, flags ...string) error {
	ref := "refs/heads/" + s.Branch()
	if w.p.dryRun {
		w.p.printf("would run: git push %s %s:%s\n", remote, ref, ref)
		return nil
	}
	args := append([]string{"push"}, flags...)
	if err := w.userGit(dir, w.Git.ForUser(common), nil, append(args, remote, ref+":"+ref)...); err != nil {
		hint := "git tilth pr " + s.ID
		if s.Request() != nil {
			hint = "git tilth update " + s.ID
		}
		return &exitError{code: exitFailed, msg: "the branch was not pushed to " + remote, hint: hint, err: err}
	}
	return nil
}

// lookForRequest checks login and permission, and finds the open request of the session's branch. f is nil where no
// program answers for the forge's API.
func (w *repoContext) lookForRequest(s *session.Session, common, address string) (f *forge.Forge,
	open *session.Request, err error) {
	if f, err = w.forgeOf(common, address); err != nil || f.Path == "" {
		return nil, nil, nil
	}
	err = f.Enter(w.p.ctx, true)
	if err == nil {
		open, err = f.Find(w.p.ctx, s.Branch())
	}
	switch {
	case errors.Is(err, forge.ErrUnknown):
		return nil, nil, nil
	case err != nil:
		return nil, nil, w.forgeError(err, "git tilth pr "+s.ID)
	case open == nil || open.State == session.RequestOpen:
		return f, open, nil
	}
	return nil, nil, w.noteOver(s, open)
}

// noteOver stores a request that is merged or closed and refuses to work on it.
func (w *repoContext) noteOver(s *session.Session, r *session.Request) error {
	if !w.p.dryRun {
		if err := s.SaveRequest(r, w.p.now()); err != nil {
			return fail("", err)
		}
	}
	hint := "git tilth cleanse " + s.ID
	if r.State == session.RequestClosed {
		hint = map[string]string{"gh": "gh pr reopen ", "glab": "glab mr reopen "}[r.Forge] + fmt.Sprint(r.Number)
	}
	return refuse(hint, "%s is %s: %s", r.Name(), r.State, r.URL)
}

// forgeOf is the forge of a remote's address.
func (w *repoContext) forgeOf(common, address string) (*forge.Forge, error) {
	f, err := forge.Find(w.p.ctx, address, common, w.p.environ)
	if err == nil {
		f.Reviewers = strings.FieldsFunc(w.Config.Text("tilth.reviewers"), func(r rune) bool { return r == ',' })
	}
	return f, err
}

// targetRemote is the remote of the project that a request is for, or its URL: that of a fork is another one.
func (w *repoContext) targetRemote(f *forge.Forge, common, remote string) (string, error) {
	if f.Target == f.Path {
		return remote, nil
	}
	out, err := w.Git.Line(w.p.ctx, gitx.InRepo(common, "config", "--get-regexp", `^remote\..*\.url$`))
	own := ""
	for line := range strings.Lines(out) {
		key, url, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
		if host, path := forge.HostOf(url); host == f.Host && path == f.Target {
			return name, nil
		} else if name == remote {
			own = url
		}
	}
	return strings.Replace(own, f.Path, f.Target, 1), err
}

// forgeError is a failure of the forge as a command's error. again is the command that continues.
func (w *repoContext) forgeError(err error, again string) error {
	var refused *forge.Error
	var rate *forge.RateError
	switch {
	case errors.Is(err, context.Canceled), errors.As(err, new(*exitError)):
		return err
	case errors.As(err, &refused):
		return refuse(refused.Hint, "%s", refused.Msg)
	case errors.As(err, &rate):
		return &exitError{code: exitCap, msg: err.Error(), hint: again, err: err}
	case errors.Is(err, forge.ErrUnknown):
		return refuse("gh --version", "%s", err)
	}
	return fail(again, err)
}

// openRequest opens a request with the program of the host, else prints a URL for opening it manually.
func (w *repoContext) openRequest(r request, address string) error {
	host, path := forge.HostOf(address)
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
		if _, err := proc.LookPath(argv[0], "", w.p.environ); err != nil || host == "" ||
			strings.Contains(host, other) {
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

// compareURL returns the URL for opening a request manually, "" for an unknown host.
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

// pushRemote returns the user's push remote and its URL: remote.pushDefault, else origin, else the only one, else "".
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
	for _, key := range []string{"pushurl", "url"} { // git may rewrite it to a path
		if host, _ := forge.HostOf(url); host == "" && err == nil {
			configured, _ := ask("config", "--get", "remote."+name+"."+key)
			url = cmp.Or(configured, url)
		}
	}
	return name, url, err
}
