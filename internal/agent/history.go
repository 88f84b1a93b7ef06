package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Continuable tells why a conversation that was read back cannot be taken up, nil if it can be: one that has lost a
// part would be a request that makes no sense to the model, without its task, or that its endpoint refuses.
func Continuable(history []json.RawMessage) error {
	_, fault := unanswered(history)
	return fault
}

// unanswered lists the tool calls of a history that have no answer, in order, and tells what is missing besides. Some
// models give every turn's calls the same ids, so an answer closes the call that came before it, not all calls of that
// name.
func unanswered(history []json.RawMessage) (open []string, fault error) {
	first := func(err error) {
		if fault == nil {
			fault = err
		}
	}
	for i, raw := range history {
		m, ok := event(raw)
		role := m.Get("role").Str
		if !ok || role == "" {
			first(fmt.Errorf("its message %d is none", i+1))
		}
		if i == 0 && role != "system" || i == 1 && role != "user" {
			first(errBeheaded)
		}
		switch at := slices.Index(open, m.Get("tool_call_id").Str); {
		case role == "tool" && at < 0:
			first(fmt.Errorf("the call that its message %d answers is lost", i+1))
		case role == "tool":
			open = slices.Delete(open, at, at+1)
		}
		for _, id := range m.Get("tool_calls.#.id").Array() {
			open = append(open, id.Str)
		}
	}
	if len(history) < 2 {
		first(errBeheaded)
	}
	return open, fault
}

var errBeheaded = errors.New("its beginning is lost: it does not start with the system prompt and the task")
