package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxExact is the largest number up to which every whole one is a float64.
const maxExact = 1 << 53

// wholeNumber reads a JSON number as an integer, also in the forms 12.0 and 1e6 that other writers use.
func wholeNumber(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < -maxExact || f > maxExact || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// shapeError says in words which JSON value stands where another was wanted.
func shapeError(err error, want reflect.Type) error {
	var te *json.UnmarshalTypeError
	if !errors.As(err, &te) {
		return err
	}
	at := ""
	if te.Field != "" {
		at = "." + te.Field + " "
	}
	return fmt.Errorf("%sis %s, want %s", at, article(te.Value), typeWords(te.Type))
}

func article(value string) string {
	kind, _, _ := strings.Cut(value, " ") // "number 1.5"
	switch kind {
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + kind
}

func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "an object"
}

// jsonKind names the kind of a JSON value by its first character.
func jsonKind(data []byte) string {
	data = bytes.TrimLeft(data, " \t\r\n")
	if len(data) == 0 {
		return "empty"
	}
	switch data[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// checkJSON says where and why data is no JSON value.
func checkJSON(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("is empty")
	}
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	var se *json.SyntaxError
	if errors.As(err, &se) {
		before := data[:min(int(se.Offset), len(data))]
		line := 1 + bytes.Count(before, []byte{'\n'})
		column := len(before) - 1 - bytes.LastIndexByte(before, '\n')
		return fmt.Errorf("is not JSON: line %d, column %d: %s", line, max(column, 1), strings.TrimPrefix(se.Error(), "json: "))
	}
	return err
}

// encodeJSON is compact JSON with <, > and & as they are: the files are read by people, and never embedded unescaped.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// indentJSON is how JSON files look on disk: two spaces, a newline at the end.
func indentJSON(v any) ([]byte, error) {
	raw, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// sameJSON tells whether two JSON texts mean the same: 2.0 is 2, and "\u00e9" is "é".
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, xerr := decodeAny(a)
	y, yerr := decodeAny(b)
	return xerr == nil && yerr == nil && sameValue(x, y)
}

func decodeAny(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, xerr := a.Float64()
		y, yerr := b.Float64()
		return xerr == nil && yerr == nil && x == y && x > -maxExact && x < maxExact
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !sameValue(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}
