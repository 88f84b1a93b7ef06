package seed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// field is one member of a JSON object, in the order of the text. A Go map
// would lose repeated keys, and with them a rule.
type field struct {
	key string
	raw json.RawMessage
	end int64 // offset just behind the value
}

// objectFields splits a JSON object into its members. Anything but exactly one
// object is an error.
func objectFields(raw []byte) ([]field, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	tok, err := dec.Token()
	if err != nil {
		return nil, jsonError(err)
	}
	if tok != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	var fields []field
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, jsonError(err)
		}
		fields = append(fields, field{key: name, raw: value, end: dec.InputOffset()})
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	return fields, nil
}

// jsonError words the decoder's end-of-input errors for a reader who sent the text.
func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON is cut off")
	}
	return err
}

func hasKey(fields []field, key string) bool {
	for _, f := range fields {
		if f.key == key {
			return true
		}
	}
	return false
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// hasLoneSurrogate finds \uD800..\uDFFF escapes that form no pair. The decoder
// turns them into U+FFFD without a word, which would change a test's content.
func hasLoneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		r, ok := unicodeEscape(raw[i:])
		if !ok {
			i++ // the escaped character is not the start of another escape
			continue
		}
		i += 5
		if !utf16.IsSurrogate(r) {
			continue
		}
		low, ok := unicodeEscape(raw[i+1:])
		if !ok || utf16.DecodeRune(r, low) == '\uFFFD' {
			return true
		}
		i += 6
	}
	return false
}

// unicodeEscape reads \uXXXX at the start of b.
func unicodeEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		d := strings.IndexByte("0123456789abcdef", lowerHex(c))
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func lowerHex(c byte) byte {
	if c >= 'A' && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// quoteShort quotes foreign text for a message and keeps it short.
func quoteShort(s string) string {
	const max = 120
	if len(s) > max {
		return fmt.Sprintf("%q...", s[:max])
	}
	return fmt.Sprintf("%q", s)
}

func byteSize(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
