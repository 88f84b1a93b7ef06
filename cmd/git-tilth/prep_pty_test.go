package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

func calls(name string, args any) scripted.Step {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return scripted.Step{Tools: []scripted.Tool{{Name: name, Args: raw}}}
}

func asks(question string, options ...string) scripted.Step {
	args := map[string]any{"question": question}
	if len(options) > 0 {
		args["options"] = options
	}
	return calls("ask_user", args)
}

// seeds hands in a seed of one task for sub in calc.py.
func seeds(tests map[string]string) scripted.Step {
	return calls("write_seed", map[string]any{
		"prd_entries": []any{
			map[string]any{"id": "T-001", "title": "Add sub", "description": "Write sub(a, b) in calc.py.",
				"acceptance_criteria": []string{"sub(3, 2) returns 1"}},
		},
		"test_files": tests, "tldr": "The calculator learns to subtract.",
		"open_questions": []string{"What about complex numbers?"},
		"blockers":       []string{"nobody owns the docs"}, "scope_notes": []string{"no division"},
	})
}

var subTest = map[string]string{
	"tests/test_t001_sub.py": "from calc import sub\n\n\ndef test_sub():\n    assert sub(3, 2) == 1\n",
}

// expecting makes a step require texts in its request.
func expecting(s scripted.Step, texts ...string) scripted.Step {
	s.Expect = texts
	return s
}

// wholeInterview reads twice, asks with a menu and freely, hands in a refused seed and then an accepted one.
func wholeInterview() *scripted.Script {
	return &scripted.Script{VerifyEcho: true, Interview: []scripted.Step{
		expecting(calls("read_file", map[string]any{"path": "calc.py"}), "subtract, as docs/spec.md has it"),
		expecting(calls("grep", map[string]any{"pattern": "def "}), "return a + b", "uncommitted"),
		expecting(asks("What about floats?", "ignore them", "round them"), "calc.py"),
		expecting(asks(`What should sub("a", 1) do?`), "round them"),
		expecting(seeds(nil), `raise TypeError\nnaming the argument`),
		expecting(seeds(subTest), "task-without-test"),
	}}
}

// preparedAsAgreed checks the session against the contract after wholeInterview.
func preparedAsAgreed(t *testing.T, p *place) {
	t.Helper()
	s, c := p.newest(), p.checkpoint()
	if c.Status != session.Prepared || c.TokensUsed != 6*120 || c.Usage.Interview.Calls != 6 ||
		c.Usage.Interview.Total() != 6*120 {
		t.Errorf("status %s, %d tokens, %+v", c.Status, c.TokensUsed, c.Usage.Interview)
	}
	calling := []string{"model_call", "tool_call", "tool_result"}
	want := []string{"session_start", "memory_load", "prompt_assembled"}
	for range 6 {
		want = append(want, calling...)
	}
	want = append(want, "session_prepared", "seed_committed")
	if got := p.events(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the events are\n%v, want\n%v", got, want)
	}
	prepared, ok, err := lastEvent(s, "session_prepared")
	var payload struct {
		Entries     int    `json:"prd_entries"`
		Tests       int    `json:"test_files"`
		Interviewer string `json:"interviewer_model"`
		Tokens      int64  `json:"tokens_used"`
	}
	if err != nil || !ok || json.Unmarshal(prepared.Payload, &payload) != nil || payload.Entries != 1 ||
		payload.Tests != 1 ||
		payload.Interviewer != "scripted" ||
		payload.Tokens != 720 {
		t.Errorf("session_prepared %s: %v", prepared.Payload, err)
	}
	committed, ok, err := lastEvent(s, "seed_committed")
	var seed struct{ SHA, Branch string }
	if err != nil || !ok || json.Unmarshal(committed.Payload, &seed) != nil ||
		seed.SHA != p.git("rev-parse", s.Branch()) ||
		seed.Branch != s.Branch() {
		t.Errorf("seed_committed %s: %v", committed.Payload, err)
	}
	if got := p.git("log", "--format=%s %P", "-1", s.Branch()); got != "seed: 1 task(s) + 1 acceptance test(s) "+p.git(
		"rev-parse",
		"HEAD",
	) {
		t.Errorf("the seed commit is %q", got)
	}
	if got := p.git("show", "--name-only", "--format=", s.Branch()); got != "tests/test_t001_sub.py" {
		t.Errorf("the seed commit holds %q", got)
	}
	if out := p.git("-C", s.Workspace(), "status", "--porcelain", "--ignored"); out != "" {
		t.Errorf("the worktree is not clean:\n%s", out)
	}
	tasks, err := s.Tasks()
	if err != nil || len(tasks) != 1 || tasks[0].ID != "T-001" || tasks[0].Status != session.TaskPending {
		t.Errorf("%+v %v", tasks, err)
	}
	text, err := os.ReadFile(s.Path(session.SeedMetaFile))
	var meta struct {
		Model   string   `json:"interviewer_model"`
		Started string   `json:"started_at"`
		Ended   string   `json:"ended_at"`
		Tokens  int64    `json:"tokens"`
		TLDR    string   `json:"tldr"`
		Open    []string `json:"open_questions"`
		Block   []string `json:"blockers"`
		Scope   []string `json:"scope_notes"`
	}
	if err != nil || json.Unmarshal(text, &meta) != nil || meta.Model != "scripted" || meta.Started == "" ||
		meta.Ended == "" || meta.Tokens != 720 || meta.TLDR == "" ||
		len(meta.Open) != 1 ||
		len(meta.Block) != 1 ||
		len(meta.Scope) != 1 {
		t.Errorf("seed-meta.json: %s %v", text, err)
	}
	transcript, err := os.ReadFile(s.Path(session.InterviewFile))
	if lines := strings.Count(string(transcript), "\n"); err != nil || lines != 2+6*2 {
		t.Errorf("%d messages of the interview: %v", lines, err)
	}
}

