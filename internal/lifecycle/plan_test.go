package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

const (
	testID  = "20260601-120000-abc123"
	otherID = "20260601-130000-def456"
)

// tasks returns a plan with the statuses, T-001 first.
func tasks(status ...string) []session.Task {
	var out []session.Task
	for i, s := range status {
		id := "T-00" + string(rune('1'+i))
		out = append(out, session.Task{ID: id, Title: "Title of " + id, AcceptanceCriteria: []string{"it works"},
			Status: s})
	}
	return out
}

// chain sets the ids and parents of commits, newest first: c3, c2, c1 on the seed.
func chain(commits ...gitx.Commit) []gitx.Commit {
	for i := range commits {
		commits[i].SHA = shaAt(len(commits) - i)
		commits[i].Parents = []string{shaAt(len(commits) - i - 1)}
		commits[i].Tree = cmp.Or(commits[i].Tree, "tree of "+commits[i].SHA)
	}
	return commits
}

func shaAt(n int) string {
	if n == 0 {
		return "seed"
	}
	return "c" + string(rune('0'+n))
}

func by(sessionID, subject string, trailers ...string) gitx.Commit {
	c := gitx.Commit{Subject: subject, Trailers: map[string][]string{"Tilth-Session": {sessionID}}}
	for i := 0; i+1 < len(trailers); i += 2 {
		c.Trailers[trailers[i]] = []string{trailers[i+1]}
	}
	return c
}

func doneBy(sessionID, task string) gitx.Commit {
	return by(sessionID, task+": Title of "+task, "Tilth-Task", task)
}

func failedBy(sessionID, task string) gitx.Commit {
	return by(sessionID, "FAILED (iter_cap): "+task+" Title", "Tilth-Task", task, "Tilth-Failed", "iter_cap")
}

func caseOf(task, base string) *record.CaseSubmitted {
	return &record.CaseSubmitted{Scope: record.Scope{TaskID: task}, Tree: "tree", Base: base}
}

// acceptedTree is the accepting verdict of a tree.
func acceptedTree(task, tree, base string) *record.EvaluatorVerdict {
	return &record.EvaluatorVerdict{Scope: record.Scope{TaskID: task}, Verdict: "accept", Tree: tree, Base: base}
}

func TestPlaceholderBeneathAPersonsCommit(t *testing.T) {
	s := State{
		SessionID: testID, Status: session.Failed, SeedSHA: "seed", SeedKnown: true, BranchTip: "c2",
		Tree:    held.TreeFine,
		Tasks:   tasks("failed", "pending"),
		Commits: chain(plain("a person's"), failedBy(testID, "T-001")),
	}
	p := MakePlan(s)
	if len(p.Unwind) != 0 || len(p.KeptPlaceholders) != 1 ||
		!strings.Contains(p.String(), "keep the partial work in c1,") {
		t.Errorf("%+v\n%s", p, p)
	}
}

// judged returns a record that accepts the trees of commits as a task's.
func judged(task string, shas ...string) *record.State {
	var t record.Task
	for _, sha := range shas {
		t.Trees = append(t.Trees, "tree of "+sha)
	}
	return &record.State{Moment: record.Moment{Tasks: map[string]record.Task{task: t}}}
}

func plain(subject string) gitx.Commit { return gitx.Commit{Subject: subject} }

// want has the tested fields of a plan; zero fields are expected to be zero.
type want struct {
	action   Action
	why      string // a part of it
	hint     string // a part of it
	commit   string // the task of CommitTree
	done     string // tasks marked done, with their commits: "T-001=c1"
	unwind   string // shas
	to       string // checked if unwind is set
	retried  string
	pending  string
	worktree held.TreeState
	fresh    bool
	line     string // a part of the plan's line
}

