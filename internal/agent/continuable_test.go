package agent

import (
	"encoding/json"
	"strings"
	"testing"
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
		{"a part is lost", "the call that its message 3 answers is lost", []string{system, task, a, b, calls}},
		{"answered twice", "the call that its message 5 answers is lost", []string{system, task, calls, a, a}},
		{"another object", "its message 3 is none", []string{system, task, `{"type":"x"}`}},
		{"no object", "its message 1 is none", []string{`5`}},
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
