package main

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/ttytest"
)

func TestMenuOfSessionsInFlight(t *testing.T) {
	p := newPlace(t)
	p.write(
		"../one.json",
		`[{"id": "T-001", "title": "Add sub to calc.py", "description": "", "acceptance_criteria": ["sub(3, 2) returns 1"]}]`,
	)
	edit := calls(
		"edit_file",
		map[string]any{"path": "calc.py", "old_string": "    return a + b\n",
			"new_string": "    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"},
	)
	edit.Tools = append(edit.Tools, calls("submit_case", map[string]any{"summary": "sub"}).Tools...)
	p.model(&scripted.Script{
		Interview: []scripted.Step{{Tools: seeds(subTest).Tools, Repeat: -1}},
		Worker:    []scripted.Step{edit, {Tools: edit.Tools}},
		Evaluator: []scripted.Step{
			{Tools: calls("submit_verdict", map[string]any{"verdict": "accept"}).Tools, Repeat: -1},
		},
	})
	if out, code := p.try("git", "tilth", "prep", "--from", "../one.json"); code != 0 {
		t.Fatal(out)
	}
	first := p.newest().ID

	for keys, code := range map[string]int{"4\r": 1, "\r": 1, "x\r": 1, "\x04": 1,
		"\x03": 130} { // cancel, in every way
		c := p.console("prep", "--brief", "x")
		c.Expect(first, "prepared", "Add sub to calc.py", "1  run it", "2  discard", "3  start alongside", "4  cancel",
			"> ")
		c.Send(keys)
		c.Ends(code)
	}
	if p.newest().ID != first || p.sessions() != 1 {
		t.Error("a cancelled preparation has changed something")
	}

	c := p.console("prep", "--brief", "x") // start alongside
	c.Expect("> ")
	c.Send("3\r")
	takePlan(c)
	c.Expect("is prepared")
	c.Ends(0)
	second := p.newest().ID
	if second == first || p.sessions() != 2 {
		t.Errorf("%d sessions", p.sessions())
	}

	c = p.console("prep", "--brief", "x") // discard the newest, and nothing else
	c.Expect(second, first, "> ")
	c.Send("2\r")
	takePlan(c)
	c.Expect("is prepared")
	c.Ends(0)
	if third := p.newest().ID; third == second || third == first || p.sessions() != 2 {
		t.Errorf("%d sessions, the newest is %s", p.sessions(), third)
	}

	c = p.console("prep", "--brief", "x") // run the newest
	c.Expect("1  run it", "> ")
	c.Send("1\r")
	c.Expect("all_done")
	c.Ends(0)
	if c := p.checkpoint(); c.Status != session.AllDone {
		t.Errorf("the status is %s", c.Status)
	}
}

// takePlan answers the question at an interview's end.
func takePlan(c *ttytest.Console) {
	c.Expect("Is this the plan?", "> ")
	c.Send("1\r")
}

// A session that has no seed can be gone on with, discarded or left, and not be run.
func TestMenuAfterAnInterviewWithoutASeed(t *testing.T) {
	p := newPlace(t)
	p.model(&scripted.Script{Interview: []scripted.Step{asks("Well?"), seeds(subTest)}})
	if out, code := p.try("sh", "-c", "git tilth prep --brief first </dev/null"); code != 2 {
		t.Fatal(out)
	}
	first := p.newest().ID
	c := p.console("prep", "--brief", "second")
	c.Expect(first, "failed, no seed", "first", "1  continue its interview", "> ")
	c.Send("4\r")
	c.Ends(1)
	c = p.console("prep", "--brief", "second")
	c.Expect("> ")
	c.Send("2\r")
	takePlan(c)
	c.Expect("is prepared")
	c.Ends(0)
	if p.newest().ID == first || p.sessions() != 1 {
		t.Errorf("%d sessions", p.sessions())
	}
}
