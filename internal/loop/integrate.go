package loop

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// beside is what an attempt in a lane has to do with what others commit meanwhile. Its change is always judged, and
// committed, as what it becomes on the branch's tip.
type beside struct {
	began     string             // the commit at which the work in the lane began
	told      string             // the commit up to which the worker knows what others did
	merged    *record.LaneMerged // the last merge, of an earlier attempt too where it conflicted; nil for none
	conflicts int                // how often it did not go together with what others did
	alone     bool               // no other lane is at work
	given     *given             // an accepting verdict that may hold for what the change has become
}

// given is an accepting verdict on a tree, which the lane has held since.
type given struct {
	verdict    *Verdict
	by         string
	tree, base string
	becomes    string // what the tree was merged to
}

// maxConflicts is how often a change may conflict before its task goes on alone.
const maxConflicts = 2

// integrate brings the lane to what its change becomes on the branch's tip. feedback is what the worker has to do
// first, where the two do not go together.
func (a *attempt) integrate(ctx context.Context) (feedback string, err error) {
	feedback, err = a.unresolved() // what is merged on top of markers could not be told apart
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
	if g := a.beside.given; g != nil {
		tree = g.becomes
	} else if tree, _, err = a.stageWith(ctx, a.run.Git, wt); err != nil {
		return "", err
	}
	m, err := lanes.MergeOnto(ctx, a.run.Handle, a.base, tree, tip)
	if err != nil {
		return "", err
	}
	if a.beside.conflicts+1 >= maxConflicts && len(m.Conflicts) > 0 && !a.beside.alone {
		a.at.releaseTurn()
		if err := a.at.askAlone(ctx); err != nil {
			return "", err
		}
		a.beside.alone = true
		return a.integrate(ctx)
	}
	e := &record.LaneMerged{Base: tip, From: a.base, Was: tree, Tree: m.Tree, Conflicts: m.Conflicts}
	if len(m.Conflicts) == 0 {
		if g := a.beside.given; g != nil {
			g.becomes = m.Tree
		}
		return "", a.moveTo(ctx, wt, e)
	}
	e.Marker, e.Said = m.Marker, text.HeadBytes(strings.TrimSpace(m.Said), testsCap)
	dropped, err := a.dropped(ctx, wt, e)
	if err == nil && dropped != nil {
		err = snapshot.KeepUnfit(ctx, a.run.Handle, a.task.ID, e.Was, e.From)
	}
	if err == nil {
		err = a.moveTo(ctx, wt, e)
	}
	if err != nil {
		return "", err
	}
	a.beside.conflicts++
	return a.conflict(ctx, dropped)
}

// moveTo brings the lane to where a merge says.
func (a *attempt) moveTo(ctx context.Context, wt gitx.Worktree, e *record.LaneMerged) error {
	if err := a.emit(e); err != nil {
		return err
	}
	if err := lanes.Move(ctx, a.run.Handle, wt, e, e.Was); err != nil {
		return err
	}
	a.base, a.judged, a.beside.merged = e.Base, e.Base, e
	return nil
}

// dropped lists the files that a merge has only as they are on the branch, though the change has them otherwise: such
// as are not put together line by line.
func (a *attempt) dropped(ctx context.Context, wt gitx.Worktree, e *record.LaneMerged) (files []string, err error) {
	changed, err := a.run.Git.Paths(ctx, wt, e.From, e.Was)
	if err != nil {
		return nil, err
	}
	merged, err := a.run.Git.Paths(ctx, wt, e.Base, e.Tree)
	for _, f := range e.Conflicts {
		if slices.Contains(changed, f) && !slices.Contains(merged, f) {
			files = append(files, f)
		}
	}
	return files, err
}

// news says which files changed on the branch since the worker was last told, by which tasks; "" for none.
func (a *attempt) news(ctx context.Context) (string, error) {
	from := a.beside.told
	if a.beside.told = a.base; from == "" || from == a.base {
		return "", nil
	}
	return a.changes(ctx, from)
}

// changes are the commits from one of the branch to the lane's base, each with its files.
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

// conflict is what the worker is told of a merge that does not go together.
func (a *attempt) conflict(ctx context.Context, dropped []string) (string, error) {
	news, err := a.news(ctx)
	if err != nil {
		return "", err
	}
	if a.iter >= a.limit() {
		a.extra++
	}
	sides, err := a.sides(ctx, dropped, news)
	return "While you worked, other tasks were committed, and your change does not go together with theirs. Your " +
		"working tree holds the merge, with conflict markers where it is about lines, in these files: " +
		strings.Join(quoted(a.beside.merged.Conflicts), ", ") + ". Keep what both sides are for, take the markers " +
		"out, and submit again.\n\n" + sides, err
}

