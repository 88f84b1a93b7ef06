package loop

import (
	"fmt"

	"github.com/git-tilth/git-tilth/internal/record"
)

// noCase returns the end of a task whose worker neither uses tools nor hands in.
func noCase(turns int, last turn) Stop {
	s := Stop{Reason: record.NoCase, Detail: fmt.Sprintf("%d turns in a row %s", turns, nudges[last.nudge].detail)}
	if last.why != "" {
		s.Detail += ": " + last.why
	}
	if last.noTools != "" {
		s.Detail += ": " + last.noTools + " does not call tools"
		s.Hint = "echo 'which model, that calls tools?' && read -r TILTH_WORKER_MODEL && export TILTH_WORKER_MODEL"
	}
	return s
}

// nudge is the recorded reason for asking a worker to continue.
type nudge string

const (
	nudgeSilent  nudge = "silent"     // neither a tool call nor a hand-in
	nudgeMessage nudge = "no_message" // an agent program ended without a final message
	nudgeTime    nudge = "time_limit" // the time limit ended the program's turn
	// nudgeUnfinished: the agent ended its turn and reported why the task is not done.
	nudgeUnfinished nudge = "unfinished"
)

// nudges has the prompt of each nudge, and the words of the stop after too many nudges.
var nudges = map[nudge]struct{ prompt, detail string }{
	nudgeSilent:     {"nudge", "without a tool call or a hand-in"},
	nudgeMessage:    {"nudge_message", "without a final message"},
	nudgeTime:       {"nudge_time", "that did nothing before the time limit (tilth.turnTimeout)"},
	nudgeUnfinished: {"nudge_unfinished", "ended before the task was done"},
}

func (a *attempt) nudge(t turn, streak int) error {
	text, err := a.run.o.Prompts.Render(nudges[t.nudge].prompt,
		map[string]any{"Limit": a.run.o.Limits.Turn, "Why": t.why})
	if err != nil {
		return err
	}
	if err := a.emit(&record.Nudge{Kind: string(t.nudge), Streak: streak, Content: text}); err != nil {
		return err
	}
	return a.answer(text)
}
