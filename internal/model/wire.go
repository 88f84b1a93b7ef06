package model

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Answers of endpoints are read field by field. A value of an unexpected type counts as absent, so that a usage field
// with a string does not spoil a good answer.

// readUsage reads a usage object. known reports whether it has a number.
func readUsage(r gjson.Result) (u Usage, known bool) {
	_, prompt := number(r.Get("prompt_tokens"))
	_, completion := number(r.Get("completion_tokens"))
	u = Usage{
		Prompt:    count(r.Get("prompt_tokens")),
		Eval:      count(r.Get("completion_tokens")),
		Cached:    count(r.Get("prompt_tokens_details.cached_tokens")),
		Reasoning: count(r.Get("completion_tokens_details.reasoning_tokens")),
	}
	if !prompt && !completion {
		u.Prompt = count(r.Get("total_tokens")) // the only known count; a cap must still work
	}
	if _, ok := number(r.Get("prompt_tokens_details.cached_tokens")); !ok {
		u.Cached = count(r.Get("prompt_cache_hit_tokens")) // DeepSeek's name
	}
	for _, name := range []string{"total_cost", "cost"} {
		if cost, ok := number(r.Get(name)); ok && cost >= 0 {
			u.Cost, u.CostKnown = cost, true
		}
	}
	return u, prompt || completion || u.CostKnown
}

// number returns a JSON number, also from a string.
func number(r gjson.Result) (value float64, ok bool) {
	if r.Type != gjson.Number && r.Type != gjson.String {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.Trim(r.Raw, `"`), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// count returns a number of tokens, limited so that sums cannot overflow.
func count(r gjson.Result) int64 {
	const most = 1 << 50
	v, _ := number(r)
	return int64(max(0, min(v, most)))
}

// textOf returns a JSON string, or "".
func textOf(r gjson.Result) string {
	if r.Type != gjson.String {
		return ""
	}
	return strings.ToValidUTF8(r.Str, "\uFFFD")
}

// scalar returns a JSON string or number as text, and an object or list as JSON.
func scalar(r gjson.Result) string {
	if r.Type == gjson.String || r.Type == gjson.Null {
		return textOf(r)
	}
	return r.Raw
}

// contentOf returns a message's content: a string, or the joined text parts of a list.
func contentOf(r gjson.Result) string {
	if !r.IsArray() {
		return textOf(r)
	}
	var s strings.Builder
	for _, part := range r.Array() {
		if kind := textOf(part.Get("type")); kind == "text" || kind == "output_text" {
			s.WriteString(textOf(part.Get("text")))
		}
	}
	return s.String()
}

func isNull(b []byte) bool { return len(b) == 0 || string(b) == "null" }
