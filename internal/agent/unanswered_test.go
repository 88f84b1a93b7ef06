package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

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
		{"ids used again in each turn", []string{call("0", "1"), answer("0"), answer("1"), call("0", "1"), answer("0")}, "1"},
		{"a line that is torn", []string{call("a"), `{"role":`}, "a"},
	} {
		var history []json.RawMessage
		for _, m := range c.history {
			history = append(history, json.RawMessage(m))
		}
		if open := strings.Join(unanswered(history), " "); open != c.open {
			t.Errorf("%s: %q, want %q", c.name, open, c.open)
		}
	}
}
