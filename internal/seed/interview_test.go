package seed

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// fullScript is the interview of the contract: two rounds of reading, a menu, a
// free question, a refused bundle, a good one.
func fullScript(t testing.TB) []scripted.Step {
	return []scripted.Step{
		step(call(t, "glob", map[string]any{"pattern": "**/*.py"}),
			call(t, "read_file", map[string]any{"path": "calc.py"})),
		{Content: "Looking at callers.", Reasoning: "hm",
			Tools:  []scripted.Tool{call(t, "grep", map[string]any{"pattern": "def "})},
			Expect: scripted.Strings{"return a + b"}},
		step(ask(t, "What about floats?", "integers only", "floats too")),
		{Tools: []scripted.Tool{ask(t, "What should sub(\"a\", 1) do?")}, Expect: scripted.Strings{"floats too"}},
		{
			Tools: []scripted.Tool{
				writeSeed(t, 2, func(b map[string]any) { delete(b["test_files"].(map[string]any), testPath(2)) }),
			},
			Expect: scripted.Strings{"raise TypeError"},
		},
		{Tools: []scripted.Tool{writeSeed(t, 2, nil)}, Expect: scripted.Strings{"task-without-test", "T-002"}},
	}
}

func TestInterviewThroughAPipe(t *testing.T) {
	r := newRig(t, "2\nraise TypeError\n", fullScript(t)...)
	b, err := r.run()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
memory_load
prompt_assembled
model_call
tool_call glob
tool_result glob
tool_call read_file
tool_result read_file
model_call
tool_call grep
tool_result grep
model_call
tool_call ask_user
tool_result ask_user
model_call
tool_call ask_user
tool_result ask_user
model_call
tool_call write_seed
tool_result write_seed
model_call
tool_call write_seed
tool_result write_seed`)
	if got := r.types(); got != want {
		t.Errorf("events:\n%s", got)
	}
	if len(b.Tasks) != 2 || b.Meta.Tokens != 720 || r.spent.Total() != 720 || r.spent.Calls != 6 {
		t.Errorf("%+v, spent %+v", b.Meta, r.spent)
	}
	s := &session.Session{Dir: r.sess}
	if meta, err := s.SeedMeta(); err != nil || meta.Tokens != 720 || meta.InterviewerModel != "scripted" ||
		meta.StartedAt == "" ||
		meta.EndedAt == "" {
		t.Errorf("%+v %v", meta, err)
	}
	roles, _ := transcriptRoles(t, r.sess)
	wantRoles := "system user assistant tool" + strings.Repeat(" tool assistant", 5) + " tool"
	if got := strings.Join(roles, " "); got != wantRoles {
		t.Error(got)
	}
	out := r.out.String()
	for _, s := range []string{"1. integers only", "3. other", "> 2. floats too", "> raise TypeError",
		"read_file calc.py",
		"Looking at callers.", "refused: task-without-test",
		"720 tokens", "2 tasks", "T-001  Add part 1  (1 criterion, 1 test file)", "no floats"} {
		if !strings.Contains(out, s) {
			t.Errorf("%q is not shown:\n%s", s, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours in a pipe")
	}
}

func TestInterviewAnswersEveryCall(t *testing.T) {
	// The endpoint refuses a history with a call that has no answer, so that
	// getting through is the assertion.
	r := newRig(
		t,
		"first\nsecond\n",
		step(ask(t, "One?"), ask(t, "Two?"), writeSeed(t, 1, nil)),
		scripted.Step{
			Tools: []scripted.Tool{
				call(t, "read_file", "{broken"),
				call(t, "rm", map[string]any{}),
				call(t, askTool, "[]"),
				call(t, askTool, `{"question":5}`),
				call(t, writeTool, "5"),
			},
			Expect: scripted.Strings{"first", "Not run: a turn has one question"},
			Forbid: scripted.Strings{"second"},
		},
		scripted.Step{
			Tools: []scripted.Tool{call(t, askTool, map[string]any{"question": "Three?", "options": "x"}),
				ask(t, " ")},
			Expect: scripted.Strings{"Not asked: give {"},
		},
		scripted.Step{Tools: []scripted.Tool{call(t, writeTool, "5"), writeSeed(t, 1, nil)},
			Expect: scripted.Strings{"Not asked: give {"}},
		scripted.Step{
			Tools: []scripted.Tool{writeSeed(t, 1, nil), writeSeed(t, 2, nil),
				call(t, "glob", map[string]any{"pattern": "*"})},
			Expect: scripted.Strings{"Not run: a turn has one question or one seed"},
		},
	)
	b, err := r.run()
	if err != nil || len(b.Tasks) != 1 {
		t.Fatalf("%v\n%s", err, r.types())
	}
	_, text := transcriptRoles(t, r.sess)
	if !strings.Contains(text, "the interview is over") {
		t.Error("calls behind the seed are not answered")
	}
}

func TestInterviewNudges(t *testing.T) {
	r := newRig(t, "", scripted.Step{Content: "Hello."},
		scripted.Step{Content: "Well.", Expect: scripted.Strings{"ask_user"}}, step(writeSeed(t, 1, nil)))
	if _, err := r.run(); err != nil {
		t.Fatal(err)
	}
	if got := r.types(); !strings.HasPrefix(
		got,
		"memory_load\nprompt_assembled\n"+
			"model_call\nnudge no_tool_call\nmodel_call\nnudge no_tool_call\nmodel_call\ntool_call",
	) {
		t.Error(got)
	}
	if !strings.Contains(r.out.String(), "Hello.") {
		t.Error("the model's words are not shown")
	}
}

var errRefused = errors.New("a RefusedError")

func TestInterviewEndsWithoutASeed(t *testing.T) {
	cases := []struct {
		name    string
		answers string
		change  func(d *Deps)
		steps   []scripted.Step
		is      error
	}{
		{"three turns of text", "", nil, []scripted.Step{{Content: "a", Repeat: -1}}, ErrGaveUp},
		{"too many turns", "", nil,
			[]scripted.Step{{Tools: []scripted.Tool{call(t, "glob", map[string]any{"pattern": "*"})}, Repeat: -1}},
			ErrIterations},
		{
			"a bundle refused for ever",
			"",
			nil,
			[]scripted.Step{
				{Tools: []scripted.Tool{writeSeed(t, 1, func(b map[string]any) { first(b)["id"] = "T-1" })},
					Repeat: -1},
			},
			errRefused,
		},
		{"no answers left", "one\n", nil, []scripted.Step{{Tools: []scripted.Tool{ask(t, "Q?")}, Repeat: -1}},
			ErrAnswers},
		{"no answers at all", "", nil, []scripted.Step{{Tools: []scripted.Tool{ask(t, "Q?", "a", "b")}, Repeat: -1}},
			ErrAnswers},
		{"a refused key", "", nil, []scripted.Step{{Status: 401, Repeat: -1}}, nil},
		{"empty answers for ever", "", nil, []scripted.Step{{Empty: true, Repeat: -1}}, nil},
		{"a full disk", "",
			func(d *Deps) { d.Propose = func(context.Context, *Bundle) ([]Violation, error) { return nil, errDisk } },
			[]scripted.Step{step(writeSeed(t, 1, nil))}, errDisk},
		{"a record that cannot be written", "", func(d *Deps) { d.Emit = func(record.Event) error { return errDisk } },
			[]scripted.Step{step(writeSeed(t, 1, nil))}, errDisk},
		{"a transcript that cannot be written", "",
			func(d *Deps) { d.Transcript = func(json.RawMessage) error { return errDisk } }, nil, errDisk},
		{"usage that cannot be saved", "", func(d *Deps) { d.Spent = func(session.RoleUsage) error { return errDisk } },
			[]scripted.Step{step(writeSeed(t, 1, nil))}, errDisk},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.answers, c.steps...)
			if c.change != nil {
				c.change(&r.deps)
			}
			_, err := r.run()
			refused := c.is == errRefused && errors.As(err, new(*RefusedError))
			if err == nil || c.is != nil && !errors.Is(err, c.is) && !refused {
				t.Fatalf("%v", err)
			}
			if c.is == nil {
				var f *model.Failure
				if !errors.As(err, &f) {
					t.Errorf("%v", err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			noBundle(t, r.sess)
		})
	}
}

var errDisk = errors.New("no space left on device")

func TestInterviewCountsSixtyTurns(t *testing.T) {
	r := newRig(t, "",
		scripted.Step{Tools: []scripted.Tool{call(t, "glob", map[string]any{"pattern": "*"})}, Repeat: -1})
	if _, err := r.run(); !errors.Is(err, ErrIterations) || r.spent.Calls != 60 {
		t.Errorf("%v after %d calls", err, r.spent.Calls)
	}
}

func TestInterviewRetriesUnhealthyAnswers(t *testing.T) {
	r := newRig(
		t,
		"",
		scripted.Step{Empty: true, Repeat: 2},
		scripted.Step{Status: 503},
		scripted.Step{Error: json.RawMessage(`{"message":"overloaded"}`)},
		step(writeSeed(t, 1, nil)),
	)
	if _, err := r.run(); err != nil {
		t.Fatal(err)
	}
	want := "memory_load\nprompt_assembled\n" +
		"model_call empty\nempty_model_response\nagent_waits\nmodel_call empty\nempty_model_response\nagent_waits\n" +
		"model_call http\nagent_waits\nmodel_call error_object\nempty_model_response\nagent_waits\n" +
		"model_call\ntool_call write_seed\ntool_result write_seed"
	if got := r.types(); got != want {
		t.Error(got)
	}
	var p struct{ Attempt, Iter int }
	if err := json.Unmarshal(r.events[13].Payload, &p); err != nil || p.Attempt != 5 || p.Iter != 1 {
		t.Errorf("%+v %v", p, err)
	}
	if roles, _ := transcriptRoles(t, r.sess); len(roles) != 4 {
		t.Errorf("an unhealthy answer is in the history: %v", roles)
	}
}

func TestInterviewRecordsItsPrompt(t *testing.T) {
	r := newRig(t, "", step(writeSeed(t, 1, nil)))
	r.deps.Brief = "build docs/spec.md"
	if _, err := r.run(); err != nil {
		t.Fatal(err)
	}
	var load record.MemoryLoad
	var prompt record.PromptAssembled
	err := errors.Join(json.Unmarshal(r.events[0].Payload, &load), json.Unmarshal(r.events[1].Payload, &prompt))
	if err != nil || load.Role != "interview" || load.Iter != 1 || load.UserPromptChars == 0 ||
		!load.Channels["brief"].Present || load.Channels["project"].Present {
		t.Errorf("%+v %v", load, err)
	}
	if prompt.Role != "interview" || prompt.Iter != 1 || !strings.Contains(prompt.Content, "build docs/spec.md") {
		t.Errorf("%+v", prompt)
	}
}

func TestPromptsCanBeReplaced(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "interview.md"), "You are terse.")
	r := newRig(
		t,
		"",
		scripted.Step{Tools: []scripted.Tool{writeSeed(t, 1, nil)},
			Expect: scripted.Strings{"You are terse.", "add subtraction"}},
	)
	r.deps.Prompts = prompts(t, dir)
	if _, err := r.run(); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "interview_task.md"), "{{.Brief")
	if _, err := LoadPrompts(dir); err == nil {
		t.Error("a broken prompt was taken")
	}
}

func TestAnEventHoldsNoMoreThanItMay(t *testing.T) {
	r := newRig(t, "",
		step(writeSeed(t, 1, func(b map[string]any) { b["tldr"] = strings.Repeat("y", 2*record.MaxText) })),
		step(writeSeed(t, 1, nil)))
	if _, err := r.run(); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.events {
		if len(e.Payload) > record.MaxText+200 {
			t.Errorf("%s is %d bytes long", e.Type, len(e.Payload))
		}
	}
	if _, script := transcriptRoles(t, r.sess); !strings.Contains(script, strings.Repeat("y", 2*record.MaxText)) {
		t.Error("the transcript does not have all of it")
	}
}

func TestACostThatNobodyToldIsNull(t *testing.T) {
	r := newRig(t, "", step(writeSeed(t, 1, nil)))
	if _, err := r.run(); err != nil {
		t.Fatal(err)
	}
	if p := string(r.events[2].Payload); !strings.Contains(p, `"cost":null`) {
		t.Error(p)
	}
}

func TestTheTranscriptIsAsWritten(t *testing.T) {
	r := newRig(t, "a < b & c\n", step(ask(t, "Which <one>?")), step(writeSeed(t, 1, nil)))
	r.deps.Brief = "add <subtraction> & more"
	if _, err := r.run(); err != nil {
		t.Fatal(err)
	}
	_, script := transcriptRoles(t, r.sess)
	for _, want := range []string{`add <subtraction> & more`, `{"content":"a < b & c","role":"tool","tool_call_id":"`} {
		if !strings.Contains(script, want) {
			t.Errorf("%q is not in the transcript", want)
		}
	}
}

func TestTheToolsAreOneList(t *testing.T) {
	r := newRig(t, "", scripted.Step{Content: "a", Repeat: -1})
	if _, err := r.run(); !errors.Is(err, ErrGaveUp) {
		t.Fatal(err)
	}
	names := gjson.GetBytes(r.server.Requests()[0].Body, "tools.#.function.name").String()
	if names != `["read_file","glob","grep","ask_user","write_seed"]` {
		t.Errorf("tools %s", names)
	}
}
