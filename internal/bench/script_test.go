//go:build bench

package bench

import (
	"encoding/json"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// step is an answer with one tool call.
func step(tool string, args map[string]any) scripted.Step {
	data, _ := json.Marshal(args) // strings only
	return scripted.Step{Tools: []scripted.Tool{{Name: tool, Args: data}}}
}

func readStep(path string) scripted.Step { return step("read_file", map[string]any{"path": path}) }

func writeStep(path, text string) scripted.Step {
	return step("write_file", map[string]any{"path": path, "content": text})
}

func caseStep() scripted.Step {
	return step("submit_case", map[string]any{
		"summary": "Write the file.",
		"ac_coverage": []map[string]string{
			{"criterion": "it is there", "addressed_by": "the file", "evidence": "it was written"}},
		"work_arounds": []string{}, "uncertainties": []string{},
	})
}

func acceptStep() scripted.Step {
	s := step("submit_verdict", map[string]any{
		"verdict": "accept", "rejection_category": nil, "concern": nil, "evidence": []string{}, "next_step": nil,
	})
	s.Repeat = -1
	return s
}

// writtenName is the file that the worker writes for the nth task.
func writtenName(n int) string { return fmt.Sprintf("written-%03d.txt", n) }
