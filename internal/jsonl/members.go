package jsonl

import (
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Text is line as a string without a copy. The string lives no longer than line stays as it is: whatever is kept of it
// must be cloned.
func Text(line []byte) string { return unsafe.String(unsafe.SliceData(line), len(line)) }

// Members calls fn for the members of a JSON object, in order, until fn returns false: the name, and the value's JSON
// as a part of object. Values are passed over, not decoded, because most of a record is text that nobody asks for here.
// The object should be valid; of one that is not, some members are handed out, or none.
func Members(object string, fn func(key, raw string) bool) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return
	}
	for i++; ; i++ {
		if i = skipSpace(object, i); i >= len(object) || object[i] != '"' {
			return
		}
		end := skipValue(object, i)
		key := object[i:end]
		if i = skipSpace(object, end); i >= len(object) || object[i] != ':' {
			return
		}
		i = skipSpace(object, i+1)
		end = skipValue(object, i)
		if end <= i || !fn(Unquote(key), object[i:end]) {
			return
		}
		if i = skipSpace(object, end); i >= len(object) || object[i] != ',' {
			return
		}
	}
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// skipValue is the offset behind the JSON value that begins at i.
func skipValue(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i = skipString(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			for i < len(s) && !strings.ContainsRune(",:]}{[\" \t\n\r", rune(s[i])) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// skipString is the offset behind the JSON string that begins at i.
func skipString(s string, i int) int {
	for i++; ; i++ {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return len(s)
		}
		i += n
		// The quote is part of the text if an odd number of backslashes stands before it.
		slashes := 0
		for s[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// Unquote is the text of a JSON string with its quotes, without a copy where it has no escapes.
func Unquote(raw string) string {
	if len(raw) >= 2 && strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return gjson.Parse(raw).String()
}

// String is a value as text: of a string what it says, of null nothing, of anything else its JSON.
func String(raw string) string {
	switch {
	case raw == "null":
		return ""
	case strings.HasPrefix(raw, `"`):
		return Unquote(raw)
	}
	return raw
}
