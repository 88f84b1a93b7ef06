package seed

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// field is one member of a JSON object, or one element of a list, in the order of the text. A Go map would lose
// repeated keys, and with them a rule.
type field struct {
	key string
	raw json.RawMessage
	at  int // offset of the value
}

// fields are the members of an object.
type fields []field

// get is the value of a key, nil if there is none.
func (fs fields) get(key string) json.RawMessage {
	for _, f := range fs {
		if f.key == key {
			return f.raw
		}
	}
	return nil
}

// repeated are the keys that come a second time.
func (fs fields) repeated() (keys []string) {
	seen := map[string]bool{}
	for _, f := range fs {
		if seen[f.key] {
			keys = append(keys, f.key)
		}
		seen[f.key] = true
	}
	return keys
}

// objectFields splits a JSON object into its members. Anything but exactly one object is an error.
func objectFields(raw []byte) (fields, error) {
	if err := jsonFault(raw); err != nil {
		return nil, err
	}
	if whole := gjson.ParseBytes(raw); whole.IsObject() {
		return fieldsOf(whole), nil
	}
	return nil, errors.New("it is no JSON object")
}

func fieldsOf(whole gjson.Result) (out fields) {
	whole.ForEach(func(key, value gjson.Result) bool {
		out = append(out, field{key: key.String(), raw: json.RawMessage(value.Raw), at: value.Index})
		return true
	})
	return out
}

// jsonFault is the syntax error of a text that is not exactly one JSON value, nil if there is none.
func jsonFault(raw []byte) error {
	var whole json.RawMessage
	return json.Unmarshal(raw, &whole)
}

// checkJSON finds the line of a syntax error.
func checkJSON(name string, text []byte) error {
	err := jsonFault(text)
	if err == nil {
		return nil
	}
	line := lineAt(text, len(bytes.TrimRight(text, " \t\n")))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = lineAt(text, max(0, int(syntax.Offset)-1))
	}
	return importError(name, line, "mend the JSON and run it again", "it is not valid JSON: %s", err)
}

// element is one entry of a JSON list, with the line that it starts in.
type element struct {
	raw  json.RawMessage
	line int
}

// listElements splits a JSON list that begins at an offset of a valid text; ok is false where it is none.
func listElements(text []byte, offset int) (out []element, ok bool) {
	list := gjson.ParseBytes(text[offset:])
	if !list.IsArray() {
		return nil, false
	}
	line, counted := 1, 0
	for _, f := range fieldsOf(list) {
		start := offset + f.at
		line += bytes.Count(text[counted:start], []byte("\n"))
		counted = start
		out = append(out, element{raw: f.raw, line: line})
	}
	return out, true
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(bytes.TrimSpace(raw)) == "null" }

// pairedSurrogates matches JSON without \ud800 to \udfff that lack their other half. The decoder turns these into
// U+FFFD without a word, which would change a test's content.
var pairedSurrogates = pattern.New(
	`^(?:[^\\]|\\[^u]|\\u(?:[^dD]...|[dD][0-7]..|[dD][89abAB]..\\u[dD][c-fC-F]..))*$`)
