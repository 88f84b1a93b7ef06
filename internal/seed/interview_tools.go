package seed

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The two tools that only an interview has.
const (
	askTool   = "ask_user"
	writeTool = "write_seed"
)

const maxOptions = 20

// seedWritten is the last message of an interview with a seed.
const seedWritten = "The seed is written."

// Objection is the user's objection to a valid plan.
type Objection struct{ Words string }

func (o *Objection) Error() string { return "the plan was not accepted: " + o.Words }

//go:embed prompts/interview_tools.json
var interviewTools []byte

// Call runs one tool of the interview.
func (in *interview) Call(ctx context.Context, name, args string) agent.ToolAnswer {
	output, err := in.run(ctx, name, args)
	return agent.ToolAnswer{Output: output, Chars: utf8.RuneCountInString(output), Err: err}
}

func (in *interview) run(ctx context.Context, name, args string) (string, error) {
	switch special := name == askTool || name == writeTool; {
	case in.accepted != nil:
		return "Not run: the seed is written and the interview is over.", nil
	case special && in.asked:
		return "Not run: a turn has one question or one seed. Take the answer into account in your next turn.", nil
	case special:
		in.asked = true
		if name == askTool {
			return in.question(ctx, args)
		}
		return in.propose(ctx, args)
	}
	in.Terminal.step(describeCall(name, args))
	return in.Tools.Call(ctx, name, args).Output, nil
}

// question asks the user one question. Invalid arguments are answered with the expected form.
func (in *interview) question(ctx context.Context, args string) (string, error) {
	q, err := parseQuestion(args)
	if err != nil {
		return "Not asked: " + err.Error(), nil
	}
	a, err := in.Terminal.ask(ctx, q)
	if err != nil {
		return "", err
	}
	return a.Text, nil
}

func parseQuestion(args string) (question, error) {
	var q question
	err := json.Unmarshal([]byte(args), &q)
	if err != nil || strings.TrimSpace(q.Text) == "" || len(q.Options) > maxOptions {
		return q, fmt.Errorf(`give {"question": "...", "options": ["...", "..."]}; options are optional, at most %d`,
			maxOptions)
	}
	q.Options = usableOptions(q.Options)
	return q, nil
}

// usableOptions drops empty and repeated options, and options like "other", which the terminal always offers.
func usableOptions(options []string) (out []string) {
	for _, o := range options {
		o = text.OneLine(o)
		if o != "" && !strings.EqualFold(strings.Trim(o, " .…()"), "other") && !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	return out
}

// propose checks a proposed seed. The model gets a refusal with the broken rules.
func (in *interview) propose(ctx context.Context, args string) (string, error) {
	in.draft = args
	b, err := parseBundle([]byte(args))
	if err != nil {
		return in.refused(one("shape", "%s", err))
	}
	b.Meta.InterviewerModel, b.Meta.Tokens = in.ModelName, in.usage.Total()
	b.Meta.StartedAt, b.Meta.EndedAt = record.FormatTime(in.started), record.FormatTime(in.Now())
	violations, err := in.Propose(ctx, b)
	var objection *Objection
	if errors.As(err, &objection) {
		return in.Prompts.Render("interview_objection", objection)
	}
	if err != nil {
		return "", err
	}
	if len(violations) > 0 {
		return in.refused(violations)
	}
	in.accepted = b
	return seedWritten, nil
}

const maxRulesTold = 30

// refused answers a seed that breaks rules. The third time with the same broken rules ends the interview.
func (in *interview) refused(violations []Violation) (string, error) {
	in.Terminal.warn("the proposed seed was refused: " + violations[0].String())
	if words := Explain(violations, maxRulesTold); words != in.refusal {
		in.refusal, in.refusals = words, 0
	}
	if in.refusals++; in.refusals >= sameRefusals {
		return "", &RefusedError{Rule: violations[0].String(), Draft: in.draft}
	}
	return in.Prompts.Render("interview_refused", map[string]any{"Rules": Explain(violations, maxRulesTold)})
}

// describeCall returns a line about a file or search of the model.
func describeCall(name, args string) string {
	return name + " " + cmp.Or(gjson.Get(args, "pattern").String(), gjson.Get(args, "path").String())
}
