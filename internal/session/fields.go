package session

import (
	"unsafe"

	"github.com/tidwall/gjson"
)

// text is line as a string without a copy. The string lives no longer than line stays as it is: whatever is kept of it
// must be cloned.
func text(line []byte) string { return unsafe.String(unsafe.SliceData(line), len(line)) }

// rawBytes is the JSON of a value as bytes: a part of the line that it came from.
func rawBytes(value gjson.Result) []byte {
	return unsafe.Slice(unsafe.StringData(value.Raw), len(value.Raw))
}

// eachMember calls fn for each member of the JSON object in line, in order. Strings handed over may be parts of line.
func eachMember(line []byte, fn func(key string, value gjson.Result) bool) {
	gjson.Parse(text(line)).ForEach(func(key, value gjson.Result) bool { return fn(key.String(), value) })
}

// eventType is the type of an event line, a part of line where it has no escapes.
func eventType(line []byte) string {
	r := gjson.Get(text(line), "type")
	if r.Type != gjson.String {
		return ""
	}
	return r.Str
}
