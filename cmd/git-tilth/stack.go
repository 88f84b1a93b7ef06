package main

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

// A stack is one request for each task, each based on the one before. The highest has the session's branch, the others
// have branches on the forge alone. This is the state there after each step; after a kill the same command continues:
//  1. all branches are pushed at once          the requests show the new commits
//  2. each request is opened, or has its text  one that was opened is found by its branch
//     and base
//  3. request.json                             finished

// part is a request of a stack: a task's commit, and those of its threads and checks.
type part struct {
	task, tip, branch string
	tasks             []string
}

// partsOf divides a session's commits among the requests of its stack, the lowest first.
func (w *repoContext) partsOf(s *session.Session, common string) (parts []part, err error) {
	state, err := s.State()
	if err != nil {
		return nil, err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	tip, _, err := w.Git.BranchTip(w.p.ctx, common, s.Branch())
	if err != nil {
		return nil, err
	}
	commits, _, err := held.CommitsSince(w.p.ctx, w.Git, common, tip, state.Seed.SHA)
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
			last.task, last.branch = tasks[i].ID, "stack/"+s.ID+"/"+tasks[i].ID
		}
	}
	if n := len(parts); n > 0 {
		parts[n-1].branch = s.Branch()
	}
	return parts, err
}

// publishing has the inputs of publish.
type publishing struct {
	s                    *session.Session
	f                    *forge.Forge
	common, remote, base string
	draft                bool
	again                string
}

// publish pushes the branches of a stack, and opens its requests or updates their texts and bases. It returns the
// highest one.
func (w *repoContext) publish(p publishing) (*session.Request, error) {
	if p.f.Target != p.f.Path {
		return nil, refuse("git tilth pr "+p.s.ID, "the requests of a stack need their branches on %s, not on a fork",
			p.f.Target)
	}
	parts, err := w.partsOf(p.s, p.common)
	if err != nil || len(parts) == 0 {
		return nil, fail(p.again, err)
	}
	known := map[string]*session.Request{}
	var merged []*session.Request
	if top := p.s.Request(); top != nil {
		for _, r := range append(slices.Clone(top.Below), top) {
			if known[r.Task] = r; r.State == session.RequestMerged {
				merged = append(merged, r)
			}
		}
	}
	args := []string{"push"}
	var refs []string
	for _, part := range parts {
		ref := "refs/heads/" + part.branch
		r := known[part.task]
		switch {
		case r == nil || r.Branch != part.branch:
		case r.Head == part.tip:
			continue
		default:
			args = append(args, "--force-with-lease="+ref+":"+cmp.Or(r.Took, r.Head))
		}
		refs = append(refs, part.tip+":"+ref)
	}
	if w.p.dryRun {
		w.p.printf("would run: git push %s %s\n", p.remote, strings.Join(refs, " "))
		return nil, nil
	}
	if len(refs) > 0 {
		dir := held.SourceNow(p.s.Overview().Source, p.common)
		if err := w.userGit(dir, w.Git.ForUser(p.common), nil, append(append(args, p.remote), refs...)...); err != nil {
			return nil, &exitError{code: exitFailed, msg: "the branches were not pushed to " + p.remote, hint: p.again,
				err: err}
		}
	}
	for i, part := range parts {
		base := p.base
		if i > 0 {
			base = parts[i-1].branch
		}
		r, err := w.publishPart(p, part, known[part.task], base)
		if err != nil {
			return nil, w.forgeError(err, p.again)
		}
		r.Task, r.Head, r.Took = part.task, part.tip, part.tip
		if i == len(parts)-1 {
			r.Below = merged
			return r, nil
		}
		merged = append(merged, r)
	}
	return nil, nil
}

// publishPart opens a request, or updates its text and base.
func (w *repoContext) publishPart(p publishing, part part, r *session.Request, base string) (*session.Request, error) {
	report := w.report(p.s)
	var body bytes.Buffer
	if err := report.Write(&body, view.Terminal{}, part.task, true); err != nil {
		return nil, err
	}
	tasks, err := p.s.Tasks()
	if err != nil {
		return nil, err
	}
	tasks = slices.DeleteFunc(tasks, func(t session.Task) bool { return !slices.Contains(part.tasks, t.ID) })
	text := body.String() + forge.Closing(tasks)
	if r == nil || r.Branch != part.branch {
		if r, err = p.f.Find(w.p.ctx, part.branch); err != nil {
			return nil, err
		}
	}
	if r == nil || r.State != session.RequestOpen {
		title := tasks[session.IndexOf(tasks, part.task)].Title
		return p.f.Open(w.p.ctx, forge.Draft{Base: base, Branch: part.branch, Title: title, Body: text, Draft: p.draft})
	}
	err = p.f.Set(w.p.ctx, r.Number, map[string]string{"body": text, "base": base})
	r.Base = base
	return r, err
}
