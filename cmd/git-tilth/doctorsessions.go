package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
	"github.com/git-tilth/git-tilth/internal/text"
)

// ofSession returns a finding about a session or its leftovers. fix applies the command; nil if that is not safe.
func ofSession(id, what, command string, fix func(context.Context) error) record.Check {
	return record.Check{Name: "session", Session: id, Status: record.CheckFinding, Detail: what, Command: command,
		Safe: fix != nil, Fix: fix}
}

// checkSession returns the problems of a session. It changes nothing.
func checkSession(ctx context.Context, d held.Deps, s *session.Session) []record.Check {
	unchanged, err := held.UnchangedSince(s)
	if err != nil {
		return nil // a run may change it during the check
	}
	found := findings(ctx, d, s)
	if len(found) > 0 && !unchanged() {
		return nil
	}
	return found
}

func findings(ctx context.Context, d held.Deps, s *session.Session) []record.Check {
	o := s.Overview()
	var out []record.Check
	add := func(command, format string, args ...any) {
		out = append(out, ofSession(s.ID, fmt.Sprintf(format, args...), command, nil))
	}
	if held.Resetting(s) {
		what, reset := "its reset was not finished", "git tilth reset -y "+s.ID
		if _, fork := held.ResetMark(s); fork {
			what = "an incomplete fork"
		}
		fix := func(ctx context.Context) error { return lifecycle.FinishTeardown(ctx, d, s, "") }
		return []record.Check{ofSession(s.ID, what, reset, fix)}
	}
	if fi, err := os.Lstat(s.Path(session.LockFile)); err == nil && !fi.Mode().IsRegular() {
		add("rm -rf "+text.ShellQuote(s.Path(session.LockFile)), "its lock is not a file")
	}
	for _, problem := range o.Problems {
		add("git tilth reset "+s.ID, "%s", problem)
	}
	check, err := s.Checkpoint()
	if err != nil {
		return out // one of the findings
	}
	st, err := lifecycle.ReadState(ctx, d.Git, s, check)
	if err != nil {
		add("git tilth show "+s.ID, "%s", err)
		return out
	}
	resume, plan := "git tilth resume "+s.ID, lifecycle.MakePlan(st)
	var wt gitx.Worktree
	if common, err := held.CommonOf(s, check); err == nil {
		wt, _ = d.Git.Worktree(ctx, common, held.WorkspaceOf(s, check), "")
	}
	out = append(out, checkLeft(d, s, wt)...)
	if o.LastEventAt == "" && plan.Action != lifecycle.Refuse {
		add(resume, "its record %s has no events", session.RecordFile)
	}
	switch {
	case plan.Action == lifecycle.Refuse && st.BranchTip == "" && o.Status == session.AllDone && st.SourceGone == "":
		// The user has taken the work and deleted the branch, and may keep the record.
	case plan.Action == lifecycle.Refuse:
		add(plan.Hint, "%s", plan.Why)
	case plan.GoingBack != "":
		add(resume, "a rewind or undo was not finished")
	case o.State() == "crashed":
		add(resume, "its run was cut off")
	}
	if plan.Action == lifecycle.Refuse || plan.Action == lifecycle.Nothing && st.Tree == held.TreeMissing {
		return out
	}
	if words, _ := st.Standing(); st.Tree != held.TreeFine && words != "" {
		fix := resume
		if plan.Action == lifecycle.Nothing && st.Tree == held.TreeElsewhere { // a resume does not check it
			fix = held.GitLine(held.WorkspaceOf(s, check), "switch", s.Branch())
		}
		add(fix, "its worktree %s: %s", held.WorkspaceOf(s, check), words)
	}
	if st.Unfinished != "" {
		add(resume, "an unfinished %s is in its worktree", st.Unfinished)
	}
	return out
}

