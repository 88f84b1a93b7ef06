package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// encode appends the payload of an event: its members sorted by name, an empty list as [].
func encode(b *bytes.Buffer, ev Event) error {
	if u, ok := ev.(*Unknown); ok {
		if !jsonl.IsObject(bytes.TrimSpace(u.Payload)) {
			return errors.New("the payload is not a JSON object")
		}
		return json.Compact(b, u.Payload)
	}
	return jsonl.AppendObject(b, ev, true, nil)
}

// decode fills the struct that dst points to from a payload. Most of a record is text that nobody asks for; a member of
// another kind than its field is left out, or for a text its JSON.
func decode(payload []byte, dst any) {
	jsonl.ReadObject(payload, dst, func(_ string, field reflect.Value, value string, _ error) {
		if field.Kind() == reflect.String {
			field.SetString(value)
		}
	}, nil)
}
