package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// proposal is a session's branch on a forge, with its pull request, or with its stack: one request for each task, each
// based on the one before. The highest request has the session's branch. The other branches exist only on the forge.
// This is the state there after each step of publish; after a kill the same command continues:
//  1. all branches are pushed at once           the requests show the new commits
//  2. each request is opened, or its text and   an opened request is found by its branch
//     base are set
//  3. request.json is written                   finished
type proposal struct {
	w       *repoContext
	s       *session.Session
	again   string           // the command that continues
	f       *forge.Forge     // nil if there is no program for the remote
	missing error            // why no forge program can reach the remote
	top     *session.Request // highest request of a stack; nil for none
	draft   bool
	refresh bool         // push and set the text of each request again, even if nothing changed
	lease   bool         // replace the commits that the forge has by the session's, which include them
	items   []forge.Item // the threads and failed checks of the open requests, after look

	common, remote, address string
	dir                     string // directory in the repository, for a remote's relative path
}

// read finds the session's remote, checks the login and the permission, and reads the session's requests.
func (p *proposal) read() (err error) {
	w, s := p.w, p.s
	if p.common, err = commonOf(s); err != nil {
		return refuse("git tilth show "+s.ID, "%s", err)
	}
	p.dir = held.SourceNow(s.Overview().Source, p.common)
	if p.remote, p.address, err = w.pushRemote(p.common); err != nil {
		return err
	}
	if p.remote == "" {
		return refuse("git tilth take "+s.ID, "there is no remote to push to; add one with git remote add")
	}
	if p.f, p.missing = w.forgeOf(p.common, p.address); p.missing != nil {
		return nil
	}
	if err = p.f.Enter(w.p.ctx, true); err == nil {
		err = p.find()
	}
	if errors.Is(err, forge.ErrUnknown) {
		p.missing = err
		return nil
	}
	return err
}

// find reads the current state of the session's requests, by their branches. It stores and refuses a closed request,
// and a highest one that is merged.
func (p *proposal) find() error {
	list := []*session.Request{{Branch: p.s.Branch()}}
	if known := p.s.Request(); known != nil {
		list = known.All()
	}
	for i, known := range list {
		r, err := p.f.Find(p.w.p.ctx, known.Branch)
		if err != nil {
			return err
		}
		if list[i] = r; r != nil {
			r.Task, r.Took, r.Round, r.Rounds = known.Task, known.Took, known.Round, known.Rounds
		}
	}
	top := list[len(list)-1]
	if top == nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(r *session.Request) bool { return r == nil })
	// A pr that was killed after it opened the lower requests of a stack has not stored them.
	for base := list[0].Base; strings.HasPrefix(base, p.stackBranch("")); base = list[0].Base {
		r, err := p.f.Find(p.w.p.ctx, base)
		if err != nil {
			return err
		}
		if r == nil || slices.ContainsFunc(list, func(of *session.Request) bool { return of.Branch == base }) {
			break
		}
		r.Task = strings.TrimPrefix(base, p.stackBranch(""))
		list = slices.Insert(list, 0, r)
	}
	p.top, top.Below = top, list[:len(list)-1]
	for _, r := range list {
		hint := "git tilth cleanse " + p.s.ID
		switch {
		case r.State == session.RequestClosed:
			hint = map[string]string{"gh": "gh pr reopen ", "glab": "glab mr reopen "}[r.Forge] + fmt.Sprint(r.Number)
			if at, err := p.remoteTip(p.remote, r.Branch); err == nil && at == "" { // GitHub needs it
				hint = "git push " + text.ShellQuote(p.remote, r.Head+":refs/heads/"+r.Branch) + " && " + hint
			}
		case r.State == session.RequestOpen || r != top:
			continue
		}
		if err := p.save(); err != nil {
			return err
		}
		return refuse(hint, "%s is %s: %s", r.Name(), r.State, r.URL)
	}
	return nil
}

// stackBranch returns the branch on the forge for a task of a stack.
func (p *proposal) stackBranch(task string) string { return "stack/" + p.s.ID + "/" + task }

func (p *proposal) isStack() bool { return p.top != nil && len(p.top.Below) > 0 }

// has reports whether a revision has a commit.
func (p *proposal) has(revision, commit string) bool {
	ask := gitx.InRepo(p.common, "merge-base", "--is-ancestor", commit, revision)
	_, err := p.w.Git.Read(p.w.p.ctx, ask)
	return err == nil
}

// unfinished returns the session's pending tasks.
func (p *proposal) unfinished() ([]session.Task, error) {
	tasks, err := p.s.Tasks()
	return slices.DeleteFunc(tasks, func(t session.Task) bool {
		return t.Status == session.TaskDone || t.Status == session.TaskSkipped
	}), err
}