// sides are what git says of a conflict and what others did, whose commits news lists.
func (a *attempt) sides(ctx context.Context, dropped []string, news string) (string, error) {
	m := a.beside.merged
	diff, _, err := a.run.Git.Diff(ctx, a.run.Common, m.From, m.Base, testsCap, m.Conflicts...)
	if err != nil {
		return "", err
	}
	said := "What git says of it, where " + m.Base + " is what they committed and " + m.Marker + " what you did:\n\n" +
		fenced("merge", m.Said)
	if dropped != nil {
		said += "\n\n" + madeAgain(m, dropped)
	}
	return said + "\n\nThe other tasks, with the files that they changed:\n\n" + fenced("changed", news) +
		"\n\nWhat they did in the files that conflict:\n\n" +
		fenced("others", strings.ToValidUTF8(string(diff), "\uFFFD")), nil
}

// madeAgain is what the worker is told of files that a merge dropped its change to.
func madeAgain(m *record.LaneMerged, dropped []string) string {
	return "These cannot be put together line by line, and were left as the others have them: " +
		strings.Join(quoted(dropped), ", ") + ". Make your change to them again; what you had is in git, as " +
		m.Was + ":<file>."
}

// conflictLeft is what a worker is told first of a merge that conflicted before and is not resolved: it may not have
// heard of it. What git has no more, as after a rewind, is not said.
func (a *attempt) conflictLeft(ctx context.Context, wt gitx.Worktree) string {
	said, m := a.markersLeft(), a.beside.merged
	if m == nil || m.Marker == "" {
		return said
	}
	dropped, err := a.dropped(ctx, wt, m)
	if err != nil || said == "" && dropped == nil {
		return said
	}
	news, err := a.changes(ctx, m.From)
	if err != nil {
		return said
	}
	sides, _ := a.sides(ctx, dropped, news)
	return strings.TrimSpace(said + "\n\n" + sides)
}

// conflicted is a merge of the task's change that conflicted before this run, nil for none.
func (a *attempt) conflicted() *record.LaneMerged {
	if was := a.run.o.From.Record; was != nil {
		return was.Tasks[a.task.ID].Conflict
	}
	return nil
}

// markersLeft is what the worker is told while marker lines of the last merge stand in files that conflicted.
func (a *attempt) markersLeft() string {
	m := a.beside.merged
	if m == nil || m.Marker == "" {
		return ""
	}
	var in []string
	for _, f := range m.Conflicts {
		for _, side := range []string{m.Base, m.Marker} { // one of two that cannot have the same place
			if _, err := os.Lstat(filepath.Join(a.at.path, filepath.FromSlash(f)+"~"+side)); err == nil {
				in = append(in, f+"~"+side)
			}
		}
		data, err := jsonl.ReadIn(a.at.path, filepath.FromSlash(f), maxText)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if bytes.HasPrefix(line, []byte(">>>>>>> "+m.Marker)) || bytes.HasPrefix(line, []byte("<<<<<<< "+m.Base)) {
				in = append(in, f)
				break
			}
		}
	}
	if in == nil {
		return ""
	}
	return "Conflict markers of the merge with other tasks' work still stand in " + strings.Join(quoted(in), ", ") +
		". Put both sides together there, take the markers out, of a file's name as well, and submit again."
}

// unresolved keeps a change with such markers from being judged. It is on record like a validator that failed.
func (a *attempt) unresolved() (string, error) {
	said := a.markersLeft()
	if said == "" {
		return "", nil
	}
	j := &judged{report: validator.Report{Results: []validator.Result{{Name: "merge", Output: said}}}}
	if err := a.recordValidators(j); err != nil {
		return "", err
	}
	return said, a.hears("merge: "+said, "merge", said, a.retryHint)
}

// told is an answer to the worker, with what has changed under it.
func (a *attempt) told(ctx context.Context, feedback string) (string, error) {
	news, err := a.news(ctx)
	if err != nil || news == "" {
		return feedback, err
	}
	return feedback + "\n\nMeanwhile other tasks were committed. Your working tree has their work now; these files " +
		"are theirs, and to be kept as they are but where your task says otherwise:\n\n" + fenced("changed", news), nil
}

// holdsFor reports whether the verdict that was given still holds: the change is the same, and what changed on the
// branch since lies in no file that it touches.
func (a *attempt) holdsFor(ctx context.Context, j *judged) (bool, error) {
	g := a.beside.given
	if g == nil || g.becomes != j.tree || g.base == a.base || g.tree == j.tree {
		return g != nil && g.tree == j.tree, nil
	}
	others, err := a.run.Git.Paths(ctx, j.wt, g.base, a.base)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(j.files, func(f gitx.FileChange) bool {
		return slices.Contains(others, f.Path) || f.OldPath != "" && slices.Contains(others, f.OldPath)
	}), nil
}

