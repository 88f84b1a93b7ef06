package loop

import (
	"embed"
	"strings"

	"github.com/git-tilth/git-tilth/internal/prompt"
	"github.com/git-tilth/git-tilth/internal/session"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// LoadPrompts reads the texts that worker and evaluator are given, and what dir ("" for none) replaces of them.
func LoadPrompts(dir string) (*prompt.Set, error) { return prompt.Load(builtinPrompts, dir) }

// PromptWords are what a worker is told of a task whatever the state of the session: the system prompt, and the lines
// of the task's prompt in their order.
func PromptWords(set *prompt.Set, t session.Task) (system string, lines []string, err error) {
	if system, err = set.Render("worker", nil); err != nil {
		return "", nil, err
	}
	user, err := set.Render("worker_task", newTaskContext(t))
	for line := range strings.Lines(user) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return system, lines, err
}
