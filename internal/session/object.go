package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
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
