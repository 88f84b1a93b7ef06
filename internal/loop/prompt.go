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

// Words are what a worker is told of a task: the system prompt; the lines of the task's prompt that stand in it
// whatever the state of the session, in their order; and all that may stand in it from the task's heading to that of
// the ledger, with Gap for what is known only then.
type Words struct {
	System     string
	Lines, May []string
}

// Gap stands for what depends on the state of a session.
const Gap = "\x00"

// PromptWords renders the prompts for a task without a session.
func PromptWords(set *prompt.Set, t session.Task) (w Words, err error) {
	if w.System, err = set.Render("worker", nil); err != nil {
		return w, err
	}
	least, most := newTaskContext(t), newTaskContext(t)
	most.Tests, most.Later, most.Partial = []string{Gap}, []string{Gap}, true
	most.Aside, most.Refused, most.Ledger = Gap, Gap, Gap
	if w.Lines, err = renderLines(set, least); err == nil {
		w.May, err = renderLines(set, most)
	}
	return w, err
}

// renderLines is the task's prompt without lines in which nothing is said.
func renderLines(set *prompt.Set, c taskContext) (lines []string, err error) {
	user, err := set.Render("worker_task", c)
	for line := range strings.Lines(user) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" && line != Gap {
			lines = append(lines, line)
		}
	}
	return lines, err
}
