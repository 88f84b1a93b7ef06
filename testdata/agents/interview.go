package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

const seedMessage = `Here it is: {"prd_entries": [{"id": "T-001", "title": "Count", "description": "Count",
"acceptance_criteria": ["it counts"]}], "test_files": {"t001_count.sh": "exit 1\n"}, "tldr": "counts"}`

// interviewed runs an interview that is interrupted at each of its two questions and continued.
func interviewed(s *scene) error {
	prompts, err := seed.LoadPrompts("")
	if err != nil {
		return err
	}
	s.stub.play(func(_ int, body string) answer {
		switch {
		case strings.Contains(body, "as tabs"):
			return answer{text: seedMessage}
		case strings.Contains(body, "all of them"):
			return answer{text: `{"question": "As what?", "notes": "there is nothing here yet"}`}
		}
		return answer{text: `{"question": "Which ones?", "options": ["all of them", "some"], "notes": ""}`}
	})
	before, err := state(s.dir)
	if err != nil {
		return err
	}
	box, err := agent.OpenTools(s.dir, agent.ToolOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer box.Close()
	var history []json.RawMessage
	typed := []string{"", "all of them\n", "as tabs\n"} // each ends at the next question
	for i, answers := range typed {
		terminal := seed.NewTerminal(text.NewLines(strings.NewReader(answers)), io.Discard, view.Terminal{}, false)
		b, err := seed.Interview(s.ctx, seed.Deps{
			Brief: "count things", Source: s.dir, History: history, Tools: box, Terminal: terminal,
			Propose: func(context.Context, *seed.Bundle) ([]seed.Violation, error) { return nil, nil },
			Program: s.program,
			Turn: agent.Turn{Dir: s.dir, Model: s.model, Env: s.env, Timeout: 2 * time.Minute,
				GitDir: s.git[0], CommonDir: s.git[1], Box: s.box.Reading(s.dir)},
			ModelName: s.program.Name, Prompts: prompts, Now: time.Now,
			Transcript: func(m json.RawMessage) error { history = append(history, m); return nil },
			Emit:       func(record.Event) error { return nil },
			Spent:      func(session.RoleUsage) error { return nil },
		})
		switch {
		case err == nil && i < len(typed)-1:
			return fmt.Errorf("it asked too little: %q was not asked for", typed[i+1:])
		case err == nil && (len(b.Tasks) != 1 || b.Tasks[0].Title != "Count"):
			return fmt.Errorf("it came to %+v", b.Tasks)
		case err == nil:
			if n := len(s.stub.requests()); n != 3 {
				return fmt.Errorf("the model was asked %d times: what was answered is not asked again", n)
			}
			after, err := state(s.dir)
			if err == nil && after != before {
				err = errors.New("it changed the tree: " + after)
			}
			return err
		case !errors.Is(err, seed.ErrAborted) && !errors.Is(err, seed.ErrAnswers):
			return err
		}
	}
	return errors.New("it came to no seed")
}

// state returns git's status of a worktree.
func state(dir string) (string, error) {
	out, err := exec.Command("git", "-C", dir, "status", "--porcelain").Output()
	return string(out), err
}
