package agent

import (
	"bytes"
	"encoding/json"
	"strings"
)

// FinalJSON returns the last JSON object of a final message, whether it stands bare, in a fence or in a sentence. An
// object within another is not found by itself. ok is false if there is none.
func FinalJSON(text string) (json.RawMessage, bool) {
	var last json.RawMessage
	for rest := text; ; {
		start := strings.IndexByte(rest, '{')
		if start < 0 {
			return last, last != nil
		}
		rest = rest[start:]
		// A decoder stops after the first value, so that prose may follow it.
		var object json.RawMessage
		dec := json.NewDecoder(strings.NewReader(rest))
		if dec.Decode(&object) != nil {
			rest = rest[1:]
			continue
		}
		last = bytes.Clone(object)
		rest = rest[dec.InputOffset():]
	}
}
