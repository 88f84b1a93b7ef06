package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
)

func TestContinuable(t *testing.T) {
	const system, task = `{"role":"system","content":"s"}`, `{"role":"user","content":"t"}`
	const calls = `{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]}`
	const a, b = `{"role":"tool","tool_call_id":"a"}`, `{"role":"tool","tool_call_id":"b"}`
	for _, c := range []struct {
		name, want string
		history    []string
	}{
		{"whole", "", []string{system, task, calls, a, b, calls, a, b, task}},
		{"cut off before any answer", "", []string{system, task}},
		{"a call is not answered", "", []string{system, task, calls, b}},
		{"empty", "beginning is lost", nil},
		{"only a system prompt", "beginning is lost", []string{system}},
		{"no system prompt", "beginning is lost", []string{task, calls, a, b}},
		{"no task", "beginning is lost", []string{system, calls, a, b}},
		{"begins in the middle", "beginning is lost", []string{a, b, calls, a}},
		{"a part is lost", "message 3 answers a missing call", []string{system, task, a, b, calls}},
		{"answered twice", "message 5 answers a missing call", []string{system, task, calls, a, a}},
		{"another object", "message 3 is not valid", []string{system, task, `{"type":"x"}`}},
		{"no object", "message 1 is not valid", []string{`5`}},
	} {
		var history []json.RawMessage
		for _, m := range c.history {
			history = append(history, json.RawMessage(m))
		}
		err := Continuable(history)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestUnansweredCalls(t *testing.T) {
	call := func(ids ...string) string {
		var calls []string
		for _, id := range ids {
			calls = append(calls, `{"id":"`+id+`"}`)
		}
		return `{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	answer := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `"}` }
	for _, c := range []struct {
		name    string
		history []string
		open    string
	}{
		{"none", []string{`{"role":"user","content":"x"}`}, ""},
		{"all answered", []string{call("a", "b"), answer("a"), answer("b")}, ""},
		{"the last", []string{call("a", "b", "c"), answer("a")}, "b c"},
		{"ids used again in each turn", []string{call("0", "1"), answer("0"), answer("1"), call("0", "1"), answer("0")},
			"1"},
		{"a line that is torn", []string{call("a"), `{"role":`}, "a"},
	} {
		var history []json.RawMessage
		for _, m := range c.history {
			history = append(history, json.RawMessage(m))
		}
		open, _ := unanswered(history)
		if got := strings.Join(open, " "); got != c.open {
			t.Errorf("%s: %q, want %q", c.name, got, c.open)
		}
	}
}

// All tool calls of an answer run, until the time is up.
func TestToolCallsOfOneAnswer(t *testing.T) {
	box, late := &countingBox{}, errors.New("out of time")
	reply := &model.Reply{Message: json.RawMessage(`{"role":"assistant"}`)}
	for i := range 200 {
		reply.ToolCalls = append(reply.ToolCalls, model.ToolCall{ID: strconv.Itoa(i), Name: "bash", Arguments: "{}"})
	}
	answers := 0
	b := &Worker{
		Ask: func(context.Context, model.Request) (*model.Reply, error) { return reply, nil },
		Box: box, Final: "submit",
		Emit: func(record.Event) error { return nil },
		Transcript: func(m json.RawMessage) error {
			if strings.Contains(string(m), `"tool_call_id"`) {
				answers++
			}
			return nil
		},
	}
	if _, err := b.Turn(t.Context()); err != nil || box.ran != 200 || answers != 200 {
		t.Errorf("%d calls ran, %d were answered: %v", box.ran, answers, err)
	}
	box.ran = 0
	b.Allow = func() error {
		if box.ran == 3 {
			return late
		}
		return nil
	}
	if _, err := b.Turn(t.Context()); !errors.Is(err, late) || box.ran != 3 {
		t.Errorf("%d calls ran: %v", box.ran, err)
	}
}

type countingBox struct{ ran int }

func (b *countingBox) Call(context.Context, string, string) ToolAnswer {
	b.ran++
	return ToolAnswer{Output: "ok"}
}
