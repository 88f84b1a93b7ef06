package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Line returns an event as one line, the same in all views, and its style by kind and outcome. The text is untrusted;
// the caller must escape it.
func Line(ev record.Event, payload []byte) (style, line string) {
	switch ev := ev.(type) {
	case *record.SessionStart:
		phase := ev.Phase
		if ev.ForkedFrom != "" {
			phase = joined(" ", phase, "of", ev.ForkedFrom, "at", ev.At)
		}
		return bold, joined(" ", phase, "in", ev.Source)
	case *record.SessionResume:
		if last := deref(ev.LastStop); last != "" {
			return bold, "after " + last + ": " + ev.Plan
		}
		return bold, ev.Plan // the previous run was killed, or this is the first
	case *record.MemoryLoad:
		return byRole(ev.Role), text.Plural(ev.UserPromptChars, "character")
	case *record.PromptAssembled:
		return byRole(ev.Role), ev.Role + ", " + text.Plural(ev.Chars, "character")
	case *record.ModelCall:
		return byRole(ev.Phase), modelLine(ev)
	case *record.Nudge:
		return yellow, "nudged: " + cmp.Or(nudgeWords[ev.Kind], ev.Kind+": "+ev.Content)
	case *record.ToolCall:
		return cyan, ev.Tool + " " + argsLine(ev.Args)
	case *record.ToolResult:
		return cyan, ev.Tool + " " + text.Plural(ev.Chars, "character") + ": " + ev.Preview
	case *record.PreToolBlock:
		return red, ev.Tool + " blocked: " + ev.Reason
	case *record.ValidatorRun:
		return validatorLine(ev)
	case *record.Preflight:
		if !ev.Passed {
			return red, PreflightLine(ev)
		}
		return plain, PreflightLine(ev)
	case *record.BuildProducts:
		return plain, "left out of commits: " + strings.Join(ev.LeftOut, ", ")
	case *record.CaseParseError:
		return red, "case parse error: " + ev.Error
	case *record.EvaluatorParseError:
		return red, "evaluator parse error: " + ev.Error
	case *record.EvaluatorVerdict:
		return verdictLine(ev)
	case *record.AgentSession:
		return bold, joined("  ", ev.Role, ev.Agent, ev.How, ev.Conversation, ev.Why)
	case *record.AgentWaits:
		return yellow, WaitLine(ev)
	case *record.TaskMarked:
		if ev.Mark == "kept" {
			return bold, "done: " + ev.Note
		}
		return bold, joined(": ", ev.Mark+" by you", ev.Note)
	case *record.TaskDone:
		return green, ev.Summary
	case *record.TaskFailed:
		return red, "FAILED: " + joined(": ", ev.Reason+inBrackets(ev.Detail), ev.Objection)
	case *record.Commit:
		switch {
		case ev.Aside != "":
			return red, "partial work stashed in " + ev.Aside
		case ev.Placeholder:
			return red, "partial work kept in " + text.Head(ev.SHA, 10)
		}
		return green, "done, commit " + text.Head(ev.SHA, 10)
	case *record.ProposedLearnings:
		if ev.Emitted && ev.Entry != nil {
			return bold, "learned: " + *ev.Entry
		}
		return plain, joined(": ", "learned nothing", ev.Reason)
	case *record.SessionRewound:
		return bold, joined(": ", "to "+ev.To+", undo "+strconv.Itoa(ev.Undo), ev.Note)
	case *record.LogRepaired:
		says := strings.Trim(ev.File+" "+ev.Why+ev.What+", "+ev.Done, ", ")
		return yellow, "repaired: " + cmp.Or(says, "the record")
	case *record.Stop:
		return stopStyle(ev.Reason), joined(": ", ev.Reason, ev.Detail, ev.Error)
	}
	return bold, membersLine(payload)
}

func byRole(role string) string {
	if role == "" || role == "worker" {
		return blue
	}
	return purple
}

// verdictOf returns accept or reject, whichever way the record has it.
func verdictOf(ev *record.EvaluatorVerdict) string {
	if ev.Accepted() {
		return "accept"
	}
	return "reject"
}

// Healthy reports whether a model call has an answer or was ended by a signal, which the end of the run reports.
func Healthy(call *record.ModelCall) bool {
	return slices.Contains([]string{"", "ok", "completed", record.Interrupted}, call.Health)
}

