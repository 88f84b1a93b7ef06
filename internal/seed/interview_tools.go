package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The two tools that only an interview has.
const (
	askTool   = "ask_user"
	writeTool = "write_seed"
)

const maxOptions = 20

var interviewTools = json.RawMessage(`[
{"type":"function","function":{"name":"ask_user","description":"Ask the owner of the repository one question. Give options where there are a few sensible answers; the owner can always answer something else.","parameters":{"type":"object","properties":{"question":{"type":"string","description":"One question, in plain words."},"options":{"type":"array","items":{"type":"string"},"description":"The answers that you see, the one that you would choose first. Leave it out for an open question."}},"required":["question"]}}},
{"type":"function","function":{"name":"write_seed","description":"Hand in the whole seed and end the interview. If a rule is broken, the answer names it and nothing is written.","parameters":{"type":"object","properties":{"prd_entries":{"type":"array","description":"The tasks, in the order in which they are done.","items":{"type":"object","properties":{"id":{"type":"string","description":"T-001, T-002 and so on."},"title":{"type":"string","description":"One line in the imperative."},"description":{"type":"string"},"acceptance_criteria":{"type":"array","items":{"type":"string"},"description":"One observable fact each, one assertion each."}},"required":["id","title","description","acceptance_criteria"],"additionalProperties":false}},"test_files":{"type":"object","description":"Path relative to the root of the repository to the file's content. The base name holds its task's number between separators, like tests/test_t001_add.py.","additionalProperties":{"type":"string"}},"tldr":{"type":"string","description":"What will be built and why, in two or three sentences."},"open_questions":{"type":"array","items":{"type":"string"}},"blockers":{"type":"array","items":{"type":"string"}},"scope_notes":{"type":"array","items":{"type":"string"}}},"required":["prd_entries","test_files","tldr","open_questions","blockers","scope_notes"],"additionalProperties":false}}}
]`)

// withInterviewTools adds ask_user and write_seed to the reading tools.
func withInterviewTools(specs json.RawMessage) (json.RawMessage, error) {
	var all, own []json.RawMessage
	if len(specs) > 0 {
		if err := json.Unmarshal(specs, &all); err != nil {
			return nil, fmt.Errorf("the reading tools' descriptions: %w", err)
		}
	}
	if err := json.Unmarshal(interviewTools, &own); err != nil {
		return nil, err
	}
	return encode(append(all, own...))
}

// answerAll answers every tool call of one turn, in order. One question a turn
// is put to the person; a seed that was written beside a question is not read,
// because it cannot know the answer; one seed a turn is judged.
func (in *interview) answerAll(ctx context.Context, calls []model.ToolCall) error {
	asks := false
	for _, c := range calls {
		asks = asks || c.Name == askTool
	}
	t := &turnState{asks: asks}
	for _, c := range calls {
		if err := in.answer(ctx, t, c); err != nil {
			return err
		}
	}
	return nil
}

type turnState struct{ asks, asked, judged bool }

func (in *interview) answer(ctx context.Context, t *turnState, c model.ToolCall) error {
	err := in.Emit(&record.ToolCall{Scope: in.scope(), Tool: c.Name, Args: recordedArgs(c)})
	if err != nil {
		return err
	}
	output, err := in.run(ctx, t, c)
	if err != nil {
		return err
	}
	err = in.Emit(&record.ToolResult{
		Scope: in.scope(), Tool: c.Name, Preview: text.Clip(output, maxPreview), Chars: utf8.RuneCountInString(output),
	})
	if err != nil {
		return err
	}
	return in.record(map[string]any{"role": "tool", "tool_call_id": c.ID, "content": output})
}

func (in *interview) run(ctx context.Context, t *turnState, c model.ToolCall) (string, error) {
	if ctx.Err() != nil {
		return "", aborted(ctx)
	}
	switch {
	case in.accepted != nil:
		return "Not run: the seed is written and the interview is over.", nil
	case c.Name == askTool && t.asked:
		return "Not asked: one question a turn. Ask it again in your next turn if it is still open.", nil
	case c.Name == askTool:
		t.asked = true
		return in.ask(ctx, c.Arguments)
	case c.Name == writeTool && t.asks:
		return "Not read: you asked a question in the same turn. Take the answer into account and call write_seed again.", nil
	case c.Name == writeTool && t.judged:
		return "Not read: one seed a turn is judged.", nil
	case c.Name == writeTool:
		t.judged = true
		return in.propose(ctx, c.Arguments)
	}
	in.Frontend.Say(Step, describeCall(c))
	return in.Tools.Call(ctx, c.Name, c.Arguments).Output, nil
}

