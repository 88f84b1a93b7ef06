package main

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// The live line of a run, and that of a record that is followed, say what the worker does and for how long.
func TestWhatTheWorkerDoes(t *testing.T) {
	p := newPlace(t)
	p.write("../one.json", `[{"id": "T-001", "title": "One", "description": "", "acceptance_criteria": ["x"]}]`)
	p.model(&scripted.Script{
		Worker: []scripted.Step{
			calls("bash", map[string]any{"command": "touch begun; while ! test -e go; do sleep 0.1; done; rm go"}),
			calls("submit_case", map[string]any{"summary": "a"}),
		},
		Evaluator: []scripted.Step{calls("submit_verdict", map[string]any{"verdict": "accept"})},
	})
	c := p.console("run", "--from", "../one.json", "--no-preflight")
	c.Expect("bash touch begun; while", " for 1s", " for 2s")
	follow := p.console("log", "-f")
	follow.Expect("now: bash touch begun; while")
	last := p.console("log", "-f", "--tail", "1")
	last.Expect("now: bash touch begun; while")
	last.Send("\x03")
	s := p.newest()
	if out, code := p.try("touch", s.Path("workspace")+"/go"); code != 0 {
		t.Fatal(out)
	}
	c.Expect("all_done")
	c.Ends(0)
	follow.Expect("all_done")
	follow.Send("\x03")
}
