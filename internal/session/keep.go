package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// The JSON files of a session are also written by other versions and by other tools. A struct keeps what it has no
// field for in an extra: decodeObject reads both, encodeObject writes both.

// extra are the members of a JSON object that its struct has no field for, as they were read.
type extra map[string]json.RawMessage

// decodeObject fills the tagged fields of the struct that dst points to from the members of a JSON object with
// exactly those names (encoding/json would also take "Status" for "status"), and returns the other members. A missing
// or null member is the zero value. Of a repeated name the last value counts. The error is that of the first member
// that does not fit its field; the others are filled all the same.
func decodeObject(data []byte, dst any) (others extra, err error) {
	var members extra
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, jsonError(data, err)
	}
	if members == nil {
		return nil, errors.New("is null, want an object")
	}
	v := reflect.ValueOf(dst).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		field := v.Field(i)
		field.SetZero()
		raw, ok := members[name]
		delete(members, name)
		if !ok || string(raw) == "null" {
			continue
		}
		if n, whole := wholeNumber(raw); field.CanInt() && whole {
			field.SetInt(n)
		} else if wrong := json.Unmarshal(raw, field.Addr().Interface()); wrong != nil && err == nil {
			err = fmt.Errorf("%q %w", name, jsonError(raw, wrong))
		}
	}
	return members, err
}

// encodeObject is the JSON of a struct, and behind its members the others, sorted by name.
func encodeObject(src any, others extra) ([]byte, error) {
	known, err := jsonl.Encode(src)
	if err != nil || len(others) == 0 {
		return known, err
	}
	rest, err := jsonl.Encode(others)
	if err != nil || string(known) == "{}" {
		return rest, err
	}
	known[len(known)-1] = ','
	return append(known, rest[1:]...), nil
}

// orEmpty is list, where a nil one would be written as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// wholeNumber reads a JSON number as an integer, also in the forms 12.0 and 1e6 that other writers use.
func wholeNumber(raw []byte) (int64, bool) {
	const maxExact = 1 << 53 // up to which every whole number is a float64
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < -maxExact || f > maxExact || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// jsonError says in words why data could not be decoded: where it is no JSON, or which value stands where another was
// wanted.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New("is empty")
	case errors.As(err, &syntax):
		before := data[:min(int(syntax.Offset), len(data))]
		line := 1 + bytes.Count(before, []byte{'\n'})
		column := max(len(before)-1-bytes.LastIndexByte(before, '\n'), 1)
		what := strings.TrimPrefix(syntax.Error(), "json: ")
		return fmt.Errorf("is not JSON: line %d, column %d: %s", line, column, what)
	case errors.As(err, &kind):
		found, _, _ := strings.Cut(kind.Value, " ") // "number 1.5"
		return fmt.Errorf("is %s, want %s", jsonWord(found), jsonWord(kind.Type.Kind().String()))
	}
	return err
}

// jsonWord is a kind of JSON value, by encoding/json's name of it or by that of the Go kind it goes into.
func jsonWord(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "array", "slice":
		return "a list"
	case "object", "map", "struct", "ptr":
		return "an object"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	}
	return "a " + kind // string, number
}

// indentJSON is how JSON files look on disk: two spaces, a newline at the end.
func indentJSON(v any) ([]byte, error) {
	raw, err := jsonl.Encode(v)
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
