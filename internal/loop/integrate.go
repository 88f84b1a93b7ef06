package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// otherLanes is an attempt's state about other lanes. The attempt's change is merged onto the branch's tip before each
// review and commit.
type otherLanes struct {
	began     string             // commit at which the work in the lane began
	seenTip   string             // last commit of other tasks that the worker knows
	merged    *record.LaneMerged // last merge, also a conflicting one of an earlier attempt; nil for none
	conflicts int                // number of conflicts with other tasks' work
	alone     bool               // no other lane is running
	prior     *priorVerdict      // accepting verdict that may apply to the merged change
}

// priorVerdict is an accepting verdict on the lane's tree. It is kept while the tree is merged onto newer tips.
type priorVerdict struct {
	verdict    *Verdict
	by         string
	tree, base string
	becomes    string // merged tree
}

// integrate merges the lane's change onto the branch's tip. feedback is the message to the worker about a conflict, or
// "".
func (a *attempt) integrate(ctx context.Context) (feedback string, err error) {
	feedback, err = a.unresolved() // a merge over conflict markers would be ambiguous
	if err != nil || feedback != "" || a.at.lane == "" {
		return feedback, err
	}
	tip, err := a.run.tip(ctx)
	if err != nil || tip == a.base {
		return "", err
	}
	wt, err := a.foldedWorktree(ctx)
	if err != nil {
		return "", err
	}
	var tree string
	if g := a.otherLanes.prior; g != nil {
		tree = g.becomes
	} else if tree, _, err = a.stage(ctx, a.run.Git, wt); err != nil {
		return "", err
	}
	m, err := held.MergeOnto(ctx, a.run.Handle, a.base, tree, tip)
	if err != nil {
		return "", err
	}
	if a.otherLanes.conflicts+1 >= maxConflicts && len(m.Conflicts) > 0 && !a.otherLanes.alone {
		a.at.releaseTurn()
		if err := a.at.askAlone(ctx); err != nil {
			return "", err
		}
		a.otherLanes.alone = true
		return a.integrate(ctx)
	}
	e := &record.LaneMerged{Base: tip, From: a.base, Was: tree, Tree: m.Tree, Conflicts: m.Conflicts}
	if len(m.Conflicts) == 0 {
		if g := a.otherLanes.prior; g != nil {
			g.becomes = m.Tree
		}
		return "", a.moveTo(ctx, wt, e)
	}
	e.Marker, e.Said = m.Marker, text.HeadBytes(strings.TrimSpace(m.Said), testsCap)
	dropped, err := a.dropped(ctx, wt, e)
	if err == nil && dropped != nil {
		err = held.KeepUnfit(ctx, a.run.Handle, a.task.ID, e.Was, e.From)
	}
	if err == nil {
		err = a.moveTo(ctx, wt, e)
	}
	if err != nil {
		return "", err
	}
	a.otherLanes.conflicts++
	return a.conflict(ctx, dropped)
}

// moveTo moves the lane to the result of a merge.
func (a *attempt) moveTo(ctx context.Context, wt gitx.Worktree, e *record.LaneMerged) error {
	if err := a.emit(e); err != nil {
		return err
	}
	if err := held.MoveLane(ctx, a.run.Handle, wt, e, e.Was); err != nil {
		return err
	}
	a.base, a.judged, a.otherLanes.merged = e.Base, e.Base, e
	changed, err := a.run.Git.Paths(ctx, wt, e.From, e.Base)
	if err == nil {
		a.at.setUpAgain(ctx, wt.Path, changed)
	}
	return err
}

// news lists the files that changed on the branch since the worker's last message, with their tasks; "" for none.
func (a *attempt) news(ctx context.Context) (string, error) {
	from := a.otherLanes.seenTip
	if a.otherLanes.seenTip = a.base; from == "" || from == a.base {
		return "", nil
	}
	return a.changes(ctx, from)
}