func modelLine(ev *record.ModelCall) string {
	if !Healthy(ev) {
		line := "model: "
		if ev.Phase == record.RoleSelfImprove {
			line = "learnings call failed: "
		}
		if ev.Health == record.HealthCut {
			line += joined(": ", ev.Health, ev.Error)
		} else {
			line += cmp.Or(ev.Error, ev.Health)
		}
		if wait := deref(ev.WaitSeconds); wait > 0 {
			line += fmt.Sprintf(" (retry in %.0f s)", wait)
		}
		return line
	}
	cost := ""
	if c := deref(ev.Cost); c > 0 {
		cost = Money(c)
	}
	tokens := Count(ev.PromptTokens) + " → " + Count(ev.EvalTokens)
	if ev.CachedTokens > 0 {
		tokens += " (" + Count(ev.CachedTokens) + " cached)"
	}
	return joined("  ", cmp.Or(ev.Phase, "worker"), tokens, cost, ev.Content)
}

// verdictLine returns a verdict with its author and objection.
func verdictLine(ev *record.EvaluatorVerdict) (style, line string) {
	style = yellow
	if ev.Accepted() {
		style = green
	}
	who := map[string]string{record.ByHarness: "git-tilth", record.ByPerson: "you"}
	line = cmp.Or(who[ev.By], "reviewer") + ": " + verdictOf(ev) + inBrackets(deref(ev.RejectionCategory))
	if !ev.Accepted() {
		line = record.WithNext(joined(": ", line, deref(ev.Concern)), deref(ev.NextStep))
	}
	return style, line
}

// nudgeWords are the faults of a turn that was answered with a nudge.
var nudgeWords = map[string]string{
	"silent": "no tool call and no hand-in", "no_message": "no final message",
	"time_limit": "turn reached its time limit", "unfinished": "turn ended before the task was done",
}

// WaitLine returns the line for a wait: the agent, the end of the wait, how to stop it, and the reason.
func WaitLine(w *record.AgentWaits) string {
	if w.Attempt == 0 {
		return w.Who + " is waiting: " + w.Detail
	}
	return fmt.Sprintf("%s: waiting until %s; Ctrl-C stops%s", waitsFor(w),
		record.ParseTime(w.Until).Local().Format("2006-01-02 15:04:05"), inBrackets(w.Detail))
}

// WaitLeft returns the agent that does not answer, and the rest of the wait.
func WaitLeft(w *record.AgentWaits, now time.Time) string {
	if w.Attempt == 0 {
		return WaitLine(w)
	}
	return waitsFor(w) + ": " + Span(max(record.ParseTime(w.Until).Sub(now), 0)) + " left"
}

func waitsFor(w *record.AgentWaits) string {
	if w.Reason == record.UsageLimit {
		return w.Who + " is at its usage limit"
	}
	return w.Who + " does not answer"
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func argsLine(args []byte) string {
	said, _ := argument(args)
	return cmp.Or(said, string(args[:min(len(args), maxLine)]))
}

func ran(r record.ValidatorResult) bool { return !r.Skipped }

func validatorLine(ev *record.ValidatorRun) (style, line string) {
	style, line = red, "validators failed: "
	switch {
	case len(ev.Results) == 0:
		style, line = yellow, cmp.Or(ev.Note, "NOT checked: no validators")
	case ev.Passed && !slices.ContainsFunc(ev.Results, ran):
		style, line = yellow, "no validator ran: "
	case ev.Passed && slices.ContainsFunc(ev.Results, func(r record.ValidatorResult) bool { return r.Known }):
		style, line = yellow, "no new failures: "
	case ev.Passed:
		style, line = green, "validators passed: "
	}
	var parts []string
	why := ""
	for _, r := range ev.Results[:min(len(ev.Results), 50)] {
		word := "ok"
		switch {
		case r.Skipped:
			word = "skipped"
		case r.Known:
			word = "known to fail"
		case !r.Passed:
			word, why = "FAILED", cmp.Or(why, r.Cause())
		}
		parts = append(parts, r.Name+" "+word)
	}
	line = joined(": ", line+strings.Join(parts, ", "), why)
	for _, doubt := range ev.Doubts() {
		line += "; " + oneLine(doubt)
	}
	return style, line
}

// PreflightLine lists the validators that were found, those that can run, and the other findings.
func PreflightLine(e *record.Preflight) string {
	var able, others []string
	for _, c := range e.Checks {
		if c.Status == record.CheckOK {
			able = append(able, c.Says())
		} else {
			others = append(others, c.Says())
		}
	}
	if len(able) > 0 {
		others = append([]string{strings.Join(able, ", ") + " can run"}, others...)
	}
	for _, c := range e.Checks {
		if c.Seconds >= 1 {
			took := time.Duration(c.Seconds * float64(time.Second))
			others = append(others, fmt.Sprintf("%s took %s on the base", c.Name, Span(took)))
		}
	}
	return "preflight: " + strings.Join(others, "; ")
}
