package main

import (
	"cmp"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) updateCommand() *cli.Command {
	return p.declare(traits{wish: "share", starts: true, hooked: true, ends: true}, &cli.Command{
		Name:      "update",
		Usage:     "rebase a session onto its current base",
		ArgsUsage: "[<session>]",
		Description: "The base is the pull request's base or, without a request, your current branch. Each commit is " +
			"validated again, and reviewed again if its patch changed. If a task's commit conflicts, the task " +
			"becomes pending again. Your own commits on the branch stay. update pushes the branch of an open " +
			"pull request with --force-with-lease. git tilth undo undoes the update.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "rebase", Usage: "rebase the commits onto the base (default)"},
			&cli.BoolFlag{Name: "merge", Usage: "merge the base into the branch"},
		}, runFlags()...),
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.Bool("merge") && ctx.Bool("rebase") {
				return refuse("git tilth update -h", "--rebase and --merge cannot be combined")
			}
			u := &updating{addressing{proposal: &proposal{w: w, s: s, again: "git tilth update " + s.ID, lease: true},
				run: newRunRequest(ctx)}, ctx.Bool("merge")}
			if u.run.verb = "resume"; u.merge {
				u.again = "git tilth update --merge " + s.ID
			}
			return w.forgeError(u.update(), u.again)
		}),
	})
}

// updating rebases or merges a session onto another base, after it merged the commits that others pushed.
//
// The state on disk after each step; after a kill, the same command continues:
//
//  1. the base and the commits of others are fetched      nothing else has changed
//  2. the branch is moved (lifecycle/onto.go)             the record has the commits to repeat
//  3. the commits are judged again                        no commit is left to repeat
//  4. steps 1 to 3 with the base                          the same
//  5. the branch is pushed, with a lease on the last      finished
//     commit of the forge that the session includes
type updating struct {
	addressing
	merge bool
}

// maxMoves limits the moves of one update: the base may move meanwhile.
const maxMoves = 4

func (u *updating) update() error {
	w := u.w
	if u.s.Request() != nil {
		if err := u.see(); err != nil {
			return err
		}
	}
	for range maxMoves {
		if moved, err := u.move(); err != nil {
			return err
		} else if !moved {
			break
		}
		if err := w.proceed(u.s, u.run); err != nil || w.p.dryRun {
			return err
		}
	}
	switch {
	case w.p.dryRun:
		return nil
	case u.top == nil:
		u.say("session %s is up to date with its base\n", u.s.ID)
		return nil
	}
	if err := u.publish(u.isStack(), u.top.Root()); err != nil {
		return err
	}
	u.say("%s\n", u.top.Line())
	return nil
}

// move takes in the commits of others, else moves the branch to the current base, and reports whether there are commits
// to repeat. It first finishes an unfinished move.
func (u *updating) move() (bool, error) {
	w, s := u.w, u.s
	h, err := w.hold(s, nil)
	if err != nil {
		return false, err
	}
	defer h.Close()
	state, bad := s.State()
	tasks, err := u.unfinished()
	if err = cmp.Or(bad, err); err != nil {
		return false, err
	}
	dirty, err := w.Git.IsDirty(w.p.ctx, h.Path())
	if len(state.Steps) > 0 || err == nil && dirty && len(tasks) > 0 { // a task has begun, for example after a conflict
		return true, nil
	}
	to, err := u.others()
	if err != nil {
		return false, err
	}
	if len(to.Insert) == 0 && to.Base == "" {
		to.Merge = u.merge
		if to.Gone, err = u.merged(); err != nil {
			return false, err
		}
		if to.Base, err = u.base(h); err != nil {
			return false, err
		}
	}
	if w.p.dryRun && to.Base != "" && !u.has(to.Base, to.Base) {
		return false, nil // fetch would have found it
	}
	plan, err := lifecycle.PlanOnto(w.p.ctx, h, to)
	if err != nil {
		return false, err
	}
	if plan.From != "" && plan.What != "" {
		u.say("%s: %.10s becomes %.10s\n", plan.What, plan.From, plan.SHA)
	}
	if w.p.dryRun {
		return false, nil
	}
	if !plan.Over {
		if err := plan.Execute(w.p.ctx, h); err != nil {
			return false, err
		}
	}
	if !plan.Begun && !plan.Over { // else the forge may have more commits than when that move began
		for _, r := range u.top.All() {
			r.Took = r.Head
		}
		err = u.save()
	}
	return !plan.Over, err
}

// others fetches the commits that others pushed to the branches of the open requests. Each becomes a step after the
// commits of its request. With --merge, they are merged if the session's branch has other commits by now.
func (u *updating) others() (to lifecycle.Onto, err error) {
	if u.top == nil {
		return to, nil
	}
	parts, err := u.parts(u.isStack())
	if err != nil {
		return to, err
	}
	to.Insert = map[string][]record.Step{}
	for _, of := range open(parts) {
		r := of.request
		if r == nil {
			continue
		}
		if _, err := u.fetchBranch(u.remote, r.Branch, "git tilth pr "+u.s.ID); err != nil {
			return to, err
		}
		if r.Head == r.Took || u.w.p.dryRun && !u.has(r.Head, r.Head) {
			continue
		}
		commits, err := u.w.Git.Log(u.w.p.ctx, u.common, r.Head, u.s.Branch()+" "+r.Took, 0)
		if err != nil {
			return to, err
		}
		if len(commits) > 0 && u.merge && r == u.top && !u.has(r.Head, of.tip) {
			return lifecycle.Onto{Base: r.Head, Merge: true}, nil
		}
		for _, c := range slices.Backward(commits) {
			u.say("take in %.10s of %s: %s\n", c.SHA, r.Name(), text.Clip(text.OneLine(c.Subject), 60))
			to.Insert[of.tip] = append(to.Insert[of.tip], record.Step{Commit: c.SHA})
		}
	}
	return to, nil
}

// merged returns the tasks of the merged requests of a stack.
func (u *updating) merged() (map[string]bool, error) {
	if !u.isStack() {
		return nil, nil
	}
	gone := map[string]bool{}
	parts, err := u.parts(true)
	for _, of := range parts {
		for _, task := range of.tasks {
			gone[task] = of.request != nil && of.request.State == session.RequestMerged
		}
	}
	return gone, err
}

// base returns the current commit of the base: the request's base on the forge, else the user's checkout.
func (u *updating) base(h *held.Handle) (string, error) {
	w := u.w
	if u.top == nil {
		at := h.Common
		if w.inRepo && w.Loc.CommonDir == h.Common && !session.IsWorkplace(w.Loc.TopLevel) {
			at = w.Loc.GitDir
		}
		return w.Git.RevParse(w.p.ctx, at, "HEAD^{commit}")
	}
	return u.fetchBranch(targetOf(u.f, u.remote, u.address), u.top.Root(),
		"git tilth pr --base "+text.ShellQuote(u.f.Default)+" "+u.s.ID)
}

// fetchBranch fetches a branch of a remote and returns its commit. hint is the command for a missing branch.
func (u *updating) fetchBranch(remote, branch, hint string) (string, error) {
	sha, err := u.remoteTip(remote, branch)
	switch {
	case err != nil:
		return "", err
	case sha == "":
		return "", refuse(hint, "%s has no branch %s", text.WithoutPassword(remote), branch)
	}
	return sha, u.w.fetch(u.w.p.ctx, u.common, u.dir, remote, "refs/heads/"+branch)
}
