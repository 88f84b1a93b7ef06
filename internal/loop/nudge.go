package loop

import (
	"fmt"

	"github.com/git-tilth/git-tilth/internal/record"
)

// noCase is the end of a task with a worker that neither uses tools nor hands in.
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

// nudge is why a worker is asked to go on, as the record has it.
type nudge string

const (
	nudgeSilent  nudge = "silent"     // neither tool nor case
	nudgeMessage nudge = "no_message" // an agent program ended without a final message
	nudgeTime    nudge = "time_limit" // an agent program was ended at the turn's time limit
	// nudgeUnfinished is for an agent that ended its turn and said why it is not done.
	nudgeUnfinished nudge = "unfinished"
)

// nudges are their prompts, and how it is said that there were too many.
var nudges = map[nudge]struct{ prompt, detail string }{
	nudgeSilent:     {"nudge", "without a tool or a case"},
	nudgeMessage:    {"nudge_message", "without a final message"},
	nudgeTime:       {"nudge_time", "in which nothing was done before the time limit (tilth.turnTimeout)"},
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