// ask puts one question to the person. Arguments that cannot be used are
// answered with what is expected.
func (in *interview) ask(ctx context.Context, args string) (string, error) {
	q, err := parseQuestion(args)
	if err != nil {
		return "Not asked: " + err.Error(), nil
	}
	a, err := in.Frontend.Ask(ctx, q)
	if err != nil {
		return "", err
	}
	return a.Text, nil
}

func parseQuestion(args string) (Question, error) {
	const shape = `give {"question": "...", "options": ["...", "..."]}, options being optional`
	fields, err := objectFields([]byte(args))
	if err != nil {
		return Question{}, fmt.Errorf("the arguments are no JSON object (%v): %s", err, shape)
	}
	var q Question
	for _, f := range fields {
		switch f.key {
		case "question":
			err = json.Unmarshal(f.raw, &q.Text)
		case "options":
			err = json.Unmarshal(f.raw, &q.Options)
		}
		if err != nil {
			return Question{}, fmt.Errorf("%s has the wrong type: %s", f.key, shape)
		}
	}
	if strings.TrimSpace(q.Text) == "" {
		return Question{}, errors.New("the question is empty: " + shape)
	}
	if len(q.Options) > maxOptions {
		return Question{}, fmt.Errorf("%d options are too many: give at most %d", len(q.Options), maxOptions)
	}
	q.Options = usableOptions(q.Options)
	return q, nil
}

// usableOptions drops empty and repeated options, and those that only say
// "other": the frontend always offers that.
func usableOptions(options []string) []string {
	var out []string
	for _, o := range options {
		o = text.OneLine(o)
		word := strings.ToLower(strings.Trim(o, " .…()"))
		if o == "" || word == "other" || slices.Contains(out, o) {
			continue
		}
		out = append(out, o)
	}
	return out
}

// propose hands a seed to the sink. A refusal goes back with its rules.
func (in *interview) propose(ctx context.Context, args string) (string, error) {
	if in.garbled {
		return in.refused([]Violation{violation("utf-8", "the arguments are not valid UTF-8")})
	}
	b, err := ParseBundle([]byte(args))
	if err != nil {
		return in.refused([]Violation{{Rule: "shape", Message: err.Error()}})
	}
	b.Meta.InterviewerModel, b.Meta.Tokens = in.ModelName, in.usage.Total()
	b.Meta.StartedAt, b.Meta.EndedAt = session.FormatTime(in.started), session.FormatTime(in.Now())
	violations, err := in.Sink.Propose(ctx, b)
	if err != nil {
		return "", err
	}
	if len(violations) > 0 {
		return in.refused(violations)
	}
	in.accepted = b
	return "The seed is written.", nil
}

const maxRulesTold = 30

func (in *interview) refused(violations []Violation) (string, error) {
	in.Frontend.Say(Warn, "the proposed seed was refused: "+violations[0].String())
	return in.prompts.render("interview_refused", map[string]any{"Rules": Explain(violations, maxRulesTold)})
}

// recordedArgs is what the record keeps of a call's arguments: the object if it
// is a small one, else the beginning of its text. The transcript has all of it.
func recordedArgs(c model.ToolCall) json.RawMessage {
	if len(c.Arguments) <= record.MaxText {
		if _, err := objectFields([]byte(c.Arguments)); err == nil {
			return json.RawMessage(c.Arguments)
		}
	}
	return record.JSON(text.Clip(c.Arguments, record.MaxText))
}

// describeCall is one line on what the model looks at.
func describeCall(c model.ToolCall) string {
	var args struct {
		Path    string `json:"path"`
		Pattern string `json:"pattern"`
	}
	_ = json.Unmarshal([]byte(c.Arguments), &args)
	switch c.Name {
	case "read_file":
		return "read " + args.Path
	case "glob":
		return "look for " + args.Pattern
	case "grep":
		return "search for " + args.Pattern
	}
	return c.Name
}
