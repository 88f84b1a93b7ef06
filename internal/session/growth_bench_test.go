package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkTaskEnd measures writing a session's files at the end of a task, by the number of tasks.
func BenchmarkTaskEnd(b *testing.B) {
	for _, n := range []int{20, 200} {
		s := newSession(b)
		cp := &Checkpoint{SessionID: testID, Status: Running}
		var tasks []Task
		var record strings.Builder
		for i := range n {
			id := fmt.Sprintf("T-%03d", i+1)
			tasks = append(tasks, Task{ID: id, Title: "a title of some words",
				Description:        strings.Repeat("why and how ", 20),
				AcceptanceCriteria: []string{"it works", "it is tested"}})
			must(b, cp.SetConversation(id, &Conversation{Agent: "claude", ID: id, Cwd: s.Workspace(),
				Attempts: []Attempt{{Started: "a", Turns: 3, Cost: 0.25}}}))
			fmt.Fprintf(&record, `{"ts":"2026-06-01T10:00:00.000Z","type":"model_call","payload":{"task_id":%q,"iter":1,"prompt_tokens":10,"eval_tokens":5}}`+"\n", id)
		}
		write(b, s.Path(RecordFile), record.String())
		text, _ := json.Marshal(tasks)
		write(b, s.Path(TasksFile), string(text))
		tasks, err := s.Tasks()
		must(b, err)
		b.Run(fmt.Sprintf("%d/checkpoint", n), func(b *testing.B) {
			for b.Loop() {
				must(b, cp.SetConversation("T-007", &Conversation{Agent: "claude", ID: "x"}))
				_, err := encode(cp, nil)
				must(b, err)
			}
		})
		b.Run(fmt.Sprintf("%d/tasks", n), func(b *testing.B) {
			for b.Loop() {
				_, err := FormatTasks(tasks)
				must(b, err)
			}
		})
		b.Run(fmt.Sprintf("%d/summary", n), func(b *testing.B) {
			for b.Loop() {
				must(b, s.WriteSummary())
			}
		})
	}
}
