package agent

import (
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// replyCall is a healthy answer of a model as a model_call; its caller knows the phase and the session's total.
func replyCall(r *model.Reply, attempt int) *record.ModelCall {
	call := spent(r.Usage)
	call.Attempt, call.FinishReason, call.Health = attempt, r.FinishReason, model.HealthOK
	setContent(call, r.Content)
	if len(r.ReasoningDetails) <= record.MaxText {
		call.ReasoningDetails = r.ReasoningDetails
	}
	call.Reasoning = text.Clip(r.Reasoning, record.MaxText)
	return call
}

// failureCall is an answer that was no turn. What it has cost counts like any other; most cost nothing.
func failureCall(f *model.Failure, attempt int, wait time.Duration) *record.ModelCall {
	call := spent(f.Usage)
	call.Attempt, call.FinishReason, call.Health = attempt, f.FinishReason, string(f.Kind)
	call.Error, call.Status, call.WaitSeconds = text.Clip(f.Message, 2000), &f.Status, new(wait.Seconds())
	return call
}

// Call is a turn of a program as a model_call.
func (o Outcome) Call() *record.ModelCall {
	call := spent(o.Usage)
	call.Attempt, call.FinishReason, call.Health = 1, string(o.How), model.HealthOK
	call.Turns, call.Conversation, call.Denied = &o.Turns, &o.Conversation, o.Denied
	if o.How != Completed {
		call.Health, call.Error = string(o.How), o.Detail
	}
	setContent(call, o.Text)
	return call
}

func spent(u model.Usage) *record.ModelCall {
	call := &record.ModelCall{
		PromptTokens: u.Prompt, EvalTokens: u.Eval, CachedTokens: u.Cached, ReasoningTokens: u.Reasoning,
	}
	if u.CostKnown {
		call.Cost = &u.Cost
	}
	return call
}

func setContent(call *record.ModelCall, said string) {
	n := utf8.RuneCountInString(said)
	call.Content, call.Chars, call.Truncated = text.Head(said, record.MaxText), &n, new(n > record.MaxText)
}
