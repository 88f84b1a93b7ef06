package lifecycle

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// A commit hook changes the judged tree, and the process dies before it reverts the commit. The commit has the
// session's trailers but is not accepted work.
func TestUnjudgedCommitIsUnwound(t *testing.T) {
	commit := doneBy(testID, "T-002")
	commit.Tree = "made by the hook"
	state := State{
		SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, BranchTip: "c2",
		Tree:     held.TreeFine,
		Tasks:    tasks("done", "pending"),
		Accepted: acceptedTree("T-002", "judged", "c1"),
		Commits:  chain(commit, doneBy(testID, "T-001")),
	}
	p := MakePlan(state)
	if len(p.Unwind) != 1 || p.Unwind[0].SHA != "c2" || len(p.MarkDone) != 0 || p.CommitTree != nil ||
		len(p.Pending) != 1 {
		t.Errorf("the plan is %+v", p)
	}
	for name, change := range map[string]func(*State){
		"the judged tree":  func(s *State) { s.Commits[0].Tree = "judged" },
		"done by prd.json": func(s *State) { s.Tasks = tasks("done", "done") },
		"judged before": func(s *State) {
			s.Accepted, s.Record = nil, judged("T-002", "c2")
			s.Commits[0].Tree = "tree of c2"
		},
	} {
		s := state
		s.Commits = append([]gitx.Commit{}, state.Commits...)
		change(&s)
		if p := MakePlan(s); len(p.Unwind) != 0 || len(p.Pending) != 0 {
			t.Errorf("%s: the plan is %+v", name, p)
		}
	}
}

// A commit-msg hook writes another message, and the process dies before the trailers are restored. The commit of the
// accepted tree on its judged parent is the task's, whatever its message.
func TestAcceptedTreeIsKnownWithoutTrailers(t *testing.T) {
	state := State{
		SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, BranchTip: "c2",
		Tree:     held.TreeFine,
		Tasks:    tasks("done", "pending"),
		Accepted: acceptedTree("T-002", "judged", "c1"),
		Commits:  chain(gitx.Commit{Subject: "EVIL", Tree: "judged"}, doneBy(testID, "T-001")),
	}
	if p := MakePlan(state); p.MarkDone["T-002"] != "c2" || len(p.Pending) != 0 || len(p.Unwind) != 0 ||
		p.CommitTree != nil {
		t.Errorf("the plan is %+v", p)
	}
	for name, change := range map[string]func(*State){
		"another tree":    func(s *State) { s.Commits[0].Tree = "other" },
		"judged before":   func(s *State) { s.Accepted.Base = "c0" },
		"of the worker":   func(s *State) { s.ByWorker = map[string]bool{"c2": true} },
		"with no verdict": func(s *State) { s.Accepted = nil },
	} {
		s := state
		accepted := *state.Accepted
		s.Accepted = &accepted
		s.Commits = append([]gitx.Commit{}, state.Commits...)
		change(&s)
		if p := MakePlan(s); len(p.MarkDone) != 0 || len(p.Pending) != 1 {
			t.Errorf("%s: the plan is %+v", name, p)
		}
	}
}

// Committing an accepted tree may require running its task, so a worker must be available.
func TestCommittingNeedsAWorker(t *testing.T) {
	if p := (Plan{Action: conclude, CommitTree: &record.EvaluatorVerdict{}}); !p.NeedsWorker() {
		t.Error("a hook may refuse the tree")
	}
	if p := (Plan{Action: conclude}); p.NeedsWorker() {
		t.Error("nothing is left to do")
	}
}

// The last stop is all_done, and the process died before it wrote the checkpoint. There is no second stop.
func TestAllDoneIsNotConcludedTwice(t *testing.T) {
	state := State{
		SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, BranchTip: "c1",
		Tree:     held.TreeFine,
		LastStop: session.AllDone, Tasks: tasks("done"),
		Commits: chain(doneBy(testID, "T-001")),
	}
	if p := MakePlan(state); p.Action != Nothing {
		t.Errorf("the plan is to %s", p.Action)
	}
	state.Tasks = tasks("done", "pending")
	if p := MakePlan(state); p.Action != Continue {
		t.Errorf("with a task that was added the plan is to %s", p.Action)
	}
}
