package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
)

const seedMessage = `Here it is: {"prd_entries": [{"id": "T-001", "title": "Count", "description": "Count",
"acceptance_criteria": ["it counts"]}], "test_files": {"t001_count.sh": "exit 1\n"}, "tldr": "counts"}`

// interviewed holds an interview that is interrupted at each of its two questions and gone on with.
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
	person := &person{answers: []string{"", "all of them", "", "as tabs"}}
	var history []json.RawMessage
	for range 3 {
		b, err := seed.Interview(s.ctx, seed.Deps{
			Brief: "count things", Source: s.dir, History: history, Frontend: person, Sink: taking{},
			Model: &seed.Program{Program: s.program,
				Turn: agent.Turn{Dir: s.dir, Model: s.model, Env: s.env, Timeout: 2 * time.Minute,
					GitDir: s.git[0], CommonDir: s.git[1], Box: s.box.Reading(s.dir)}},
			ModelName: s.program.Name, Prompts: prompts, Now: time.Now,
			Transcript: func(m json.RawMessage) error { history = append(history, m); return nil },
			Emit:       func(record.Event) error { return nil },
			Spent:      func(session.RoleUsage) error { return nil },
		})
		switch {
		case err == nil && len(person.answers) > 0:
			return fmt.Errorf("it asked too little: %q was not asked for", person.answers)
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
		case !errors.Is(err, seed.ErrAborted):
			return err
		}
	}
	return errors.New("it came to no seed")
}

// person interrupts where there is no answer.
type person struct{ answers []string }

func (p *person) Ask(context.Context, seed.Question) (seed.Answer, error) {
	if len(p.answers) == 0 {
		return seed.Answer{}, errors.New("one question too many")
	}
	next := p.answers[0]
	p.answers = p.answers[1:]
	if next == "" {
		return seed.Answer{}, seed.ErrAborted
	}
	return seed.Answer{Text: next}, nil
}

func (p *person) Say(seed.SayKind, string) {}
func (p *person) Wait()                    {}
func (p *person) Usage(int64, float64)     {}
func (p *person) Done(*seed.Bundle)        {}

// taking takes every seed.
type taking struct{}

func (taking) Propose(context.Context, *seed.Bundle) ([]seed.Violation, error) { return nil, nil }

// state is what git says of a worktree.
func state(dir string) (string, error) {
	out, err := exec.Command("git", "-C", dir, "status", "--porcelain").Output()
	return string(out), err
}