// updated refuses a session with an unfinished update: there are commits to repeat, or a task is open after a conflict.
// After a conflict, the branch lacks a commit of the request, and the request has only the session's commits.
func (p *proposal) updated() error {
	state, err := p.s.State()
	if err != nil {
		return err
	}
	unfinished := len(state.Steps) > 0
	if !unfinished && p.top != nil && p.top.Head == p.top.Took {
		tasks, err := p.unfinished()
		if err != nil {
			return err
		}
		unfinished = len(tasks) > 0 && !p.has(p.s.Branch(), p.top.Head)
	}
	if unfinished {
		return refuse("git tilth update "+p.s.ID, "the update of session %s is not finished", p.s.ID)
	}
	return nil
}

// look reads and stores the threads and failed checks of the open requests.
func (p *proposal) look() error {
	p.items = nil
	for _, r := range p.top.All() {
		if r.State != session.RequestOpen {
			continue
		}
		items, err := p.f.Look(p.w.p.ctx, r)
		if err != nil {
			return err
		}
		p.items = append(p.items, items...)
	}
	return p.save()
}

// save stores the current requests.
func (p *proposal) save() error {
	if p.w.p.dryRun || p.top == nil {
		return nil
	}
	return p.s.SaveRequest(p.top, p.w.p.now())
}

// part is the branch of one request: the whole session, or a task's commit and the commits of its threads and checks.
type part struct {
	task, tip, branch string // task is "" for the whole session
	tasks             []string
	request           *session.Request // nil if it is not opened yet
}

// parts divides a session's commits among the requests of its stack, the lowest first. Without a stack there is one.
func (p *proposal) parts(stack bool) (parts []part, err error) {
	state, bad := p.s.State()
	tasks, err := p.s.Tasks()
	if err = cmp.Or(bad, err); err != nil {
		return nil, err
	}
	tip, there, err := p.w.Git.BranchTip(p.w.p.ctx, p.common, p.s.Branch())
	if err == nil && !there {
		err = refuse("git tilth review "+p.s.ID, "branch %s is gone", p.s.Branch())
	}
	var commits []gitx.Commit
	if parts = []part{{tip: tip}}; stack && err == nil {
		parts = nil
		commits, _, err = held.CommitsSince(p.w.p.ctx, p.w.Git, p.common, tip, state.Seed.SHA)
	}
	for _, c := range slices.Backward(commits) {
		i := session.IndexOf(tasks, held.SignatureOf(c).Task)
		own := i >= 0 && !strings.HasPrefix(tasks[i].Source, "thread ") && !strings.HasPrefix(tasks[i].Source, "check ")
		if n := len(parts); n == 0 || own && parts[n-1].task != "" {
			parts = append(parts, part{})
		}
		last := &parts[len(parts)-1]
		if last.tip = c.SHA; i >= 0 {
			last.tasks = append(last.tasks, tasks[i].ID)
		}
		if own {
			last.task, last.branch = tasks[i].ID, p.stackBranch(tasks[i].ID)
		}
	}
	if len(parts) == 0 && err == nil {
		err = refuse("git tilth review "+p.s.ID, "session %s has no commit to propose", p.s.ID)
	}
	if err != nil {
		return nil, err
	}
	parts[len(parts)-1].branch = p.s.Branch()
	for i, of := range parts {
		for _, r := range p.top.All() {
			if r.Branch == of.branch {
				parts[i].request = r
			}
		}
	}
	return parts, nil
}

// open returns the parts whose requests are not merged.
func open(parts []part) []part {
	return slices.DeleteFunc(slices.Clone(parts), func(of part) bool {
		return of.request != nil && of.request.State == session.RequestMerged
	})
}

// push pushes the branches that the forge does not have yet.
func (p *proposal) push(parts []part) error {
	args, refs := []string{"push"}, []string(nil)
	for _, of := range open(parts) {
		ref, src := "refs/heads/"+of.branch, of.tip
		if of.branch == p.s.Branch() {
			src = ref
		}
		r := of.request
		if r != nil && r.Head == of.tip && !p.refresh {
			continue
		}
		switch {
		case r != nil && p.lease:
			args = append(args, "--force-with-lease="+ref+":"+r.Head)
		case r != nil && of.task != "":
			lease := cmp.Or(r.Took, r.Head)
			if at, err := p.remoteTip(p.remote, of.branch); err == nil && at == "" {
				lease = "" // the branch was deleted there
			}
			args = append(args, "--force-with-lease="+ref+":"+lease)
		}
		refs = append(refs, src+":"+ref)
	}
	args = append(append(args, p.remote), refs...)
	if p.w.p.dryRun {
		p.w.p.printf("would run: git %s\n", strings.Join(args, " "))
	}
	if p.w.p.dryRun || len(refs) == 0 {
		return nil
	}
	err := p.w.userGit(p.dir, p.w.Git.ForUser(p.common), nil, args...)
	if err == nil {
		return nil
	}
	if refused := new(forge.Error); p.missing == nil && errors.As(p.f.Enter(p.w.p.ctx, true), &refused) {
		return refused // the permission was withdrawn
	}
	out := &exitError{code: exitFailed, msg: "the branch was not pushed to " + p.remote, hint: p.again, err: err}
	if len(refs) > 1 {
		out.msg = "the branches were not pushed to " + p.remote
	}
	if p.top != nil {
		out.hint = "git tilth update " + p.s.ID
	}
	return out
}

