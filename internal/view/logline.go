package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/text"
)

// event prints one event: on a terminal time, task, type and what it says in the
// width that there is; in a pipe the same, separated by tabs and not cut.
func (l *logger) event(line []byte) {
	e := gjson.ParseBytes(line)
	typ, p := e.Get("type").String(), e.Get("payload")
	ts := e.Get("ts").String()
	where := text.VisibleLine(p.Get("task_id").String())
	if n := p.Get("iter").Int(); n > 0 && where != "" {
		where += "/" + strconv.FormatInt(n, 10)
	}
	shown := text.VisibleLine(gist(typ, p))
	style := eventStyle(typ, p)
	if !l.o.TTY {
		l.out.WriteString(strings.Join([]string{text.VisibleLine(ts), where, text.VisibleLine(typ), shown}, "\t"))
		return
	}
	head := fmt.Sprintf("%-8s  %-9s ", clockOf(ts), fit(where, 9))
	name := fmt.Sprintf("%-18s", fit(text.VisibleLine(typ), 18))
	if l.o.Width > 0 {
		shown = fit(shown, max(l.o.Width-width(head)-width(name)-1, 20))
	}
	l.out.WriteString(l.o.paint(dim, head) + l.o.paint(style, name) + " " + shown)
}

// clockOf is the local time of day of a timestamp.
func clockOf(ts string) string {
	t := parseTime(ts)
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("15:04:05")
}

// eventStyle colours an event by its kind, and by how it ended where it can fail.
func eventStyle(typ string, p gjson.Result) string {
	switch typ {
	case "model_call", "prompt_assembled", "memory_load":
		if p.Get("phase").String() != "" || p.Get("role").String() == "evaluator" {
			return purple
		}
		return blue
	case "tool_call", "tool_result", "hook_run":
		return cyan
	case "validator_run":
		if p.Get("passed").Bool() {
			return green
		}
		return red
	case "evaluator_verdict", "judge_verdict":
		if verdictOf(p) == "accept" {
			return green
		}
		return yellow
	case "commit", "task_done", "seed_committed":
		return green
	case "task_failed", "pre_tool_block", "case_parse_error", "evaluator_parse_error", "empty_model_response":
		return red
	case "stop":
		return stopStyle(p.Get("reason").String())
	case "nudge", "log_repaired":
		return yellow
	}
	return bold
}

func verdictOf(p gjson.Result) string {
	if v := p.Get("verdict").String(); v != "" {
		return v
	}
	if p.Get("accept").Bool() {
		return "accept"
	}
	return "reject"
}

const gistBytes = 4 << 10 // more of a text than any line of a terminal shows

// gist is what an event says in one line. The text is foreign; the caller cleans it.
func gist(typ string, p gjson.Result) string {
	s := func(k string) string {
		v := p.Get(k).String()
		return v[:min(len(v), gistBytes)]
	}
	switch typ {
	case "model_call":
		return modelGist(p, s)
	case "prompt_assembled":
		return s("role") + ", " + s("chars") + " characters"
	case "memory_load":
		return s("user_prompt_chars") + " characters"
	case "tool_call":
		return s("tool") + " " + argsGist(p.Get("args"))
	case "tool_result":
		return s("tool") + " " + s("result_chars") + " characters: " + s("result_preview")
	case "pre_tool_block":
		return s("tool") + " blocked: " + s("reason")
	case "hook_run":
		return strings.TrimSpace(s("hook") + " " + s("outcome") + " " + s("reason"))
	case "validator_run":
		return validatorGist(p)
	case "evaluator_verdict", "judge_verdict":
		return strings.TrimSpace(verdictOf(p) + " " + s("rejection_category") + " " + s("concern"))
	case "ledger_appended":
		return s("verdict_summary")
	case "task_done":
		return s("summary")
	case "task_failed", "stop":
		return strings.TrimSuffix(s("reason")+": "+s("detail"), ": ")
	case "commit", "seed_committed":
		return strings.TrimSpace(s("sha") + " " + s("branch"))
	case "nudge":
		return s("kind") + ": " + s("content")
	case "session_resume":
		return "after " + s("last_stop") + ": " + s("plan")
	case "session_start":
		return strings.TrimSpace(s("phase") + " in " + s("source"))
	}
	return restGist(p)
}

func modelGist(p gjson.Result, s func(string) string) string {
	role := s("phase")
	if role == "" {
		role = "worker"
	}
	parts := []string{role, Count(p.Get("prompt_tokens").Int()) + " → " + Count(p.Get("eval_tokens").Int())}
	if c := p.Get("cost").Float(); c > 0 {
		parts = append(parts, Money(c))
	}
	if h := s("health"); h != "" && h != "ok" {
		parts = append(parts, h)
	}
	return strings.Join(append(parts, s("content")), "  ")
}

func argsGist(args gjson.Result) string {
	for _, k := range []string{"command", "path", "pattern", "summary"} {
		if v := args.Get(k).String(); v != "" {
			return v[:min(len(v), gistBytes)]
		}
	}
	return args.Raw[:min(len(args.Raw), gistBytes)]
}

func validatorGist(p gjson.Result) string {
	verdict := "failed"
	if p.Get("passed").Bool() {
		verdict = "passed"
	}
	var names []string
	p.Get("results").ForEach(func(_, r gjson.Result) bool {
		mark := "✕"
		if r.Get("passed").Bool() {
			mark = "✓"
		}
		names = append(names, mark+" "+r.Get("name").String())
		return len(names) < 50
	})
	if len(names) == 0 {
		names = append(names, "no validators")
	}
	return verdict + "  " + strings.Join(names, "  ")
}

// restGist lists the members of an event that has no line of its own.
func restGist(p gjson.Result) string {
	var b strings.Builder
	p.ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "task_id", "trace_id", "span_id", "iter":
			return true
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		text := v.String()
		b.WriteString(k.String() + "=" + text[:min(len(text), gistBytes)])
		return b.Len() < gistBytes
	})
	return b.String()
}