// changes returns the commits from a commit of the branch to the lane's base, each with its files.
func (a *attempt) changes(ctx context.Context, from string) (string, error) {
	commits, err := a.run.Git.Log(ctx, a.run.Common, a.base, from, 0)
	if err != nil {
		return "", err
	}
	wt, err := a.at.worktree(ctx)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, c := range slices.Backward(commits) {
		if len(c.Parents) == 0 {
			continue
		}
		files, err := a.run.Git.Paths(ctx, wt, c.Parents[0], c.SHA)
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%s: %s", text.OneLine(c.Subject), strings.Join(quoted(files), ", ")))
	}
	return strings.Join(lines, "\n"), nil
}

// withNews adds news for the worker to an answer: changes of other tasks in its tree, and removed repositories.
func (a *attempt) withNews(ctx context.Context, feedback string) (string, error) {
	if len(a.at.nested) > 0 {
		feedback += "\n\nThe .git of these directories was moved out of your working tree, because a repository in it" +
			" cannot be committed. Their files are part of your change:\n\n" +
			fenced("repositories", strings.Join(a.at.nested, "\n"))
		a.at.nested = nil
	}
	news, err := a.news(ctx)
	if err != nil || news == "" {
		return feedback, err
	}
	return feedback + "\n\nMeanwhile other tasks were committed. Your working tree has their work now; these files " +
		"are theirs; keep them as they are unless your task says otherwise:\n\n" + fenced("changed", news), nil
}

// holdsFor reports whether the earlier verdict still applies. It does if the branch has not moved, or if the new
// commits share no file with the change as judged or as merged.
func (a *attempt) holdsFor(ctx context.Context, j *judged) (bool, error) {
	g := a.otherLanes.prior
	if g == nil || g.becomes != j.tree || g.base == a.base {
		return g != nil && g.becomes == j.tree, nil
	}
	others, err := a.run.Git.Paths(ctx, j.wt, g.base, a.base)
	if err != nil {
		return false, err
	}
	own, err := a.run.Git.Paths(ctx, j.wt, g.base, g.tree)
	for _, f := range j.files {
		own = append(own, f.Path)
	}
	return !slices.ContainsFunc(own, func(path string) bool { return slices.Contains(others, path) }), err
}

// linesRemoved returns the lines that the change deletes and that other tasks added since the attempt began, with the
// file headers, or "".
func (a *attempt) linesRemoved(ctx context.Context, j *judged) (string, error) {
	if a.at.lane == "" || a.otherLanes.began == a.base {
		return "", nil
	}
	var lost []string
	for _, f := range j.files {
		if f.Deleted == 0 {
			continue
		}
		name := cmp.Or(f.OldPath, f.Path)
		came, err := a.changedLines(ctx, a.otherLanes.began, a.base, name, "+")
		if err != nil {
			return "", err
		}
		gone, err := a.changedLines(ctx, a.base, j.tree, name, "-")
		if err != nil {
			return "", err
		}
		for _, line := range gone {
			if slices.Contains(came, line) {
				lost = append(lost, name+": "+line)
			}
		}
	}
	return strings.ToValidUTF8(strings.Join(lost, "\n"), "\uFFFD"), nil
}

// changedLines returns the non-blank lines of a file's patch that begin with sign.
func (a *attempt) changedLines(ctx context.Context, from, to, file, sign string) (lines []string, err error) {
	patch, _, err := a.run.Git.Diff(ctx, a.run.Common, from, to, diffCap, file)
	_, hunks, _ := strings.Cut(string(patch), "\n@@ ") // after the headers
	for line := range strings.Lines(hunks) {
		text, is := strings.CutPrefix(strings.TrimRight(line, "\n"), sign)
		if is && strings.TrimSpace(text) != "" && !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
	}
	return lines, err
}