func TestInterviewAtATerminal(t *testing.T) {
	p := newPlace(t)
	p.write("calc.py", "def add(a, b):\n    return a + b  # uncommitted\n")
	p.write("new.py", "untracked = 1\n")
	before := p.user()
	p.model(wholeInterview())
	c := p.console("prep-feature", "--brief", "subtract, as docs/spec.md has it")
	c.Expect("has uncommitted changes", "read_file calc.py", "grep def", "240 tokens")
	c.Expect("What about floats?", "1. ignore them", "2. round them", "3. other", "> ")
	c.Send("2\r")
	c.Expect("360 tokens", `What should sub("a", 1) do?`, "> ")
	c.Send("raise TypeError\r")
	c.Expect("> ")
	c.Send("naming the argument\r\r")
	c.Expect("refused: task-without-test")
	c.Expect("learns to subtract", "1 task", "T-001", "open questions", "complex numbers", "blockers", "nobody owns",
		"left out", "no division", "720 tokens")
	takePlan(c)
	c.Expect("is prepared", "git tilth run")
	c.Ends(0)
	preparedAsAgreed(t, p)
	if p.user() != before {
		t.Error("the user's tree has changed")
	}
}

func TestInterviewThroughAPipe(t *testing.T) {
	for _, how := range []string{"pipe", "file"} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t)
			p.write("calc.py", "def add(a, b):\n    return a + b  # uncommitted\n")
			p.write("../answers", "2\nraise TypeError\\nnaming the argument\n")
			before := p.user()
			script := wholeInterview()
			script.Interview[4].Expect = []string{`raise TypeError\\nnaming`}
			p.model(script)
			command := `git tilth prep-feature --brief "subtract, as docs/spec.md has it" <../answers`
			if how == "file" {
				command = `git tilth prep --answers ../answers --brief "subtract, as docs/spec.md has it"`
			}
			out, code := p.try("sh", "-c", command)
			if code != 0 || !strings.Contains(out, "3. other") || !strings.Contains(out, "> 2. round them") ||
				!strings.Contains(out, "is prepared") ||
				strings.Contains(out, "\x1b") {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			preparedAsAgreed(t, p)
			if p.user() != before {
				t.Error("the user's tree has changed")
			}
		})
	}
}

