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
	var open []string
	for i, raw := range history {
		var m struct {
			Role       string `json:"role"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		}
		if json.Unmarshal(raw, &m) != nil || m.Role == "" {
			return fmt.Errorf("its message %d is none", i+1)
		}
		if i == 0 && m.Role != "system" || i == 1 && m.Role != "user" {
			return errBeheaded
		}
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Errorf("the call that its message %d answers is lost", i+1)
			}
			open = slices.Delete(open, at, at+1)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(history) < 2 {
		return errBeheaded
	}
	return nil
}

var errBeheaded = errors.New("its beginning is lost: it does not start with the system prompt and the task")
