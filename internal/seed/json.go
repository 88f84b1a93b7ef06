package seed

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tidwall/gjson"
)

// field is one member of a JSON object or of a front matter, or one element of a list, in the order of the text. A Go
// map would lose repeated keys, and with them a rule.
type field struct {
	key   string
	value gjson.Result
	line  int // first line of the value
}

type fields []field

// get returns the value of a key, or null.
func (fs fields) get(key string) gjson.Result {
	for _, f := range fs {
		if f.key == key {
			return f.value
		}
	}
	return gjson.Result{}
}

// repeated returns the fields with a repeated key.
func (fs fields) repeated() (out fields) {
	seen := map[string]bool{}
	for _, f := range fs {
		if seen[f.key] {
			out = append(out, f)
		}
		seen[f.key] = true
	}
	return out
}

// fieldsOf splits an object or a list that begins in a line; another value has no fields.
func fieldsOf(whole gjson.Result, line int) (out fields) {
	if whole.Type != gjson.JSON {
		return nil
	}
	counted := 0
	whole.ForEach(func(key, value gjson.Result) bool {
		at := value.Index - whole.Index
		line += strings.Count(whole.Raw[counted:at], "\n")
		counted = at
		out = append(out, field{key: key.String(), value: value, line: line})
		return true
	})
	return out
}

// readJSON splits a text that is one object or one list, and finds the line of a syntax error. first is the number of
// the text's first line.
func readJSON(name string, text []byte, first int) (fields, error) {
	err := json.Unmarshal(text, new(json.RawMessage))
	if err == nil {
		whole := gjson.ParseBytes(text)
		return fieldsOf(whole, first-1+lineAt(text, whole.Index)), nil
	}
	line := lineAt(text, len(bytes.TrimRight(text, " \t\n")))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = lineAt(text, max(0, int(syntax.Offset)-1))
	}
	return nil, importError(name, first-1+line, "correct the JSON and run it again", "it is not valid JSON: %s", err)
}
