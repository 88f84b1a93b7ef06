package model

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

const (
	listPath    = "/models"
	listTimeout = 20 * time.Second
)

// Price is the price of a model's calls, in dollars.
type Price struct{ Prompt, Answer, Call float64 } // per token of prompt and answer, and per call

// Of returns the cost of a call at this price.
func (p Price) Of(prompt, answer int64) float64 {
	return float64(prompt)*p.Prompt + float64(answer)*p.Answer + p.Call
}

// book sets the cost of a call by the model's price if the endpoint reported no cost. If Options has no price, it
// reads the endpoint's list of models once.
func (c *Client) book(ctx context.Context, u *Usage) {
	if u.CostKnown || u.Prompt+u.Eval == 0 {
		return
	}
	c.listed.Do(func() {
		if c.options.Price != nil {
			return
		}
		list, _ := c.Models(ctx) // an unreadable list has no price
		for _, m := range list {
			if bytes.Equal(marshal(m.ID), c.model) {
				c.options.Price = m.Price
			}
		}
	})
	if p := c.options.Price; p != nil {
		u.Cost, u.CostKnown = jsonl.Dollars(p.Of(u.Prompt, u.Eval))
	}
}

// Listed is a model in an endpoint's list.
type Listed struct {
	ID      string
	Price   *Price // nil if the list has none
	NoTools bool   // the list says that the model has no tool calls
}

// Models asks the endpoint once for its list of models, which costs nothing. The error is a *Failure. With status 404
// or 405, the endpoint answers but has no list.
func (c *Client) Models(ctx context.Context) (list []Listed, err error) {
	at, _ := url.Parse(c.url) // New has checked it
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, chatPath)+listPath, ""
	failure := c.try(ctx, min(c.options.Timeout, listTimeout), http.MethodGet, at.String(), nil,
		func(body []byte) *Failure {
			list = readModels(body)
			return nil
		})
	if failure != nil {
		return nil, failure
	}
	return list, nil
}

// readModels reads a list in the forms of OpenAI, OpenRouter and Together. Any other body has no models.
func readModels(body []byte) (out []Listed) {
	list, err := jsonl.Parse(body)
	if err != nil {
		return nil
	}
	if !list.IsArray() {
		list = list.Get("data")
	}
	for _, m := range list.Array() {
		l := Listed{ID: textOf(m.Get("id")), Price: readPrice(m.Get("pricing"))}
		if can := m.Get("supported_parameters"); can.IsArray() { // OpenRouter
			l.NoTools = !slices.ContainsFunc(can.Array(), func(p gjson.Result) bool { return p.String() == "tools" })
		}
		if can := m.Get("capabilities.function_calling"); can.Exists() { // Mistral
			l.NoTools = !can.Bool()
		}
		out = append(out, l)
	}
	return out
}

// readPrice reads dollars per token (prompt, completion) or per million tokens (input, output). A negative price marks
// a router to other models.
func readPrice(r gjson.Result) *Price {
	call, _ := number(r.Get("request"))
	for _, names := range []struct {
		prompt, answer string
		per            float64
	}{{"prompt", "completion", 1}, {"input", "output", 1e6}} {
		prompt, known := number(r.Get(names.prompt))
		answer, too := number(r.Get(names.answer))
		if known && too && prompt >= 0 && answer >= 0 && call >= 0 {
			return &Price{Prompt: prompt / names.per, Answer: answer / names.per, Call: call}
		}
	}
	return nil
}
