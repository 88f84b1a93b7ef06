package replay

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

const finalTool = "submit_case"

// event is one event that a replay needs, and of a tool call what it was answered: nil where it was blocked or did not
// finish.
type event struct {
	ev     record.Event
	result *record.ToolResult
}

// readEvents reads what the worker did and what came of it, without what a rewind or an undo has superseded. Of tasks
// that a rewind made pending, which were tried before its point too, no conversation is left.
func readEvents(s *session.Session) (events []event, err error) {
	var answer *record.ToolResult // of the call that comes next, since the record is read from its end
	dropped := map[string]bool{}
	_, err = record.Tail(s.Path(session.RecordFile), func(l record.Line) bool {
		switch l.Type {
		case "session_rewound":
			if back, ok := l.Event().(*record.SessionRewound); ok {
				for id := range back.Tasks {
					dropped[id] = true
				}
			}
			return true
		case "session_start", "agent_session", "context_reset", "model_call", "tool_call", "tool_result",
			"validator_run", "evaluator_verdict", "commit":
		default:
			return true
		}
		e := event{ev: l.Event()}
		if in := e.ev.Common(); in.Phase != "" || dropped[in.TaskID] {
			return true
		}
		switch ev := e.ev.(type) {
		case *record.ToolResult:
			answer = ev
			return true
		case *record.ToolCall:
			e.result, answer = answer, nil
		}
		events = append(events, e)
		return true
	})
	slices.Reverse(events)
	return events, err
}

// call is a tool call of a conversation.
type call struct {
	name, args, answer string
	answered           bool
}

// talk is the conversation of one attempt.
type talk struct {
	system, user string
	turns        []turn
	queue        []call // of the turn at hand
}

// turn is one answer of the model, with the calls in it that were carried out.
type turn struct {
	content string
	calls   []call
}

