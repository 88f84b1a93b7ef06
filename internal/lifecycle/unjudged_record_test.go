package lifecycle

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// planOf is the plan for a session with a record of these lines ("type {payload}") and these commits, newest first.
func planOf(t *testing.T, plan []session.Task, lines []string, commits ...gitx.Commit) Plan {
	t.Helper()
	s := &session.Session{ID: testID, Dir: t.TempDir()}
	var b strings.Builder
	for i, l := range lines {
		typ, payload, _ := strings.Cut(l, " ")
		fmt.Fprintf(&b, `{"ts":"2026-06-01T12:00:%02d.000Z","type":%q,"payload":%s}`+"\n", i, typ, payload)
	}
	if err := os.WriteFile(s.Path(session.RecordFile), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	st := State{
		SessionID: testID, Status: session.Running, SeedSHA: "seed", SeedKnown: true, Tree: held.TreeFine, Tasks: plan,
		Commits: chain(commits...), BranchTip: shaAt(len(commits)),
	}
	var err error
	if st.Record, err = s.State(); err != nil {
		t.Fatal(err)
	}
	st.readAttempts()
	return MakePlan(st)
}

// withTree gives a commit its tree.
func withTree(c gitx.Commit, tree string) gitx.Commit {
	c.Tree = tree
	return c
}

// TestUnjudged: the commits that are judged with the next task's work.
func TestUnjudged(t *testing.T) {
	const (
		seeded = `seed_committed {"sha":"seed"}`
		begun  = `context_reset {"task_id":"T-001","base":"seed"}`
		worked = `model_call {"task_id":"T-001","iter":1,"tokens_used_total":5}`
		accept = `evaluator_verdict {"task_id":"T-001","iter":1,"verdict":"accept","tree":"t1","base":"seed"}`
		done   = `task_done {"task_id":"T-001","iter":1}`
		made   = `commit {"task_id":"T-001","iter":1,"sha":"c1"}`
	)
	one := withTree(doneBy(testID, "T-001"), "t1")
	stray := plain("whose is it?")
	pending, finished := tasks("pending", "pending"), tasks("done", "pending")
	for _, c := range []struct {
		row     string
		tasks   []session.Task
		lines   []string
		commits []gitx.Commit
		from    string
		count   int
	}{
		{"no attempt is on record", pending, []string{seeded}, []gitx.Commit{stray}, "", 0},
		{"the tip is the seed", pending, []string{seeded, begun, worked}, nil, "", 0},
		{"the tip is an accepted commit", finished, []string{seeded, begun, worked, accept, done, made},
			[]gitx.Commit{one}, "", 0},
		{"the tip is an accepted commit, and nothing says so yet", pending, []string{seeded, begun, worked, accept},
			[]gitx.Commit{one}, "", 0},
		{"the last attempt had such commits below it, and was stopped", pending,
			[]string{seeded, begun, worked, `context_reset {"task_id":"T-001","base":"c1","judged":"seed"}`, worked,
				`stop {"reason":"interrupted","tip":"c1"}`}, []gitx.Commit{stray, stray}, "seed", 2},
		{"the last attempt had such commits below it, and was accepted", finished,
			[]string{seeded, `context_reset {"task_id":"T-001","base":"c1","judged":"seed"}`, worked,
				`evaluator_verdict {"task_id":"T-001","iter":1,"verdict":"accept","tree":"t1","base":"c1"}`, done,
				`commit {"task_id":"T-001","iter":1,"sha":"c2"}`, `stop {"reason":"interrupted","tip":"c2"}`},
			[]gitx.Commit{one, stray}, "", 0},
		{"a placeholder lies beneath a person's commit", tasks("failed", "pending"),
			[]string{seeded, begun, worked, `stop {"reason":"iter_cap","tip":"c1"}`},
			[]gitx.Commit{stray, failedBy(testID, "T-001")}, "seed", 2},
		{"killed", pending, []string{seeded, begun, worked}, []gitx.Commit{stray, stray}, "", 0},
		{"a stop notes the tip", pending, []string{seeded, begun, worked, `stop {"reason":"interrupted","tip":"seed"}`},
			[]gitx.Commit{stray}, "", 0},
		{"a stop notes the tip, and a resume after it failed", pending,
			[]string{seeded, begun, worked, `stop {"reason":"interrupted","tip":"seed"}`, `stop {"reason":"error"}`},
			[]gitx.Commit{stray}, "", 0},
	} {
		p := planOf(t, c.tasks, c.lines, c.commits...)
		if p.JudgedTo != c.from || p.Unjudged != c.count || len(p.Unwind) != 0 {
			t.Errorf("%s: %d commits from %q, want %d from %q: %s", c.row, p.Unjudged, p.JudgedTo, c.count, c.from, p)
		}
		if said := strings.Contains(p.String(), " with the task's work"); said != (c.count > 0) {
			t.Errorf("%s: the plan says %s", c.row, p)
		}
	}
}
