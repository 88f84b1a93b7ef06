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

// Object is a JSON object that keeps the order of its members and the text of the values nobody touched. It is how
// a file written by another version, or another tool, is rewritten without losing what this one does not know.
// The zero value is an empty object.
type Object struct {
	keys []string
	vals map[string]json.RawMessage
}

// ParseObject reads one JSON object. Of a repeated key the last value counts, as in every JSON reader of note.
func ParseObject(data []byte) (*Object, error) {
	o := &Object{}
	if err := o.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return o, nil
}

// UnmarshalJSON replaces o by the object in data.
func (o *Object) UnmarshalJSON(data []byte) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	if kind := jsonKind(data); kind != "an object" {
		return fmt.Errorf("is %s, want an object", kind)
	}
	*o = Object{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		o.SetRaw(key.(string), raw)
	}
	return nil
}

// MarshalJSON writes the members in their order.
func (o *Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, k := range o.Keys() {
		if i > 0 {
			b = append(b, ',')
		}
		key, err := encodeJSON(k)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, key...), ':'), o.vals[k]...)
	}
	return append(b, '}'), nil
}

// Keys are the member names in order. The slice is the object's own.
func (o *Object) Keys() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// Get is the text of a member's value.
func (o *Object) Get(key string) (raw json.RawMessage, ok bool) {
	if o == nil {
		return nil, false
	}
	raw, ok = o.vals[key]
	return raw, ok
}

// SetRaw sets a member to a value that is JSON already; a new member goes to the end.
func (o *Object) SetRaw(key string, raw json.RawMessage) {
	if o.vals == nil {
		o.vals = map[string]json.RawMessage{}
	}
	if _, ok := o.vals[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = raw
}

// Set sets a member to the JSON of v.
func (o *Object) Set(key string, v any) error {
	raw, err := encodeJSON(v)
	if err == nil {
		o.SetRaw(key, raw)
	}
	return err
}

// Delete removes a member.
func (o *Object) Delete(key string) {
	if _, ok := o.Get(key); ok {
		delete(o.vals, key)
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
}

// clone is a copy that can be changed on its own; a nil object gives an empty one.
func (o *Object) clone() *Object {
	c := &Object{}
	for _, k := range o.Keys() {
		c.SetRaw(k, o.vals[k])
	}
	return c
}

// member is one field of a struct that takes part in bind and overlay.
type member struct {
	name      string
	omitEmpty bool
	value     reflect.Value
}

func members(v reflect.Value) []member {
	var ms []member
	for i := range v.NumField() {
		name, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			ms = append(ms, member{name, strings.Contains(opts, "omitempty"), v.Field(i)})
		}
	}
	return ms
}

// bind fills the tagged fields of the struct that dst points to from the members of o with exactly those names
// (encoding/json would also take "Status" for "status"). A missing or null member is the zero value.
func (o *Object) bind(dst any) error {
	for _, m := range members(reflect.ValueOf(dst).Elem()) {
		raw, ok := o.Get(m.name)
		m.value.SetZero()
		if !ok || string(raw) == "null" {
			continue
		}
		if m.value.CanInt() {
			if n, ok := wholeNumber(raw); ok {
				m.value.SetInt(n)
				continue
			}
		}
		if err := json.Unmarshal(raw, m.value.Addr().Interface()); err != nil {
			return fmt.Errorf("%q %w", m.name, shapeError(err, m.value.Type()))
		}
	}
	return nil
}

// overlay writes the tagged fields of src (a struct, or a pointer to one) over o. A value that says the same as
// before keeps its old text, a null stays null while the field is empty, and what the struct does not name stays.
func (o *Object) overlay(src any) error {
	for _, m := range members(reflect.Indirect(reflect.ValueOf(src))) {
		old, had := o.Get(m.name)
		empty := m.value.IsZero() || isCollection(m.value) && m.value.Len() == 0
		if empty && string(old) == "null" {
			continue
		}
		if empty && m.omitEmpty {
			o.Delete(m.name)
			continue
		}
		raw, err := encodeMember(m.value)
		if err != nil {
			return fmt.Errorf("%q: %w", m.name, err)
		}
		if !had || !sameJSON(old, raw) {
			o.SetRaw(m.name, raw)
		}
	}
	return nil
}

// isCollection tells lists and maps, but not a json.RawMessage.
func isCollection(v reflect.Value) bool {
	return v.Kind() == reflect.Map || v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8
}

// encodeMember writes an empty list or map as [] or {}, where Go's nil would be null.
func encodeMember(v reflect.Value) ([]byte, error) {
	if isCollection(v) && v.Len() == 0 {
		if v.Kind() == reflect.Map {
			return []byte("{}"), nil
		}
		return []byte("[]"), nil
	}
	return encodeJSON(v.Interface())
}

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
