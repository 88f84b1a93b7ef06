package main

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// The live line of a run and of log -f shows the worker's activity and its duration.
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

// Each of several lanes has a row while it exists, and the run's usage is below them.
func TestWhatTheLanesDo(t *testing.T) {
	p := newPlace(t)
	p.write("../two.json", `[{"id": "T-001", "title": "One", "acceptance_criteria": ["x"]},
		{"id": "T-002", "title": "Two", "acceptance_criteria": ["x"]}]`)
	lane := func(task string) []scripted.Step {
		begin := calls("bash", map[string]any{"command": "while ! test -e go; do sleep 0.1; done; mv go " + task})
		end := calls("submit_case", map[string]any{"summary": task})
		begin.When, end.When = scripted.Strings{"Your task: " + task}, scripted.Strings{"Your task: " + task}
		return []scripted.Step{begin, end}
	}
	p.model(&scripted.Script{Worker: append(lane("T-001"), lane("T-002")...),
		Evaluator: []scripted.Step{{Tools: calls("submit_verdict", map[string]any{"verdict": "accept"}).Tools,
			Repeat: -1}}})
	p.git("config", "tilth.validator", "held=true")
	c := p.console("run", "-j", "2", "--from", "../two.json", "--no-preflight")
	c.Expect("mv go T-001 for 1s", "\nT-002  iteration 1 of 32", "mv go T-002 for ", "\n240 tokens",
		"\r\x1b[K\x1b[A\x1b[K\x1b[A\x1b[K")
	s := p.newest()
	for _, task := range []string{"T-002", "T-001"} {
		if out, code := p.try("touch", s.Path("lanes")+"/"+task+"/go"); code != 0 {
			t.Fatal(out)
		}
		c.Expect("validator held for ", task+"  done, commit ", ", 2 iterations, ")
	}
	c.Expect("all_done")
	c.Ends(0)
}
