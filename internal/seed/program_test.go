package seed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestProgramIsToldAnswersWhole: the prompt of a program has tool results cut, and the user's answers in full.
func TestProgramIsToldAnswersWhole(t *testing.T) {
	message := func(tool string) []json.RawMessage {
		return []json.RawMessage{
			json.RawMessage(fmt.Sprintf(`{"role": "assistant", "content": null, "tool_calls": [{"id": "call-1",`+
				` "type": "function", "function": {"name": %q, "arguments": "{}"}}]}`, tool)),
			json.RawMessage(fmt.Sprintf(`{"role": "tool", "tool_call_id": "call-1", "content": %q}`,
				strings.Repeat("word ", maxToolAnswers)+"the end")),
		}
	}
	for tool, whole := range map[string]bool{askTool: true, writeTool: true, "read_file": false} {
		if got := strings.Contains(transcriptText(message(tool)), "the end"); got != whole {
			t.Errorf("the answer of %s stands whole: %v, want %v", tool, got, whole)
		}
	}
}
