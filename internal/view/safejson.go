package view

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Limits of an event's size in a page. The record keeps everything, and the page shows how much it left out.
const (
	maxEvent = 1 << 20 // bytes; only the beginning of a larger event is shown
	maxDepth = 64      // nesting; deeper lines are shown as plain text
)

// copyEvent appends one line of the record, a JSON object (jsonl.IsObject), as JSON for a script element, without <,
// >, &, line separators or invalid UTF-8. It skips an event that is too deep or too big for a page.
func copyEvent(out, line []byte) (_ []byte, ok bool) {
	if len(line) > maxEvent || bytes.Count(line, []byte("{"))+bytes.Count(line, []byte("[")) > maxDepth &&
		depthOf(line) > maxDepth {
		return out, false
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	b := bytes.NewBuffer(out)
	json.HTMLEscape(b, line)
	return b.Bytes(), true
}

// inPage encodes a value for a script element of a page. A value that cannot be encoded is an empty object.
func inPage(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return data
}

// depthOf returns how deep objects and lists are nested in a JSON text.
func depthOf(text []byte) (most int) {
	depth, within := 0, false // a string
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case within && c == '\\':
			i++
		case c == '"':
			within = !within
		case within:
		case c == '{', c == '[':
			depth++
			most = max(most, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return most
}