// remoteTip returns the commit of a remote's branch, "" for a missing branch.
func (p *proposal) remoteTip(remote, branch string) (string, error) {
	ask := gitx.InRepo(p.common, "ls-remote", "--end-of-options", remote, "refs/heads/"+branch)
	ask.Dir = p.dir
	out, err := p.w.Git.Line(p.w.p.ctx, ask)
	sha, _, _ := strings.Cut(out, "\t")
	return sha, err
}

// publish pushes the session's branch, or the branches of its stack, and opens a request for each or updates its text
// and base.
func (p *proposal) publish(stack bool, base string) error {
	parts, err := p.parts(stack)
	if err != nil {
		return err
	}
	if stack && p.f.Target != p.f.Path {
		return refuse("git tilth pr "+p.s.ID, "the requests of a stack need their branches on %s, not on a fork",
			p.f.Target)
	}
	if err := p.push(parts); err != nil || p.w.p.dryRun {
		return err
	}
	list := slices.DeleteFunc(p.top.All(), func(r *session.Request) bool { return r.State != session.RequestMerged })
	for _, of := range open(parts) {
		r := of.request
		if p.refresh || r == nil || r.Took != of.tip || r.Base != base {
			if r, err = p.request(of, base); err != nil {
				return err
			}
			r.Failed = 0 // the checks are of another commit
		}
		r.Task, r.Head, r.Took = of.task, of.tip, of.tip
		list, base = append(list, r), of.branch
	}
	p.top = list[len(list)-1]
	p.top.Below = list[:len(list)-1]
	return p.save()
}

// request opens the request of a part, or updates its text and base.
func (p *proposal) request(of part, base string) (r *session.Request, err error) {
	title, body, err := p.text(of)
	if r = of.request; r == nil && err == nil {
		r, err = p.f.Find(p.w.p.ctx, of.branch)
	}
	if err != nil {
		return nil, err
	}
	if r == nil || r.State != session.RequestOpen {
		return p.f.Open(p.w.p.ctx, base, of.branch, title, body, p.draft)
	}
	r.Base = base
	return r, p.f.Set(p.w.p.ctx, r.Number, body, base)
}

// text returns the review as the title and text of a request, with the issues that the request closes.
func (p *proposal) text(of part) (title, body string, err error) {
	var b bytes.Buffer
	report := p.w.report(p.s)
	report.State = "proposed" // the request may not be open yet
	if err := report.Write(&b, view.Terminal{}, of.task, true); err != nil {
		return "", "", err
	}
	tasks, err := p.s.Tasks()
	if err != nil {
		return "", "", err
	}
	title = cmp.Or(text.OneLine(report.Label), tasks[0].Title)
	if of.task != "" {
		title = tasks[session.IndexOf(tasks, of.task)].Title
		tasks = slices.DeleteFunc(tasks, func(t session.Task) bool { return !slices.Contains(of.tasks, t.ID) })
	}
	return title, b.String() + forge.Closing(tasks), nil
}

// forgeOf returns the forge of a remote's URL.
func (w *repoContext) forgeOf(common, address string) (*forge.Forge, error) {
	f, err := forge.Find(w.p.ctx, address, common, w.p.environ)
	if err == nil {
		f.Reviewers = strings.FieldsFunc(w.Config.Text("tilth.reviewers"), func(r rune) bool { return r == ',' })
	}
	return f, err
}

// targetOf returns the remote that gets the request: for a fork, the URL of its parent.
func targetOf(f *forge.Forge, remote, address string) string {
	if f.Target == f.Path {
		return remote
	}
	return strings.Replace(address, f.Path, f.Target, 1)
}

// forgeError returns a command's error for a failure of the forge. again is the command that continues.
func (w *repoContext) forgeError(err error, again string) error {
	var refused *forge.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &refused):
		return refuse(refused.Hint, "%s", refused.Msg)
	case errors.As(err, new(*forge.RateError)):
		return &exitError{code: exitCap, msg: err.Error(), hint: again, err: err}
	case errors.Is(err, forge.ErrUnknown):
		return refuse("gh --version", "%s", err)
	}
	if code, msg, hint := w.p.exitFor(err); code == exitFailed && msg != "" && hint == "" {
		return fail(again, err)
	}
	return err
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
	for _, key := range []string{"pushurl", "url"} { // git config may rewrite the URL to a path
		if host, _ := forge.HostOf(url); host == "" && err == nil {
			configured, _ := ask("config", "--get", "remote."+name+"."+key)
			url = cmp.Or(configured, url)
		}
	}
	return name, url, err
}
