// Package model makes one chat call to an OpenAI-compatible endpoint and classifies the answer.
//
// The rules that hold here:
//   - History is opaque. Messages go out as the bytes that the caller holds and the assistant's message comes back as
//     the bytes that the endpoint sent, so that reasoning, signatures and fields unknown to us survive the round trip.
//   - One Chat is one HTTP request. Repeating it is the caller's decision, never the transport's.
//   - An answer is a turn (*Reply) or a *Failure with a Kind, and nothing in between.
//   - Only Endpoint configures the client, and HTTP(S)_PROXY and NO_PROXY as in any Go program; no OPENAI_* variable.
//   - The API key is in no error, and is redacted in the endpoint's words.
package model

import (
	"encoding/json"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Endpoint is the address of a model. "/chat/completions" is added to BaseURL (a trailing slash and a query string are
// fine). With an empty APIKey no Authorization header is sent: local servers need none.
type Endpoint struct {
	BaseURL string
	Model   string
	APIKey  string
}

// Options are a client's settings that seldom matter. The zero value is the default of each.
type Options struct {
	// Timeout bounds one attempt, from dialling to the last byte. Default 15 minutes: reasoning models answer late.
	Timeout     time.Duration
	ErrorDelay  time.Duration    // bounds the wait for the text of a refusal. Default 30 seconds
	MaxResponse int64            // bounds an answer in bytes, after decompression. Default 64 MiB
	UserAgent   string           // sent with every request. Default "git-tilth"
	Now         func() time.Time // replaces the clock for dates in limit headers. Default time.Now
	Price       *Price           // of a call without a reported cost. Default: the price in the endpoint's list
}

// Request is one call. Messages and Tools are JSON that is sent unchanged.
type Request struct {
	Messages []json.RawMessage
	Tools    json.RawMessage // a JSON array in the shape of the chat completions API, or nil
}

// Usage is the usage of one call, in tokens and dollars. Cached is a part of Prompt, Reasoning a part of Eval. Cost is
// meaningful only if CostKnown: the endpoint reported a cost, or the model's price is known.
type Usage struct {
	Prompt, Eval, Cached, Reasoning int64
	Cost                            float64
	CostKnown                       bool
}

// Counted returns the tokens that count against a token cap: all but those that a provider read from its cache.
func (u Usage) Counted() int64 { return max(0, u.Prompt-u.Cached) + u.Eval }

// Bounded returns u without the numbers that no call can have.
func (u Usage) Bounded() Usage {
	cost, known := jsonl.Dollars(u.Cost)
	return Usage{Prompt: jsonl.Tokens(u.Prompt), Eval: jsonl.Tokens(u.Eval), Cached: jsonl.Tokens(u.Cached),
		Reasoning: jsonl.Tokens(u.Reasoning), Cost: cost, CostKnown: u.CostKnown && known}
}

// ToolCall is one call that the model asks for. Arguments is the text that the model wrote; it may be no valid JSON.
// ID is never empty.
type ToolCall struct {
	ID, Name, Arguments string
}

// Reply is a healthy answer: it has content or tool calls or both.
type Reply struct {
	// Message is the assistant's message byte for byte, to be sent back in the next request. It may hold
	// newlines between its tokens.
	Message json.RawMessage
	// Content is the message's text, Reasoning its reasoning as text where the endpoint shows one.
	Content, Reasoning string
	ReasoningDetails   json.RawMessage // the array of that name (OpenRouter), or nil
	ToolCalls          []ToolCall
	FinishReason       string
	Usage              Usage
}