// endedInterview checks list, run, resume and reset on a session with a failed interview.
func endedInterview(t *testing.T, p *place, status, stop string) {
	t.Helper()
	p.noBundle()
	s := p.newest()
	if c := p.checkpoint(); c.Status != status {
		t.Errorf("the status is %s, want %s", c.Status, status)
	}
	last, _, err := lastEvent(s, "stop")
	var payload struct{ Reason string }
	if err != nil || (stop != "" && (json.Unmarshal(last.Payload, &payload) != nil || payload.Reason != stop)) {
		t.Errorf("the stop is %s: %v", last.Payload, err)
	}
	if out, code := p.try("git", "tilth", "list"); code != 0 || !strings.Contains(out, s.ID) ||
		!strings.Contains(out, "no seed") {
		t.Errorf("list: exit code %d\n%s", code, out)
	}
	for _, verb := range []string{"resume", "run"} {
		if out, code := p.try("git", "tilth", verb); code != 2 ||
			!strings.Contains(out, "prep-feature") && !strings.Contains(out, "reset") {
			t.Errorf("%s: exit code %d\n%s", verb, code, out)
		}
	}
	// A new preparation names the unfinished session, with a command that works.
	if out, code := p.try("git", "tilth", "prep", "--brief", "x"); code != 2 || !strings.Contains(out, "--force") ||
		!strings.Contains(out, "--keep-existing") ||
		strings.Contains(out, "git tilth resume") {
		t.Errorf("prep: exit code %d\n%s", code, out)
	}
	if out, code := p.try("git", "tilth", "reset", "-y"); code != 0 {
		t.Errorf("reset: exit code %d\n%s", code, out)
	}
	if n := p.sessions(); n != 0 || p.git("branch", "--list", "session/*") != "" ||
		strings.Count(p.git("worktree", "list"), "\n") != 0 {
		t.Errorf("%d sessions are left, %s", n, p.git("branch"))
	}
}

func TestInterviewsThatEndAtATerminal(t *testing.T) {
	cases := map[string]string{
		"Ctrl-C":                  "\x03",
		"Ctrl-D":                  "\x04",
		"Ctrl-C in a line":        "half a line\x03",
		"Ctrl-D in a long answer": "own words\r\x04",
	}
	for name, keys := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before := p.user()
			p.model(&scripted.Script{Interview: []scripted.Step{asks("Well?", "a", "b")}})
			c := p.console("prep", "--brief", "x")
			c.Expect("Well?", "> ")
			c.Send(keys)
			c.Expect("there is no seed", "hint: git tilth prep-feature --continue")
			c.Ends(130)
			endedInterview(t, p, session.Failed, "interrupted")
			if p.user() != before {
				t.Error("the user's tree has changed")
			}
		})
	}
}

func TestCtrlCWhileTheModelThinks(t *testing.T) {
	p := newPlace(t)
	p.model(
		&scripted.Script{
			Interview: []scripted.Step{calls("read_file", map[string]any{"path": "calc.py"}), {Hang: true}},
		},
	)
	c := p.console("prep", "--brief", "x")
	c.Expect("read_file calc.py", "thinking")
	c.Send("\x03")
	c.Ends(130)
	endedInterview(t, p, session.Failed, "interrupted")
}

func TestTerminalThatGoesAway(t *testing.T) {
	p := newPlace(t)
	p.model(&scripted.Script{Interview: []scripted.Step{asks("Well?")}})
	c := p.console("prep", "--brief", "x")
	c.Expect("Well?", "> ")
	c.HangUp()
	endedInterview(t, p, session.Failed, "interrupted")
}