// moved waits for its turn to commit, and reports whether the branch moved meanwhile. Then the change is judged again.
func (a *attempt) moved(ctx context.Context, v *Verdict, j *judged) (bool, error) {
	if a.at.lane == "" || a.at.holds {
		return false, nil
	}
	if err := a.at.takeTurn(ctx); err != nil {
		return false, err
	}
	tip, err := a.run.tip(ctx)
	if err != nil || tip == a.base && j.done == a.run.doneTasks() {
		return false, err
	}
	a.carryVerdict(v, j)
	return true, nil
}

// carryVerdict reuses an accepting verdict for the change as merged.
func (a *attempt) carryVerdict(v *Verdict, j *judged) {
	a.otherLanes.prior = &priorVerdict{verdict: v, by: j.by, tree: j.tree, base: a.base, becomes: j.tree}
}

// doneTasks returns the number of finished tasks. A change must pass the tests of all of them.
func (r *run) doneTasks() (n int) {
	for _, t := range r.taskList() {
		if t.Status == session.TaskDone {
			n++
		}
	}
	return n
}

// commitPlace returns the worktree that commits an accepted tree, with the tree in its index. It is the session's
// worktree.
func (a *attempt) commitPlace(ctx context.Context, tree string) (gitx.Worktree, error) {
	if a.at.lane == "" {
		return a.settledWorktree(ctx)
	}
	wt, err := held.CleanWorktree(ctx, a.run.Handle, func(string) bool { return false })
	if err == nil {
		err = a.run.Git.ReadTree(ctx, wt, tree, true)
	}
	if err == nil {
		err = a.run.Git.FollowModules(ctx, wt)
	}
	return wt, err
}

// uncommitted resets the session's worktree to the branch's tip after a failed commit. It copies the changes of a
// commit hook to the lane.
func (a *attempt) uncommitted(ctx context.Context, wt gitx.Worktree, j *judged, changed bool) error {
	if a.at.lane == "" {
		return nil
	}
	if changed {
		tree, _, err := a.run.Git.StageAll(ctx, wt, a.base)
		if err != nil {
			return err
		}
		e := &record.LaneMerged{Base: a.base, From: a.base, Was: j.tree, Tree: tree}
		if err := a.moveTo(ctx, j.wt, e); err != nil {
			return err
		}
	}
	tip, err := a.run.tip(ctx)
	if err != nil {
		return err
	}
	return cmp.Or(a.run.Git.Reset(ctx, wt, tip, true), a.run.Git.FollowModules(ctx, wt))
}

// leftInLane returns the last run's unfinished work in a task's lane: a case without a verdict, or an accepted change
// to judge on the current branch.
func (a *attempt) leftInLane() (c *record.CaseSubmitted, refused *lifecycle.HookRefusal) {
	was := a.run.o.From.Record
	if was == nil {
		return nil, nil
	}
	last := was.Tasks[a.task.ID].Attempt
	a.otherLanes.began = cmp.Or(last.Begun.Since, last.Begun.Base, a.base)
	if v := last.Verdict; last.RefusedBy != nil && v != nil && last.RefusedBy.Results[0].Output != nil {
		refused = &lifecycle.HookRefusal{Output: *last.RefusedBy.Results[0].Output, Verdict: v}
	}
	if v := last.Verdict; last.Waits && v != nil {
		verdict, err := parseVerdict(string(record.JSON(v)))
		if err == nil {
			a.otherLanes.prior = &priorVerdict{verdict: verdict, by: v.By, tree: v.Tree, base: v.Base, becomes: v.Tree}
			return &record.CaseSubmitted{Scope: v.Scope, Tree: v.Tree, Base: v.Base, Case: v.Case}, refused
		}
	}
	return last.Case, refused
}

// tip returns the branch's current commit.
func (r *run) tip(ctx context.Context) (string, error) {
	tip, ok, err := r.Git.BranchTip(ctx, r.Common, r.S.Branch())
	if err == nil && !ok {
		err = fmt.Errorf("the branch %s is gone", r.S.Branch())
	}
	return tip, err
}
