package record

import "testing"

// TestSteps follows the commits to repeat on a new base. After a kill only the record has them.
func TestSteps(t *testing.T) {
	var s State
	off := int64(0)
	apply := func(e Event) {
		off += 10
		s.Apply(Line{Off: off, Type: TypeOf(e)}, e)
	}
	of := func(task string) Scope { return Scope{TaskID: task} }
	apply(&SessionStart{Phase: "prep-feature", Base: "base"})
	apply(&SeedCommitted{SHA: "seed"})
	apply(&SessionStart{Phase: "run"})
	onto := &Onto{Base: "base2", Seed: "seed2", Steps: []Step{
		{Task: "T-001", Verdict: &EvaluatorVerdict{Tree: "tree1", Base: "below1"}}, {Commit: "mine"},
		{Task: "T-002", Verdict: &EvaluatorVerdict{Tree: "tree2", Base: "below2"}}}}
	apply(&SessionRewound{To: "base", Undo: 1, Onto: onto, Tasks: map[string]TaskState{
		"T-001": {Status: Pending}, "T-002": {Status: Pending}}})
	if s.Base != "base2" || s.Seed.SHA != "seed2" || s.SeedAt != off || len(s.Steps) != 3 {
		t.Fatalf("after the move: %+v", s.Beginning)
	}
	if c := s.AwaitsReview("T-001"); c == nil || c.Tree != "tree1" || c.Base != "below1" {
		t.Errorf("T-001 waits for %+v", c)
	}
	apply(&ContextReset{Scope: of("T-001"), Base: "seed2"})
	apply(&TaskMarked{Scope: of("T-003"), Mark: "added"})
	if s.Carried("T-001") == nil || len(s.Steps) != 3 {
		t.Error("an attempt that only began ended the step")
	}
	apply(&Commit{Scope: of("T-001"), SHA: "new1"})
	apply(&CommitRepeated{From: "mine", SHA: "mine2"})
	apply(&PromptAssembled{Scope: of("T-002"), Role: RoleEvaluator})
	if s.Carried("T-001") != nil || s.Carried("T-002") == nil || len(s.Steps) != 1 {
		t.Errorf("the steps are %+v", s.Steps)
	}
	apply(&Stop{Reason: Interrupted})
	if len(s.Steps) != 1 {
		t.Error("an interrupted run ended a step")
	}
	apply(&PromptAssembled{Scope: of("T-002"), Role: RoleWorker})
	if len(s.Steps) != 0 || s.Carried("") != nil {
		t.Errorf("the steps are %+v", s.Steps)
	}
	apply(&SessionUndone{Undo: 1, Redo: 2})
	if s.Base != "base" || s.Seed.SHA != "seed" || len(s.Steps) != 0 {
		t.Errorf("after the undo: %+v %+v", s.Beginning, s.Steps)
	}
	apply(&SessionUndone{Undo: 2, Redo: 3})
	s.Steps = []Step{{Task: "T-009"}} // never added
	if apply(&Stop{Reason: AllDone}); len(s.Steps) != 0 {
		t.Errorf("all is done, and the steps are %+v", s.Steps)
	}
	if s.Base != "base2" || s.Seed.SHA != "seed2" {
		t.Errorf("after the redo: %+v", s.Beginning)
	}
}
