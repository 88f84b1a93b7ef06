package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// maxScan bounds how many bytes are looked at in vain: of braces that are never closed, each would be read to the end.
const maxScan = 32 << 20

// FinalJSON returns the last JSON object of a final message, whether it stands bare, in a fence or in a sentence. An
// object within another is not found by itself. ok is false if there is none.
func FinalJSON(text string) (json.RawMessage, bool) {
	all := JSONObjects(text)
	if len(all) == 0 {
		return nil, false
	}
	return all[len(all)-1], true
}

// JSONObjects returns the JSON objects of a message, in order, as FinalJSON finds them.
func JSONObjects(text string) []json.RawMessage {
	var all []json.RawMessage
	budget := maxScan
	for rest := text; ; {
		start := strings.IndexByte(rest, '{')
		if start < 0 || budget < 0 {
			return all
		}
		rest = rest[start:]
		// A decoder stops after the first value, so that prose may follow it.
		var object json.RawMessage
		dec := json.NewDecoder(strings.NewReader(rest))
		if err := dec.Decode(&object); err != nil {
			looked := len(rest)
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				looked = int(syntax.Offset)
			}
			budget -= looked
			rest = rest[1:]
			continue
		}
		all = append(all, bytes.Clone(object))
		rest = rest[dec.InputOffset():]
	}
}
