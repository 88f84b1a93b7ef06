package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// The JSON files of a session are also written by other versions and by other tools. A struct that embeds kept keeps
// what it has no field for: decode reads both, encode writes both.

// extra are the members of a JSON object that its struct has no field for, as they were read.
type extra map[string]json.RawMessage

type kept struct{ others extra }

func (k *kept) unknown() *extra { return &k.others }

// loose is kept for what other tools write in shapes of their own: it never fails to be read. A member that does not
// fit its field leaves that at zero, and what is no object at all is kept as the member "other".
type loose struct{ kept }

func (*loose) anyShape() {}

type keeper interface{ unknown() *extra }

var keeps = reflect.TypeFor[keeper]()

// decode fills dst, which points to a struct, from a JSON object.
func decode(data []byte, dst any) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return errors.New("is null, want an object")
	}
	return decodeObject(data, reflect.ValueOf(dst).Elem())
}

// decodeObject fills the tagged fields of a struct from the members of a JSON object with exactly those names
// (encoding/json would also take "Status" for "status"). A missing or null member is the zero value. Of a repeated name
// the last value counts. The error is that of the first member that does not fit its field; the others are filled all
// the same.
func decodeObject(data []byte, v reflect.Value) (err error) {
	_, isLoose := v.Addr().Interface().(interface{ anyShape() })
	k, isKeeper := v.Addr().Interface().(keeper)
	var members extra
	if err := json.Unmarshal(data, &members); isLoose && err != nil {
		*k.unknown() = extra{"other": bytes.Clone(data)}
		return nil
	} else if err != nil {
		return jsonError(data, err)
	}
	for i := range v.NumField() {
		name, _ := jsonName(v.Type().Field(i))
		raw, ok := members[name]
		if !ok || name == "" {
			continue
		}
		delete(members, name)
		if wrong := decodeValue(raw, v.Field(i)); wrong != nil && err == nil && !isLoose {
			err = fmt.Errorf("%q %w", name, wrong)
		}
	}
	if isKeeper {
		*k.unknown() = members
	}
	return err
}

func decodeValue(raw []byte, v reflect.Value) error {
	n, whole := wholeNumber(raw)
	switch kind := v.Kind(); {
	case string(raw) == "null":
		return nil
	case v.CanInt() && whole:
		v.SetInt(n)
		return nil
	case v.CanAddr() && v.Addr().Type().Implements(keeps):
		return decodeObject(raw, v)
	case kind == reflect.Pointer && v.Type().Implements(keeps):
		v.Set(reflect.New(v.Type().Elem()))
		return decodeObject(raw, v.Elem())
	case kind == reflect.Slice && reflect.PointerTo(v.Type().Elem()).Implements(keeps):
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return jsonError(raw, err)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, raw := range list {
			if err := decodeObject(raw, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return jsonError(raw, err)
	}
	return nil
}

// encode is the JSON of what src is or points to: of a struct its members, and behind them the others, sorted by name.
func encode(src any) ([]byte, error) { return appendValue(nil, reflect.ValueOf(src)) }

func appendValue(text []byte, v reflect.Value) (_ []byte, err error) {
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Implements(keeps) && !v.IsNil():
		return appendObject(text, v.Elem())
	case v.CanAddr() && v.Addr().Type().Implements(keeps):
		return appendObject(text, v)
	case v.Kind() == reflect.Slice && reflect.PointerTo(v.Type().Elem()).Implements(keeps):
		text = append(text, '[')
		for i := range v.Len() {
			if i > 0 {
				text = append(text, ',')
			}
			if text, err = appendObject(text, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return append(text, ']'), nil
	}
	raw, err := jsonl.Encode(v.Interface())
	return append(text, raw...), err
}

func appendObject(text []byte, v reflect.Value) (_ []byte, err error) {
	text = append(text, '{')
	begun := len(text)
	member := func(name string) {
		if len(text) > begun {
			text = append(text, ',')
		}
		quoted, _ := jsonl.Encode(name) // a string always has a JSON text
		text = append(append(text, quoted...), ':')
	}
	for i := range v.NumField() {
		name, omitEmpty := jsonName(v.Type().Field(i))
		field := v.Field(i)
		if name == "" || omitEmpty && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		member(name)
		if text, err = appendValue(text, field); err != nil {
			return nil, err
		}
	}
	others := *v.Addr().Interface().(keeper).unknown()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		member(name)
		raw, err := jsonl.Encode(others[name])
		if err != nil {
			return nil, err
		}
		text = append(text, raw...)
	}
	return append(text, '}'), nil
}

// jsonName is a field's name in JSON, "" where it has none.
func jsonName(f reflect.StructField) (name string, omitEmpty bool) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-"), rest == "omitempty"
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
	raw, err := encode(v)
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
