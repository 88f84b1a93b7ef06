package jsonl

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tidwall/gjson"
)

// JSON from outside (endpoints, agent programs, tool arguments) is read through this file, which limits its nesting
// and its numbers. gjson checks JSON by recursion without a limit.

// maxDepth is the deepest nesting of JSON from outside.
const maxDepth = 1000

// ErrDeep is the error for JSON that is nested deeper than maxDepth.
var ErrDeep = errors.New("JSON nested deeper than 1,000 levels")

// IsDeep reports whether a text, valid JSON or not, opens more than maxDepth lists and objects before it closes one.
func IsDeep[T ~string | ~[]byte](data T) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Parse reads one JSON value from outside.
func Parse(data []byte) (gjson.Result, error) {
	if IsDeep(data) {
		return gjson.Result{}, ErrDeep
	}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(data), nil
}

// First reads the JSON value with which a text from outside begins, and returns the value and its length in the text.
// With a syntax error, the length is how much of the text was read.
func First[T ~string | ~[]byte](data T) (value json.RawMessage, length int, err error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	if err = dec.Decode(&value); err != nil {
		length = len(data)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			length = int(syntax.Offset)
		}
	} else {
		length = int(dec.InputOffset())
	}
	if IsDeep(data[:length]) {
		return nil, length, ErrDeep
	}
	return value, length, err
}

const (
	maxTokens  = 1_000_000_000
	maxDollars = 10_000
)

// Tokens returns the number of tokens of one call, 0 for an impossible number.
func Tokens(n int64) int64 {
	if n < 0 || n > maxTokens {
		return 0
	}
	return n
}

// Dollars returns the cost of one call. An impossible cost (negative, not finite or too large) is unknown.
func Dollars(cost float64) (dollars float64, known bool) {
	if !(cost >= 0 && cost <= maxDollars) {
		return 0, false
	}
	return cost, true
}
