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

// Endpoint is the address of a model. "/chat/completions" is added to BaseURL, which may have a trailing slash and a
// query string. With an empty APIKey no Authorization header is sent, because local servers need none.
type Endpoint struct {
	BaseURL string
	Model   string
	APIKey  string
}

// Options are rarely used settings of a client. Zero values are the defaults.
type Options struct {
	// Timeout limits one attempt, from dialling to the last byte. Default 15 minutes, because reasoning models answer
	// late.
	Timeout     time.Duration
	ErrorDelay  time.Duration    // limits the wait for the body of an error answer. Default 30 seconds
	MaxResponse int64            // limits an answer in bytes, after decompression. Default 64 MiB
	UserAgent   string           // sent with every request. Default "git-tilth"
	Now         func() time.Time // replaces the clock for dates in limit headers. Default time.Now
	Price       *Price           // for calls without a reported cost. Default: the price in the endpoint's list
}

// Request is one call. Messages and Tools are JSON and are sent unchanged.
type Request struct {
	Messages []json.RawMessage
	Tools    json.RawMessage // JSON array in the form of the chat completions API, or nil
}

// Usage is the usage of one call in tokens and dollars. Cached is a part of Prompt, Reasoning a part of Eval. Cost is
// valid only if CostKnown: the endpoint reported a cost, or the model's price is known.
type Usage struct {
	Prompt, Eval, Cached, Reasoning int64
	Cost                            float64
	CostKnown                       bool
}

// Counted returns the tokens that count against a token cap: all tokens except cached input.
func (u Usage) Counted() int64 { return max(0, u.Prompt-u.Cached) + u.Eval }

// Bounded returns u without impossible numbers.
func (u Usage) Bounded() Usage {
	cost, known := jsonl.Dollars(u.Cost)
	return Usage{Prompt: jsonl.Tokens(u.Prompt), Eval: jsonl.Tokens(u.Eval), Cached: jsonl.Tokens(u.Cached),
		Reasoning: jsonl.Tokens(u.Reasoning), Cost: cost, CostKnown: u.CostKnown && known}
}

// ToolCall is one tool call of the model. Arguments is the text that the model wrote, which may be invalid JSON. ID is
// never empty.
type ToolCall struct {
	ID, Name, Arguments string
}

// Reply is a healthy answer. It has content, tool calls or both.
type Reply struct {
	// Message is the assistant's message byte for byte, for the next request. It may have newlines between its tokens.
	Message json.RawMessage
	// Content is the message's text. Reasoning is its reasoning as text, if the endpoint returns it.
	Content, Reasoning string
	ReasoningDetails   json.RawMessage // array of that name (OpenRouter), or nil
	ToolCalls          []ToolCall
	FinishReason       string
	Usage              Usage
}
