package lifecycle

import (
	"cmp"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// State has the inputs of MakePlan: facts about a session from its files and git.
type State struct {
	SessionID string
	Branch    string
	Status    string
	Resetting bool   // a teardown was not finished
	GoingBack string // an unfinished rewind or undo
	Finished  string // a rewind or undo that was finished before this plan was made
	// SourceGone is the reason why the source repository cannot be used, or "".
	SourceGone string
	SourceHint string // command that continues without it
	SeedSHA    string // recorded commit of the seed, or ""
	SeedKnown  bool   // the branch contains it
	Worked     bool   // without a recorded seed: the branch has work after a seed
	NoBase     bool   // the record does not name the commit at which the branch begins
	// Interviewed reports whether a session without a seed has an interview that can continue.
	Interviewed bool
	Recreate    string // command that creates the same session again, or ""
	BranchTip   string // "" without a branch
	LastDone    string // last commit of a finished task, if the branch was deleted, or ""
	renameBack  string // the command that undoes a renaming of the branch, or ""
	Tree        held.TreeState
	treeOn      string // HEAD, for held.TreeElsewhere
	Dirty       bool   // read only where the plan depends on it
	Tasks       []session.Task
	TasksError  string
	fixTasks    string        // hint with a command that fixes it, or ""
	Lanes       []string      // tasks with a lane
	Record      *record.State // state computed from the record
	LastStop    string
	LastTask    string                   // last worked on in the session's worktree, "" for none
	Last        record.Attempt           // the last one in the session's worktree
	Accepted    *record.EvaluatorVerdict // on a tree that is to be committed, or nil
	Noted       bool                     // its task_done is on record
	// AcceptedStale: the files were edited and are not the accepted tree any more.
	AcceptedStale bool
	CaseStale     bool            // the same for a case without a verdict
	Unfinished    string          // a merge, rebase or the like that was left in the worktree, "" for none
	BranchIn      string          // other checkout of the branch, or ""
	BranchHint    string          // command that frees the branch
	Commits       []gitx.Commit   // since the seed, by first parent, newest first; only the last few without a seed
	ByWorker      map[string]bool // commits that a worker made by itself, by the reflog
}

// Standing describes the worktree's path, "" if unknown, and reports whether it is a worktree.
func (s State) Standing() (words string, isWorktree bool) {
	switch s.Tree {
	case held.TreeFine:
		return "ok", true
	case held.TreeElsewhere:
		return "on " + cmp.Or(s.treeOn, "no branch"), true
	case "":
		return s.SourceGone, false
	}
	return string(s.Tree), false
}

// Action is the kind of a plan.
type Action string

// The actions of a Plan.
const (
	Refuse   Action = "refuse"   // nothing can be done; Why and Hint say more
	Nothing  Action = "nothing"  // all is done and recorded
	conclude Action = "conclude" // all is done, but the record has no stop yet
	Continue Action = "continue" // enter the loop
)

// NeedsWorker reports whether the plan may run a task: a task is pending, or a hook may refuse the tree to commit.
func (p Plan) NeedsWorker() bool { return p.Action == Continue || p.CommitTree != nil }

// BeginsAt returns the base of the first attempt after the plan, "" if that commit is still to be made.
func (p Plan) BeginsAt() string {
	if n := len(p.Unwind); n > 0 {
		return p.Unwind[n-1].Parents[0]
	} else if p.CommitTree != nil {
		return ""
	}
	return p.BranchTip
}

// Plan has the steps of a resume of a session in a State, in the order of its fields.
type Plan struct {
	State
	Action           Action
	Why, Hint        string
	CommitTree       *record.EvaluatorVerdict // an accepted tree to commit
	Review           *record.CaseSubmitted    // hand-in without a finished review
	MarkDone         map[string]string        // task id to the commit that did it
	Unwind           []gitx.Commit            // placeholders, and commits a worker left behind, newest first
	KeptPlaceholders []gitx.Commit            // placeholders of unfinished tasks below another commit
	JudgedTo         string                   // start of the range that the next task judges; "" is the task's start
	Unjudged         int                      // the commits above it
	Retried          []string                 // failed tasks that go back to pending
	SetAside         string                   // removed or skipped task whose work in the worktree is stashed
	Pending          []string                 // tasks that the loop will run, in order
	Begun            string                   // the first of them, if its work is in the worktree
	Waiting          map[string][]string      // tasks that cannot start yet, with their needs
	Fresh            bool                     // the session was prepared and never run
}

// MakePlan plans a resume. All decisions are here: resume, its dry run, show and run's note call it. The first matching
// row applies:
//
//	state                                              decision
//	a teardown is unfinished                           refuse: reset finishes it
//	no seed was ever committed                         refuse: reset, prep-feature
//	its record is lost, and work was done              refuse: git's own commands show and take it
//	the record does not name the base of the branch    refuse: reset
//	prd.json cannot be read, or has no tasks           refuse: reset
//	the source repository is gone                      refuse
//	the branch is gone                                 refuse
//	no worktree, the branch is checked out elsewhere   refuse, with a command to free it
//	a rewind or an undo is unfinished                  finish it, then plan again
//	the branch no longer contains the seed                trust prd.json, unwind only placeholders with our trailers
//	an accepted tree, judged on the branch's tip       commit it, unless the files have changed since
//	a case was being reviewed, on the branch's tip     continue the review, unless the files have changed since
//	a commit at the tip with the trailers of a task    unwind it: a commit hook had changed the tree
//	  without a verdict on its tree
//	a commit of a pending task with a tree that a      mark it done
//	  verdict of that task accepted
//	placeholders or worker's commits at the tip        unwind them, and only them
//	a placeholder under another commit                 keep it, and judge it with the next task's work (unjudged)
//	a failed task                                      back to pending
//	a failed task's case waits for a review            run it before the others
//	the task last worked on is not the first pending   run it first: its partial work is in the worktree
//	the task last worked on is skipped or removed,     stash its work
//	  and its work is in the worktree
//	a need is not done                                 the task waits, unless it was started
//	the worktree is missing, unregistered              re-create it, register it
//	another directory is at its path                   rename that, re-create the worktree
//	a merge or the like is unfinished                  abort it, keep the files
//	HEAD is on another branch                          move it back
//	nothing pending, status or last stop all_done      nothing; update the status from the last stop
//	nothing pending, any other status                  conclude as all_done
//	else                                               continue
func MakePlan(s State) Plan {
	p := Plan{State: s, MarkDone: map[string]string{}, Waiting: map[string][]string{}}
	if why, hint := refusal(s); why != "" {
		p.Action, p.Why, p.Hint = Refuse, why, hint
		return p
	}
	if s.GoingBack != "" {
		p.Action = Continue // a new plan decides the rest
		return p
	}
	p.Fresh = s.Status == session.Prepared
	status := p.settleTasks()
	now := slices.Clone(s.Tasks)
	for i := range now {
		now[i].Status = status[now[i].ID]
	}
	for _, t := range now {
		if t.Status == session.TaskDone || t.Status == session.TaskSkipped {
			continue
		}
		p.Pending = append(p.Pending, t.ID)
		if open := t.WaitsFor(now); len(open) > 0 {
			p.Waiting[t.ID] = open
		}
	}
	slices.SortStableFunc(p.Pending, func(x, y string) int { return p.reviewRank(x) - p.reviewRank(y) })
	p.headFirst()
	if c := s.Last.Case; c != nil && !s.CaseStale && c.TaskID == p.Begun && len(p.Unwind) == 0 &&
		c.Base == s.BranchTip && s.Tree == held.TreeFine {
		p.Review = c
	}
	switch {
	case len(p.Pending) > 0:
		p.Action = Continue
	case (s.Status == session.AllDone || s.LastStop == session.AllDone) && len(p.MarkDone) == 0 &&
		p.CommitTree == nil:
		p.Action = Nothing
	default:
		p.Action = conclude
	}
	return p
}

// reviewRank returns 0 for a task that waits for a review, else 1.
func (s State) reviewRank(task string) int {
	if s.Record.AwaitsReview(task) != nil {
		return 0
	}
	return 1
}

// headFirst puts the task with partial work in the worktree before tasks that the user moved before it since, because
// its work would go into their commits. The work of a task that is not run any more is stashed.
func (p *Plan) headFirst() {
	first := p.LastTask
	if p.Fresh || first == "" {
		return
	}
	if i := slices.Index(p.Pending, first); i >= 0 {
		p.Begun, p.Pending = first, slices.Insert(slices.Delete(p.Pending, i, i+1), 0, first)
		return
	}
	if p.leavesWork() && (p.Dirty || len(p.Unwind) > 0) {
		p.SetAside = first
	}
}

// leavesWork reports whether the task last worked on was skipped or removed.
func (s State) leavesWork() bool {
	status, known := s.status()[s.LastTask]
	return s.LastTask != "" && (!known || status == session.TaskSkipped)
}

func refusal(s State) (why, hint string) {
	reset := "git tilth reset " + s.SessionID
	switch {
	case s.Resetting:
		return "its reset was not finished", reset
	case s.SeedSHA == "" && s.Status != session.Prepared && (!s.Worked || s.SourceGone == ""):
		return s.unseeded(reset)
	case s.NoBase:
		return held.ErrNoBase.Error(), reset
	case s.TasksError != "":
		return s.TasksError, s.fixTasks + reset
	case s.SourceGone != "":
		return s.SourceGone, cmp.Or(s.SourceHint, reset)
	case s.SeedSHA == "" && len(s.Tasks) == 0:
		return s.unseeded(reset)
	case s.BranchTip == "":
		return "its branch " + s.Branch + " is gone", s.withoutBranch(reset)
	case s.BranchIn != "":
		return "its branch is checked out in " + s.BranchIn, s.BranchHint
	}
	return "", ""
}

// withoutBranch returns the hint for a missing branch: it can be recreated at the last finished task, unless all tasks
// are finished.
func (s State) withoutBranch(reset string) string {
	switch {
	case s.renameBack != "":
		return s.renameBack + " && git tilth resume " + s.SessionID + "\n" + reset
	case s.Status == session.AllDone:
		return "git tilth review " + s.SessionID + "\n" + reset
	case s.LastDone != "":
		return "git branch " + s.Branch + " " + text.Head(s.LastDone, 10) + " && git tilth resume " +
			s.SessionID + "\n" + reset
	}
	return reset
}

// unseeded returns the refusal for a session without a finished preparation, whatever else it lacks.
func (s State) unseeded(reset string) (why, hint string) {
	if s.Worked {
		return held.WorkedUnseeded, "git log -p " + s.Branch + "\ngit merge " + s.Branch
	}
	if s.Interviewed {
		return "its interview was not finished", "git tilth prep-feature --continue\n" + reset
	}
	return "its seed was never committed, so there is nothing to resume", reset + " && " +
		cmp.Or(s.Recreate, "git tilth prep-feature")
}

// settleTasks derives each task's status from prd.json and the commits, and plans the commits, marks and unwinding.
func (p *Plan) settleTasks() map[string]string {
	status := p.status()
	committed := map[string]string{}
	if p.SeedKnown {
		for _, c := range p.Commits {
			id := p.finished(c)
			if id == "" && p.isAccepted(c) {
				id = p.Accepted.TaskID
			}
			known := status[id] == session.TaskDone || p.proven(c)
			if id != "" && known && !p.ByWorker[c.SHA] && committed[id] == "" {
				committed[id] = c.SHA
			}
		}
	}
	p.unwindTip(status)
	if a := p.Accepted; a != nil && !p.AcceptedStale && status[a.TaskID] != session.TaskDone &&
		status[a.TaskID] != session.TaskSkipped &&
		committed[a.TaskID] == "" && len(p.Unwind) == 0 && a.Base == p.BranchTip {
		if _, known := status[a.TaskID]; known {
			p.CommitTree = a
			status[a.TaskID] = "done"
		}
	}
	for _, t := range p.Tasks {
		switch {
		case status[t.ID] != "done" && committed[t.ID] != "":
			p.MarkDone[t.ID] = committed[t.ID]
			status[t.ID] = "done"
		case status[t.ID] == "failed":
			p.Retried = append(p.Retried, t.ID)
		}
	}
	if from, commits := p.unjudged(); len(commits) > 0 {
		p.JudgedTo, p.Unjudged = from, len(commits)
	}
	return status
}

// unwindTip collects the commits at the tip that are unfinished work. It stops at the first other commit: the user's,
// a finished task's, or the seed's.
func (p *Plan) unwindTip(status map[string]string) {
	for _, c := range p.Commits {
		if !p.unwinds(c, status) || len(c.Parents) == 0 {
			break
		}
		p.Unwind = append(p.Unwind, c)
	}
	for _, c := range p.Commits[len(p.Unwind):] {
		if task := p.placeholder(c); task != "" && status[task] != "done" {
			p.KeptPlaceholders = append(p.KeptPlaceholders, c)
		}
	}
}

// unwinds reports whether a commit at the tip is reset into the index.
func (s State) unwinds(c gitx.Commit, status map[string]string) bool {
	if task := s.placeholder(c); task != "" {
		return status[task] != session.TaskDone // the user may have marked its task as done
	}
	if !s.SeedKnown {
		return false
	}
	task := s.finished(c)
	switch {
	case s.ByWorker[c.SHA]:
		return true
	case task == "" || s.isAccepted(c):
		return false // the user's, or of the accepted tree under another message
	}
	return status[task] != session.TaskDone && !s.proven(c) // a commit hook had changed the tree
}

// proven reports whether a verdict on record accepted the commit's tree as its task's work.
func (s State) proven(c gitx.Commit) bool { return s.isAccepted(c) || s.judged(s.finished(c), c.Tree) }

// judged reports whether a tree was accepted as a task's, by the record.
func (s State) judged(task, tree string) bool {
	return s.Record != nil && slices.Contains(s.Record.Tasks[task].Trees, tree)
}

// isAccepted reports whether this is the commit of the accepted tree on its judged parent. Only these two count,
// because a commit-msg hook may have replaced the message with its trailers.
func (s State) isAccepted(c gitx.Commit) bool {
	a := s.Accepted
	return a != nil && c.SHA == s.BranchTip && c.Tree == a.Tree && len(c.Parents) == 1 && c.Parents[0] == a.Base
}

// placeholder returns the task of a placeholder of this session, by its trailers, else "". The plan may not have the
// task any more.
func (s State) placeholder(c gitx.Commit) string {
	if sig := held.SignatureOf(c); sig.Session == s.SessionID && sig.Failed != "" {
		return sig.Task
	}
	return ""
}

// finished returns the task of the plan that a commit of this session finished, by its trailers, else "".
func (s State) finished(c gitx.Commit) string {
	sig := held.SignatureOf(c)
	if sig.Session != s.SessionID || sig.Failed != "" || session.IndexOf(s.Tasks, sig.Task) < 0 {
		return ""
	}
	return sig.Task
}

// status is each task's status by prd.json.
func (s State) status() map[string]string {
	status := map[string]string{}
	for _, t := range s.Tasks {
		status[t.ID] = t.Status
	}
	return status
}

// unjudged finds the commits that stay on the branch and are judged with the next task's work, and the commit before
// them: a placeholder below another commit, made since the last attempt began and not accepted by a verdict since.
func (p *Plan) unjudged() (from string, commits []gitx.Commit) {
	from = p.Last.Begun.Judged
	if from == "" && len(p.KeptPlaceholders) > 0 {
		from = p.Last.Begun.Base
	}
	rest := p.Commits[len(p.Unwind):]
	status := p.status()
	end := slices.IndexFunc(rest, func(c gitx.Commit) bool {
		return c.SHA == from || status[p.finished(c)] == session.TaskDone || p.proven(c)
	})
	switch {
	case from == "" || len(rest) == 0:
		return "", nil
	case end >= 0:
		return rest[end].SHA, rest[:end]
	case p.SeedKnown:
		return rest[len(rest)-1].Parents[0], rest
	}
	return from, rest
}