// readTalk reads an attempt's conversation, nil where there is none. One that took up an earlier one begins with all of
// that.
func readTalk(s *session.Session, task, trace string) (*talk, error) {
	var earlier, current []gjson.Result
	found := false
	_, _, err := jsonl.Scan(s.Path(session.ConversationDir, task+".jsonl"), 0, func(_ int64, line []byte) error {
		m := gjson.Parse(string(line))
		switch {
		case m.Get("role").Exists():
			current = append(current, m)
			return nil
		case found:
			return jsonl.ErrStop
		case m.Get("payload.trace_id").Str == trace:
			found = true
		}
		earlier, current = current, nil
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) || !found {
		return nil, err
	}
	if goesOn(current, earlier) {
		current = current[len(earlier):]
	}
	return newTalk(current), nil
}

// goesOn reports whether an attempt took up an earlier one: behind that, calls that it had left without an answer get
// one, and the model is told so. Another attempt may have come to the same conversation by itself.
func goesOn(messages, earlier []gjson.Result) bool {
	if len(earlier) == 0 || len(messages) < len(earlier) || !slices.EqualFunc(earlier, messages[:len(earlier)],
		func(a, b gjson.Result) bool { return a.Raw == b.Raw }) {
		return false
	}
	told := slices.IndexFunc(messages[len(earlier):], func(m gjson.Result) bool { return m.Get("role").Str != "tool" })
	return told >= 0 && messages[len(earlier)+told].Get("role").Str == "user"
}

func newTalk(messages []gjson.Result) *talk {
	t := &talk{}
	for i, m := range messages {
		content := m.Get("content").String()
		switch m.Get("role").Str {
		case "system":
			t.system = content
		case "user":
			if i < 2 {
				t.user = content
			}
		case "assistant":
			t.turns = append(t.turns, turn{content, callsOf(m, messages[i+1:])})
		}
	}
	return t
}

// callsOf are the calls of a message that were carried out, with their answers: what stands after the case is not.
func callsOf(m gjson.Result, after []gjson.Result) (calls []call) {
	final := false
	for _, raw := range m.Get("tool_calls").Array() {
		c := call{name: raw.Get("function.name").Str, args: raw.Get("function.arguments").String()}
		id := raw.Get("id").Str
		for j, a := range after {
			if a.Get("role").Str == "assistant" {
				break
			}
			if a.Get("role").Str == "tool" && (id == "" || a.Get("tool_call_id").Str == id) {
				c.answer, c.answered = a.Get("content").String(), true
				after = slices.Delete(slices.Clone(after), j, j+1)
				break
			}
		}
		if !final {
			calls = append(calls, c)
		}
		final = final || c.name == finalTool
	}
	return calls
}

// answered takes the next turn of the conversation. The last one may be missing: the record has an answer first.
func (p *player) answered(e *record.ModelCall) error {
	if p.talk == nil || e.Health != "ok" || e.TaskID != p.task {
		return nil
	}
	if len(p.talk.queue) > 0 {
		return differs("%s: the conversation has a call of %s that the record does not", p.task, p.talk.queue[0].name)
	}
	if len(p.talk.turns) == 0 {
		return nil
	}
	t := p.talk.turns[0]
	p.talk.turns, p.talk.queue = p.talk.turns[1:], t.calls
	if !shows(e.Content, t.content) {
		return differs("%s: an answer of the model reads otherwise in the conversation than on record", p.task)
	}
	return nil
}

// shows reports whether a text of the record is the beginning of one of a conversation, or all of it.
func shows(head, whole string) bool {
	if i := strings.LastIndex(head, "\n[... "); i >= 0 && strings.HasSuffix(head, " more]") {
		head = head[:i]
	} else if len(head) < 2000 && head != whole {
		return strings.Contains(head+whole, "[redacted:") // may have been cut within
	}
	return strings.HasPrefix(whole, head) || strings.Contains(head+whole, "[redacted:")
}

// sameArgs reports whether arguments are those of the record, which has them as JSON, or as text where they are none.
func sameArgs(args string, said json.RawMessage) bool {
	var a, b, plain any
	if json.Unmarshal(said, &b) != nil {
		return false
	}
	if text, ok := b.(string); ok {
		return text == args || json.Unmarshal([]byte(args), &plain) == nil && plain == text
	}
	return json.Unmarshal([]byte(args), &a) == nil && string(record.JSON(a)) == string(record.JSON(b))
}

// prompted notes which parts of its prompt an attempt would be told otherwise by this build.
func (p *player) prompted(task string) error {
	if p.talk == nil || p.talk.system == "" {
		return nil
	}
	tasks, err := p.s.Tasks()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(tasks, func(t session.Task) bool { return t.ID == task })
	if i < 0 {
		return nil
	}
	words, err := loop.PromptWords(p.o.Prompts, tasks[i])
	if err != nil {
		return err
	}
	note := func(what string) { p.res.Notes = append(p.res.Notes, task+": "+what) }
	if strings.TrimSpace(words.System) != strings.TrimSpace(p.talk.system) {
		note("the system prompt is another one now")
	}
	told := strings.Split(p.talk.user, "\n")
	rest := told
	for _, line := range words.Lines {
		at := slices.Index(rest, line)
		if at < 0 {
			note("the prompt of the task would say now: " + line)
			break
		}
		rest = rest[at+1:]
	}
	if line := dropped(told, words.May, task); line != "" {
		note("the prompt of the task would not say any more: " + line)
	}
	return nil
}

// dropped is the first line behind the task's heading that is none of those that may stand there; "" for none. What
// others wrote stands between fences, and what reviewers and a person said comes last.
func dropped(told, may []string, task string) string {
	heading := slices.IndexFunc(may, func(line string) bool { return strings.Contains(line, task) })
	if heading < 0 {
		return ""
	}
	end := ""
	for _, line := range told[slices.Index(told, may[heading])+1:] {
		known := func(k string) bool {
			before, after, gap := strings.Cut(k, loop.Gap)
			return k == line || gap && strings.HasPrefix(line, before) && strings.HasSuffix(line, after)
		}
		switch {
		case end != "":
			if line == end {
				end = ""
			}
		case line == may[len(may)-1]:
			return ""
		case strings.HasPrefix(line, "----- BEGIN "):
			end = strings.Replace(line, "BEGIN", "END", 1)
		case strings.TrimSpace(line) != "" && !slices.ContainsFunc(may, known):
			return line
		}
	}
	return ""
}