func TestKilledInterview(t *testing.T) {
	p := newPlace(t)
	p.model(&scripted.Script{Interview: []scripted.Step{asks("Well?")}})
	c := p.console("prep", "--brief", "x")
	c.Expect("Well?", "> ")
	if out, code := p.try("git", "tilth", "reset", "-y"); code != 4 {
		t.Errorf("reset during the interview: exit code %d\n%s", code, out)
	}
	holder, busy := p.newest().Holder()
	if !busy {
		t.Fatal("nobody holds the session")
	}
	if err := syscall.Kill(holder.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	endedInterview(t, p, session.Running, "")
}

func TestBriefIsAskedAtATerminal(t *testing.T) {
	p := newPlace(t)
	server := p.model(&scripted.Script{Interview: []scripted.Step{expecting(seeds(subTest), "teach it to subtract")}})
	c := p.console("prep")
	c.Expect("What should be built?", "> ")
	c.Send("teach it to subtract\r")
	takePlan(c)
	c.Expect("is prepared")
	c.Ends(0)
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	// No brief is a no.
	for keys, code := range map[string]int{"\r": 1, "\x04": 1, "\x03": 130} {
		c := p.console("prep", "--keep-existing")
		c.Expect("What should be built?", "> ")
		c.Send(keys)
		c.Ends(code)
	}
	if n := p.sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// Without a prepared session, run at a terminal prepares one first, by an interview.
func TestRunAtATerminalInterviewsFirst(t *testing.T) {
	p := newPlace(t)
	work := calls("write_file", map[string]any{"path": "sub.py", "content": "sub = 1\n"})
	work.Tools = append(work.Tools, calls("submit_case", map[string]any{"summary": "sub"}).Tools...)
	p.model(&scripted.Script{
		Interview: []scripted.Step{asks("Well?", "a", "b"), expecting(seeds(subTest), "my own words")},
		Worker:    []scripted.Step{work},
		Evaluator: []scripted.Step{calls("submit_verdict", map[string]any{"verdict": "accept"})},
	})
	p.git("config", "tilth.validator", "none=true")
	c := p.console("run")
	c.Expect("What should be built?", "> ")
	c.Send("subtraction\r")
	c.Expect("Well?", "> ")
	c.Send("my own words\r\r")
	takePlan(c)
	c.Expect("T-001  Add sub", "all_done")
	c.Ends(0)
	if c := p.checkpoint(); c.Status != session.AllDone || c.Usage.Interview.Calls != 2 {
		t.Errorf("status %s, %+v", c.Status, c.Usage)
	}
}

// A Ctrl-C in the editor belongs to the editor: the typed text is neither lost nor half applied.
func TestCtrlCInTheEditorOfASeed(t *testing.T) {
	p := newPlace(t)
	p.write("../one.md", "- [ ] Add sub\n")
	p.write("../edit.sh",
		"trap 'echo not so fast' INT\necho ready\nuntil read line; do :; done\nsed -i.bak s/Add/Learn/ \"$1\"\n")
	if out, code := p.try("git", "tilth", "prep", "--from", "../one.md"); code != 0 {
		t.Fatal(out)
	}
	p.env = append(p.env, "GIT_EDITOR=sh "+p.repo+"/../edit.sh")
	c := p.console("seed", "edit")
	c.Expect("ready")
	c.Send("\x03")
	c.Expect("not so fast")
	c.Send("\x03")
	c.Expect("not so fast")
	c.Send("go on\r")
	c.Expect("has a new seed of 1 task.")
	c.Ends(130) // git's own end; it waits for the program that it started
	if tasks, err := p.newest().Tasks(); err != nil || tasks[0].Title != "Learn sub" {
		t.Errorf("%+v %v", tasks, err)
	}
}

// On a terminal, control characters in a model's text are escaped in JSON too; otherwise the text is that of the
// record.
func TestJSONAtATerminal(t *testing.T) {
	p := newPlace(t)
	p.write("../one.md", "- [ ] Add sub\n")
	if out, code := p.try("git", "tilth", "prep", "--from", "../one.md"); code != 0 {
		t.Fatal(out)
	}
	says := `{"ts":"2026-06-11T22:05:00Z","type":"nudge","payload":{"content":"` + "\u009b31m\u202e" + `"}}`
	f, err := os.OpenFile(p.newest().Path(session.RecordFile), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(says + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	c := p.console("log", "--json", "--tail", "1")
	c.Expect(`{"content":"\u009b31m\u202e"}`)
	c.Ends(0)
	if out, _ := p.try("git", "tilth", "log", "--json", "--tail", "1"); strings.Contains(out, "\u009b") {
		t.Errorf("a pipe is given %q", out)
	}
}

// lastEvent is the newest event of a type.
func lastEvent(s *session.Session, typ string) (last record.Line, ok bool, err error) {
	_, _, err = record.Scan(s.Path(session.RecordFile), 0, func(l record.Line) error {
		if l.Type == typ {
			last, ok = record.Parse(bytes.Clone(l.Raw)), true
		}
		return nil
	})
	return last, ok, err
}
