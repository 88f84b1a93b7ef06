package agent

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// maxScan limits the bytes read in vain, because each unclosed brace is read to the end.
const maxScan = 32 << 20

// FinalJSON returns the last JSON object of a final message: bare, in a fence or in a sentence. It does not return a
// nested object. ok is false if there is none.
func FinalJSON(text string) (json.RawMessage, bool) {
	all := JSONObjects(text)
	if len(all) == 0 {
		return nil, false
	}
	return all[len(all)-1], true
}

// JSONObjects returns the JSON objects of a message in order, as FinalJSON finds them. It returns none if the JSON is
// nested too deeply.
func JSONObjects(text string) []json.RawMessage {
	var all []json.RawMessage
	budget := maxScan
	for rest := text; ; {
		start := strings.IndexByte(rest, '{')
		if start < 0 || budget < 0 {
			return all
		}
		rest = rest[start:]
		object, length, err := jsonl.First(rest)
		switch {
		case err == nil:
			all = append(all, object)
		case errors.Is(err, jsonl.ErrDeep):
			return nil
		default:
			budget -= length
			length = 1
		}
		rest = rest[length:]
	}
}