// checkLeft finds half-written files and stale locks of a dead process. The next resume repairs them, and so does
// --fix, without losing anything. wt is the zero Worktree if there is none.
func checkLeft(d held.Deps, s *session.Session, wt gitx.Worktree) (out []record.Check) {
	add := func(what, command string, fix func(context.Context) error) {
		out = append(out, ofSession(s.ID, what, command, func(ctx context.Context) error {
			unlock, err := held.Lock(d, s)
			if err != nil {
				return err
			}
			defer unlock()
			return fix(ctx)
		}))
	}
	if torn, err := jsonl.Unended(s.Path(session.RecordFile)); err == nil && torn.Why() != "" {
		add("the last line of its record "+session.RecordFile+" is torn", "git tilth doctor --fix",
			func(context.Context) error {
				r, err := s.OpenRecord(record.Options{Redact: d.Redact, Clock: d.Now})
				if err == nil {
					err = r.Close()
				}
				return err
			})
	}
	for _, lock := range d.Git.LeftLocks(wt) {
		add("a dead git process left "+filepath.Base(lock)+" in its worktree's entry",
			"rm -f "+text.ShellQuote(lock), func(ctx context.Context) error {
				return d.Git.ClearWorktreeLocks(ctx, wt)
			})
	}
	return out
}

// halfForks returns findings for unfinished forks without a name in a sessions root.
func halfForks(store session.Store) (out []record.Check) {
	_ = held.UnderRoot(store, func() error { // UnderRoot fails while another process has the lock
		for _, dir := range held.Unnamed(store) {
			fix := func(context.Context) error {
				return held.UnderRoot(store, func() error { return proc.RemoveAll(dir) })
			}
			out = append(out, ofSession("", "an unfinished session is in "+dir, "rm -rf "+text.ShellQuote(dir), fix))
		}
		return nil
	})
	return out
}

// orphans returns findings for branches and worktree entries of deleted sessions of this root. The fix removes an
// entry only if the root has other sessions, because an empty root may be an unplugged disk. It removes a branch if
// another branch, a tag or a remote has all of its commits.
func orphans(ctx context.Context, g *gitx.Git, store session.Store, common string) ([]record.Check, error) {
	entries, err := g.Worktrees(ctx, common)
	if err != nil {
		return nil, err
	}
	branches, err := g.Line(ctx, gitx.InRepo(common, "for-each-ref", "--format=%(refname:lstrip=2)",
		"refs/heads/session/"))
	if err != nil {
		return nil, err
	}
	ids, err := store.IDs()
	if err != nil {
		return nil, err
	}
	gone := func(id string) bool {
		_, err := os.Lstat(filepath.Join(store.Root, id))
		return errors.Is(err, fs.ErrNotExist)
	}
	var out []record.Check
	add := func(id, what, command string, do func(context.Context) error) {
		var fix func(context.Context) error
		if do != nil && len(ids) > 0 {
			fix = func(ctx context.Context) error {
				return held.UnderRoot(store, func() error {
					if !gone(id) {
						return nil // fetched again since
					}
					return do(ctx)
				})
			}
		}
		out = append(out, ofSession(id, what, command, fix))
	}
	used := map[string]bool{}
	for _, e := range entries {
		dir, ours := filepath.Dir(e.Path), filepath.Base(e.Path) == session.WorkspaceDir
		if filepath.Base(dir) == session.LanesDir {
			dir, ours = filepath.Dir(dir), true
		}
		id := filepath.Base(dir)
		ours = ours && session.ValidID(id) && gitx.SamePath(filepath.Dir(dir), store.Root)
		if !ours || !e.Gone || e.Locked || !gone(id) {
			used[e.Branch] = true
			continue
		}
		if _, still := gitx.AdminDir(common, e.Path); !still {
			continue // a reset was interrupted
		}
		add(id, "it was deleted, but git still has an entry for its worktree",
			held.GitLine(common, "worktree", "remove", "--force", e.Path),
			func(ctx context.Context) error { return g.RemoveWorktree(ctx, common, e.Path) })
	}
	for _, branch := range strings.Fields(branches) {
		id := strings.TrimPrefix(branch, "session/")
		if !session.ValidID(id) || used[branch] || !gone(id) {
			continue
		}
		own, err := take.OnlyOn(ctx, g, common, branch, branch)
		if err != nil {
			if _, there, unread := g.BranchTip(ctx, common, branch); unread == nil && !there {
				continue
			}
		}
		what := "it was deleted, but its branch " + branch + " still exists"
		var fix func(context.Context) error
		if err == nil && len(own) > 0 {
			what += "; " + text.Plural(len(own), "commit") + " on no other branch: git log " + branch
		} else if err == nil {
			fix = func(ctx context.Context) error {
				_, err := g.DeleteBranch(ctx, common, branch)
				return err
			}
		}
		add(id, what, held.GitLine(common, "branch", "-D", branch), fix)
	}
	return out, nil
}