// TestMakePlan has at least one case for each row of the table in MakePlan's comment, named like the row.
func TestMakePlan(t *testing.T) {
	accepted := acceptedTree("T-002", "tree", "c1")
	cases := []struct {
		row, name string
		change    func(*State)
		want      want
	}{
		{"a teardown was begun", "even with all else in order", func(s *State) { s.Resetting = true },
			want{action: Refuse, why: "reset was not finished",
				hint: "git tilth reset " + testID, line: "cannot be resumed"}},
		{"prd.json cannot be read, or has no tasks", "", func(s *State) {
			s.Tasks, s.TasksError = nil,
				"prd.json: unexpected end"
		},
			want{action: Refuse, why: "prd.json", hint: "git tilth reset"}},
		{"the record does not say where the branch begins", "", func(s *State) { s.NoBase = true },
			want{action: Refuse, why: "does not name the commit", hint: "git tilth reset"}},
		{"the source repository is gone", "", func(s *State) { s.SourceGone = "the source repository /x is gone" },
			want{action: Refuse, why: "/x is gone", hint: "git tilth reset"}},
		{"no seed was ever committed", "an interview that ended early", func(s *State) {
			s.SeedSHA, s.SeedKnown,
				s.Status, s.Tasks = "", false, session.Failed, nil
		},
			want{action: Refuse, why: "never committed", hint: "prep-feature"}},
		{"no seed was ever committed", "no tasks though prepared", func(s *State) {
			s.SeedSHA, s.SeedKnown, s.Status,
				s.Tasks = "", false, session.Prepared, nil
		},
			want{action: Refuse, why: "never committed"}},
		{"the branch is gone", "", func(s *State) { s.BranchTip, s.Branch = "", "session/x" },
			want{action: Refuse, why: "its branch session/x is gone", hint: "git tilth reset"}},
		{"a rewind or an undo was begun", "whatever prd.json and the branch still say", func(s *State) {
			s.GoingBack, s.Tasks, s.Status = "the rewind to the seed", tasks("done", "failed"), session.Failed
			s.Commits = chain(failedBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Continue, line: "finish the rewind"}},
		{"a rewind or an undo was begun", "and the branch is gone",
			func(s *State) { s.GoingBack, s.BranchTip = "the undo of 1", "" }, want{action: Refuse, why: "is gone"}},
		{"the branch no longer holds the seed", "someone rebased it", func(s *State) {
			s.SeedKnown, s.Commits, s.Tasks, s.Status = false, nil, tasks("done", "failed"), session.Failed
		}, want{action: Continue, retried: "T-002", pending: "T-002"}},
		{"the branch no longer holds the seed",
			"with a placeholder of this session at the tip, by its trailers alone", func(s *State) {
				s.SeedKnown, s.Tasks, s.Status = false, tasks("done", "failed"), session.Failed
				s.Commits = chain(failedBy(testID, "T-002"), plain("T-002: FAILED (iter_cap): Title"), doneBy(testID,
					"T-001"))
			}, want{action: Continue, unwind: "c3", to: "c2", retried: "T-002", pending: "T-002"}},
		{"the branch no longer holds the seed", "a worker's commit is not known without it", func(s *State) {
			s.SeedKnown, s.Tasks, s.ByWorker = false, tasks("pending", "pending"), map[string]bool{"c1": true}
			s.Commits = chain(plain("wip"))
		}, want{action: Continue, pending: "T-001 T-002"}},
		{"no worktree, the branch is checked out elsewhere", "", func(s *State) {
			s.Tree, s.BranchIn, s.BranchHint = held.TreeMissing, "/x", "git -C /x switch --detach"
		}, want{action: Refuse, why: "checked out in /x", hint: "switch --detach"}},
		{"an accepted tree, judged on the branch's tip", "", func(s *State) {
			s.Tasks, s.BranchTip, s.Accepted = tasks("done", "pending"), "c1", accepted
			s.Commits = chain(doneBy(testID, "T-001"))
		}, want{action: conclude, commit: "T-002", line: "commit the accepted work of T-002"}},
		{"an accepted tree, judged on the branch's tip", "the files have changed since", func(s *State) {
			s.Tasks, s.BranchTip, s.Accepted, s.AcceptedStale = tasks("done", "pending"), "c1", accepted, true
			s.Commits = chain(doneBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-002"}},
		{"an accepted tree, judged on the branch's tip", "the branch went on since", func(s *State) {
			s.Tasks, s.BranchTip, s.Accepted = tasks("done", "pending"), "c2", accepted
			s.Commits = chain(plain("a person's work"), doneBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-002"}},
		{"an accepted tree, judged on the branch's tip", "its commit is there already", func(s *State) {
			s.Tasks, s.BranchTip, s.Accepted = tasks("done", "pending"), "c2",
				acceptedTree("T-002", "tree", "c2")
			s.Record = judged("T-002", "c2")
			s.Commits = chain(doneBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: conclude, done: "T-002=c2"}},
		{"an accepted tree, judged on the branch's tip", "of a task that someone took out of the plan", func(s *State) {
			s.BranchTip, s.Accepted = "c1", acceptedTree("T-009", "tree", "c1")
			s.Tasks, s.Commits = tasks("done", "pending"), chain(doneBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-002"}},
		{"a commit for a task not done, of a tree that a verdict accepted", "the process died before prd.json",
			func(s *State) {
				s.Commits, s.Record = chain(doneBy(testID, "T-001")), judged("T-001", "c1")
			}, want{action: Continue, done: "T-001=c1", pending: "T-002", line: "mark T-001 done"}},
		{"a commit for a task not done, of a tree that a verdict accepted", "and it was the last", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "failed"), chain(doneBy(testID, "T-002"), doneBy(testID, "T-001"))
			s.Record = judged("T-002", "c2")
		}, want{action: conclude, done: "T-002=c2"}},
		{"a commit for a task not done, of a tree that a verdict accepted", "of another session: no", func(s *State) {
			s.Commits = chain(doneBy(otherID, "T-001"))
		}, want{action: Continue, pending: "T-001 T-002"}},
		{"a commit at the tip with the trailers of a task", "which the reflog gives to the worker", func(s *State) {
			s.Commits, s.ByWorker = chain(doneBy(testID, "T-001")), map[string]bool{"c1": true}
		}, want{action: Continue, unwind: "c1", to: "seed", pending: "T-001 T-002"}},
		{"a commit at the tip with the trailers of a task", "with a reflog that names the harness", func(s *State) {
			s.Commits = chain(doneBy(testID, "T-001"))
		}, want{action: Continue, unwind: "c1", to: "seed", pending: "T-001 T-002"}},
		{"a commit at the tip with the trailers of a task", "done a second time, after a person set it back",
			func(s *State) {
				s.Tasks, s.Commits = tasks("done", "pending"), chain(doneBy(testID, "T-001"), doneBy(testID, "T-001"))
			}, want{action: Continue, pending: "T-002"}},
		{"a commit at the tip with the trailers of a task", "amended by a person", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "pending"), chain(doneBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-002"}},
		{"a commit at the tip with the trailers of a task", "a placeholder that a person calls done", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "pending"), chain(failedBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-002"}},
		{"placeholders or worker's commits at the tip", "one", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "failed"), chain(failedBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Continue, unwind: "c2", to: "c1", retried: "T-002", pending: "T-002",
			line: "unwind 1 commit into the index; retry T-002"}},
		{"placeholders or worker's commits at the tip", "stacked", func(s *State) {
			s.Tasks = tasks("done", "failed")
			s.Commits = chain(failedBy(testID, "T-002"), failedBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Continue, unwind: "c3 c2", to: "c1", retried: "T-002", pending: "T-002",
			line: "unwind 2 commits"}},
		{"placeholders or worker's commits at the tip", "a worker's commit between them", func(s *State) {
			s.Tasks, s.ByWorker = tasks("failed", "pending"), map[string]bool{"c2": true}
			s.Commits = chain(failedBy(testID, "T-001"), plain("wip"), failedBy(testID, "T-001"))
		}, want{action: Continue, unwind: "c3 c2 c1", to: "seed", retried: "T-001", pending: "T-001 T-002"}},
		{"placeholders or worker's commits at the tip", "a person's commit on top keeps them", func(s *State) {
			s.Tasks = tasks("done", "failed")
			s.Commits = chain(plain("fix by hand"), failedBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Continue, retried: "T-002", pending: "T-002"}},
		{"placeholders or worker's commits at the tip", "a person's commit called FAILED", func(s *State) {
			s.Tasks = tasks("done", "failed")
			s.Commits = chain(plain("FAILED (iter_cap): T-002 Title"), doneBy(testID, "T-001"))
		}, want{action: Continue, retried: "T-002", pending: "T-002"}},
		{"placeholders or worker's commits at the tip", "another session's placeholder", func(s *State) {
			s.Tasks = tasks("done", "failed")
			s.Commits = chain(failedBy(otherID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Continue, retried: "T-002", pending: "T-002"}},
		{"placeholders or worker's commits at the tip",
			"a failure without a change has none: the finished task stays", func(s *State) {
				s.Tasks, s.Commits = tasks("done", "failed"), chain(doneBy(testID, "T-001"))
			}, want{action: Continue, retried: "T-002", pending: "T-002"}},
		{"placeholders or worker's commits at the tip", "prd.json not yet failed", func(s *State) {
			s.Tasks, s.Commits = tasks("pending", "pending"), chain(failedBy(testID, "T-001"))
		}, want{action: Continue, unwind: "c1", to: "seed", pending: "T-001 T-002"}},
		{"placeholders or worker's commits at the tip", "never the first commit of a repository", func(s *State) {
			c := failedBy(testID, "T-001")
			c.SHA = "root"
			s.Tasks, s.Commits = tasks("failed"), []gitx.Commit{c}
		}, want{action: Continue, retried: "T-001", pending: "T-001"}},
		{"a failed task", "several, as a plan edited by hand may have", func(s *State) {
			s.Tasks,
				s.Commits = tasks("failed", "failed"), nil
		},
			want{action: Continue, retried: "T-001 T-002", pending: "T-001 T-002"}},
		{"the worktree is missing, unregistered", "missing", func(s *State) { s.Tree = held.TreeMissing },
			want{action: Continue, worktree: held.TreeMissing, pending: "T-001 T-002", line: "re-create the worktree"}},
		{"a merge or the like was left unfinished", "", func(s *State) { s.Unfinished = "rebase" },
			want{action: Continue, pending: "T-001 T-002", line: "abort the unfinished rebase"}},
		{"the task last worked on is not the first pending", "someone put one before it",
			func(s *State) { s.LastTask = "T-002" },
			want{action: Continue, pending: "T-002 T-001", line: "next T-002"}},
		{"the task last worked on is not the first pending", "it is done", func(s *State) {
			s.LastTask, s.Tasks, s.Commits = "T-001", tasks("done", "pending", "pending"), chain(doneBy(testID,
				"T-001"))
		}, want{action: Continue, pending: "T-002 T-003"}},
		{"the task last worked on is skipped or removed", "skipped, its work in the worktree", func(s *State) {
			s.LastTask, s.Tasks, s.Dirty = "T-001", tasks(session.TaskSkipped, "pending"), true
		}, want{action: Continue, pending: "T-002", line: "stash the work of T-001"}},
		{"the task last worked on is skipped or removed", "its placeholder is unwound", func(s *State) {
			s.LastTask, s.Tasks = "T-001", tasks(session.TaskSkipped, "pending")
			s.Commits = chain(failedBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-002", unwind: "c1", to: "seed", line: "stash the work of T-001"}},
		{"the task last worked on is skipped or removed", "removed", func(s *State) {
			s.LastTask, s.Dirty = "T-009", true
		}, want{action: Continue, pending: "T-001 T-002", line: "stash the work of T-009"}},
		{"the task last worked on is skipped or removed", "nothing is in the worktree", func(s *State) {
			s.LastTask, s.Tasks = "T-001", tasks(session.TaskSkipped, "pending")
		}, want{action: Continue, pending: "T-002", line: "1 of 2 tasks to do, next T-002"}},
		{"a need is not done", "the next one is begun", func(s *State) {
			s.Tasks = tasks("skipped", "pending", "pending")
			s.Tasks[1].Needs = []string{"T-001"}
		}, want{action: Continue, pending: "T-002 T-003", line: "next T-003"}},
		{"a need is not done", "of all of them", func(s *State) {
			s.Tasks = tasks("skipped", "pending")
			s.Tasks[1].Needs = []string{"T-001"}
		}, want{action: Continue, pending: "T-002", line: "no task can start: T-002 waits for T-001"}},
		{"a need is not done", "of what was begun", func(s *State) {
			s.Tasks, s.LastTask = tasks("skipped", "pending"), "T-002"
			s.Tasks[1].Needs = []string{"T-001"}
		}, want{action: Continue, pending: "T-002", line: "next T-002"}},
		{"a case was being reviewed", "on the tip", func(s *State) {
			s.LastTask, s.Last.Case = "T-001", caseOf("T-001", "seed")
		}, want{action: Continue, pending: "T-001 T-002", line: "ask the reviewer about T-001"}},
		{"a case was being reviewed", "the files have changed since", func(s *State) {
			s.LastTask, s.Last.Case, s.CaseStale = "T-001", caseOf("T-001", "seed"), true
		}, want{action: Continue, pending: "T-001 T-002", line: "2 of 2 tasks to do, next T-001"}},
		{"a case was being reviewed", "elsewhere", func(s *State) {
			s.LastTask, s.Last.Case = "T-001", caseOf("T-001", "c9")
		}, want{action: Continue, pending: "T-001 T-002", line: "2 of 2 tasks to do, next T-001"}},
		{"an accepted tree, judged on the branch's tip", "of a task that a person skips", func(s *State) {
			s.Accepted, s.Tasks = acceptedTree("T-001", "tree", "seed"), tasks(session.TaskSkipped, "pending")
		}, want{action: Continue, pending: "T-002"}},
		{"another directory stands there", "plain", func(s *State) { s.Tree = held.TreePlain },
			want{action: Continue, worktree: held.TreePlain, pending: "T-001 T-002", line: "re-create the worktree"}},
		{"the worktree is missing, unregistered", "unregistered", func(s *State) { s.Tree = held.TreeUnregistered },
			want{action: Continue, worktree: held.TreeUnregistered, pending: "T-001 T-002",
				line: "register the worktree again"}},
		{"HEAD was moved to another branch", "", func(s *State) { s.Tree, s.treeOn = held.TreeElsewhere, "other" },
			want{action: Continue, worktree: held.TreeElsewhere, pending: "T-001 T-002", line: "set HEAD to"}},
		{"nothing pending, status all_done", "", func(s *State) {
			s.Tasks, s.Status, s.LastStop = tasks("done", "done"), session.AllDone, "all_done"
			s.Commits = chain(doneBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Nothing, line: "nothing to resume"}},
		{"nothing pending, status all_done", "but tasks were added since: they are run", func(s *State) {
			s.Tasks, s.Status, s.LastStop = tasks("done", "done", ""), session.AllDone, "all_done"
			s.Commits = chain(doneBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: Continue, pending: "T-003", line: "1 of 3 tasks to do, next T-003"}},
		{"nothing pending, any other status", "it died before its stop", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "done"), chain(doneBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, want{action: conclude, line: "all tasks are done"}},
		{"else", "it was interrupted", func(s *State) { s.LastStop = "interrupted" },
			want{action: Continue, pending: "T-001 T-002", line: "2 of 2 tasks to do, next T-001"}},
		{"else", "it was prepared", func(s *State) { s.Status = session.Prepared },
			want{action: Continue, fresh: true, pending: "T-001 T-002", line: "start with 2 tasks"}},
	}
	for _, c := range cases {
		t.Run(c.row+"/"+c.name, func(t *testing.T) {
			s := State{
				SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, BranchTip: "seed",
				Tree:  held.TreeFine,
				Tasks: tasks("pending", "pending"),
			}
			c.change(&s)
			if len(s.Commits) > 0 && s.BranchTip == "seed" {
				s.BranchTip = s.Commits[0].SHA
			}
			c.want.check(t, MakePlan(s))
		})
	}
}

func (w want) check(t *testing.T, p Plan) {
	t.Helper()
	equal := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q (plan: %s)", what, got, want, p)
		}
	}
	contains := func(what, got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("%s: %q does not contain %q", what, got, part)
		}
	}
	equal("action", string(p.Action), string(w.action))
	contains("why", p.Why, w.why)
	contains("hint", p.Hint, w.hint)
	contains("line", p.String(), w.line)
	if w.action == Refuse {
		return
	}
	commit := ""
	if p.CommitTree != nil {
		commit = p.CommitTree.TaskID
	}
	equal("to commit", commit, w.commit)
	var done []string
	for _, id := range slices.Sorted(maps.Keys(p.MarkDone)) {
		done = append(done, id+"="+p.MarkDone[id])
	}
	equal("marked done", strings.Join(done, " "), w.done)
	equal("unwound", strings.Join(shas(p.Unwind), " "), w.unwind)
	if w.unwind != "" {
		equal("unwound to", p.Unwind[len(p.Unwind)-1].Parents[0], w.to)
	}
	equal("retried", strings.Join(p.Retried, " "), w.retried)
	equal("pending", strings.Join(p.Pending, " "), w.pending)
	if w.worktree != "" {
		equal("worktree", string(p.Tree), string(w.worktree))
	}
	if p.Fresh != w.fresh {
		t.Errorf("fresh %v, want %v", p.Fresh, w.fresh)
	}
}

// The record has the plan's line, and the same state gives the same line.
func TestPlanLineIsStable(t *testing.T) {
	s := State{SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, BranchTip: "c3",
		Tree:  held.TreeFine,
		Tasks: tasks("pending", "pending", "pending"), Record: judged("T-001", "c1"), Commits: chain(doneBy(testID,
			"T-003"), doneBy(testID, "T-002"), doneBy(testID, "T-001"))}
	for i, id := range []string{"T-002", "T-003"} {
		s.Record.Tasks[id] = judged(id, shaAt(i+2)).Tasks[id]
	}
	first := MakePlan(s).String()
	for range 50 {
		if line := MakePlan(s).String(); line != first {
			t.Fatalf("%q, then %q", first, line)
		}
	}
	if i, j := strings.Index(first, "T-001"), strings.Index(first, "T-003"); i < 0 || j < i {
		t.Errorf("tasks out of order: %s", first)
	}
}

// TestAcceptedInLane: a tree that a lane left and that was accepted on the branch's tip is committed, first that of a
// task_done. The attempts stay with the lanes, whether or not these exist.
func TestAcceptedInLane(t *testing.T) {
	inLane := func(base string, waits, noted bool) record.Task {
		task := record.Task{Attempt: record.Attempt{Begun: record.ContextReset{Base: "seed", Lane: true}, Waits: waits,
			Noted: noted}}
		task.Status = record.Working
		task.Attempt.Verdict = &record.EvaluatorVerdict{Base: base, Tree: "tree on " + base}
		return task
	}
	for _, c := range []struct {
		name     string
		one, two record.Task
		want     string
	}{
		{"nothing was accepted", inLane("c1", false, false), inLane("c1", false, false), ""},
		{"one on the tip", inLane("seed", true, false), inLane("c1", true, false), "T-002"},
		{"both on the tip", inLane("c1", true, false), inLane("c1", true, false), "T-001"},
		{"both, one of a task_done", inLane("c1", true, false), inLane("c1", true, true), "T-002"},
		{"of a task_done, on another commit", inLane("seed", true, true), inLane("seed", true, false), ""},
	} {
		c.one.Attempt.Verdict.TaskID, c.two.Attempt.Verdict.TaskID = "T-001", "T-002"
		s := State{SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, BranchTip: "c1",
			Tree: held.TreeFine, Tasks: tasks("pending", "pending"), Commits: chain(gitx.Commit{}),
			Record: &record.State{Moment: record.Moment{Head: "T-001", LastTask: "T-001",
				Tasks: map[string]record.Task{"T-001": c.one, "T-002": c.two}}}}
		s.readAttempts()
		p, got := MakePlan(s), ""
		if p.CommitTree != nil {
			got = p.CommitTree.TaskID
		}
		if got != c.want || p.Begun != "" {
			t.Errorf("%s: %q is committed, %q begun in the worktree", c.name, got, p.Begun)
		}
	}
}