// takenAway are the lines that a change takes away and that came with other tasks since the attempt began, with the
// heads of their files; "" for none.
func (a *attempt) takenAway(ctx context.Context, j *judged) (string, error) {
	if a.at.lane == "" || a.beside.began == a.base {
		return "", nil
	}
	var files []string
	for _, f := range j.files {
		if f.Deleted > 0 {
			files = append(files, cmp.Or(f.OldPath, f.Path))
		}
	}
	if len(files) == 0 {
		return "", nil
	}
	lines := func(from, to, sign string) (map[string]bool, []string, error) {
		patch, _, err := a.run.Git.Diff(ctx, a.run.Common, from, to, diffCap, files...)
		seen, order, head, inHunk := map[string]bool{}, []string(nil), "", false
		for line := range strings.Lines(string(patch)) {
			line = strings.TrimRight(line, "\n")
			old, isOld := strings.CutPrefix(line, "--- a/")
			now, isNew := strings.CutPrefix(line, "+++ b/")
			switch {
			case strings.HasPrefix(line, "diff --git "):
				head, inHunk = strings.TrimPrefix(line, "diff --git "), false
			case strings.HasPrefix(line, "@@ "):
				inHunk = true
			case !inHunk && (isOld || isNew):
				head = now
				if isOld {
					head = old
				}
			case !inHunk:
			case strings.HasPrefix(line, sign) && strings.TrimSpace(line[1:]) != "":
				if l := head + ": " + line[1:]; !seen[l] {
					seen[l], order = true, append(order, l)
				}
			}
		}
		return seen, order, err
	}
	came, _, err := lines(a.beside.began, a.base, "+")
	if err != nil {
		return "", err
	}
	_, gone, err := lines(a.base, j.tree, "-")
	gone = slices.DeleteFunc(gone, func(l string) bool { return !came[l] })
	return strings.ToValidUTF8(strings.Join(gone, "\n"), "\uFFFD"), err
}

// moved waits for the turn to commit, and reports whether the branch has moved before it came: then all is to be judged
// again, as it is now.
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
	a.stillGiven(v, j)
	return true, nil
}

// stillGiven keeps an accepting verdict for what the change becomes.
func (a *attempt) stillGiven(v *Verdict, j *judged) {
	a.beside.given = &given{verdict: v, by: j.by, tree: j.tree, base: a.base, becomes: j.tree}
}

// doneTasks is how many tasks are done, by whose tests a change is held.
func (r *run) doneTasks() (n int) {
	for _, t := range r.taskList() {
		if t.Status == session.TaskDone {
			n++
		}
	}
	return n
}

// commitPlace is the worktree in which an accepted tree is committed, which its index holds: the session's.
func (a *attempt) commitPlace(ctx context.Context, tree string) (gitx.Worktree, error) {
	if a.at.lane == "" {
		return a.settledWorktree(ctx)
	}
	wt, err := lanes.CleanWorktree(ctx, a.run.Handle, func(string) bool { return false })
	if err == nil {
		err = a.run.Git.ReadTree(ctx, wt, tree, true)
	}
	if err == nil {
		err = a.run.Git.FollowModules(ctx, wt)
	}
	return wt, err
}

// uncommitted has the session's worktree be like the branch's tip again, where a commit could not be made. What a
// commit hook made of the change is brought to the lane.
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

// leftInLane is what the last run left of a task in its lane: a case to be reviewed, an accepted change that is to be
// judged on the branch as it is now.
func (a *attempt) leftInLane() (c *record.CaseSubmitted, refused *lifecycle.HookRefusal) {
	was := a.run.o.From.Record
	if was == nil {
		return nil, nil
	}
	last := was.Tasks[a.task.ID].Attempt
	a.beside.began = cmp.Or(last.Begun.Since, last.Begun.Base, a.base)
	if v := last.Verdict; last.RefusedBy != nil && v != nil && last.RefusedBy.Results[0].Output != nil {
		refused = &lifecycle.HookRefusal{Output: *last.RefusedBy.Results[0].Output, Verdict: v}
	}
	if v := last.Verdict; last.Waits && v != nil {
		verdict, err := parseVerdict(string(record.JSON(v)))
		if err == nil {
			a.beside.given = &given{verdict: verdict, by: v.By, tree: v.Tree, base: v.Base, becomes: v.Tree}
			return &record.CaseSubmitted{Scope: v.Scope, Tree: v.Tree, Base: v.Base, Case: v.Case}, refused
		}
	}
	return last.Case, refused
}

// tip is the commit that the branch is at.
func (r *run) tip(ctx context.Context) (string, error) {
	tip, ok, err := r.Git.BranchTip(ctx, r.Common, r.S.Branch())
	if err == nil && !ok {
		err = fmt.Errorf("the branch %s is gone", r.S.Branch())
	}
	return tip, err
}
