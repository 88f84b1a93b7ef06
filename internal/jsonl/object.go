package jsonl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// The members of a JSON object are the tagged fields of a struct, also of embedded structs. Unlike encoding/json, names
// match exactly, a member that does not fit spoils no other, and unknown members can be kept.

type member struct {
	name      string
	index     []int
	omitEmpty bool
}

// layout is a struct's members: as they are declared, and sorted by name.
type layout struct{ declared, sorted []member }

var layouts sync.Map // reflect.Type to *layout

func layoutOf(t reflect.Type) *layout {
	if known, ok := layouts.Load(t); ok {
		return known.(*layout)
	}
	l := &layout{}
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		m := member{name, f.Index, opts == "omitempty"}
		// A field takes precedence over a field of an embedded struct.
		if i := slices.IndexFunc(l.declared, func(m member) bool { return m.name == name }); i < 0 {
			l.declared = append(l.declared, m)
		} else if len(f.Index) < len(l.declared[i].index) {
			l.declared[i] = m
		}
	}
	l.sorted = slices.SortedFunc(slices.Values(l.declared),
		func(a, b member) int { return cmp.Compare(a.name, b.name) })
	layouts.Store(t, l)
	return l
}

// AppendObject appends the struct that src points to as a JSON object, and behind its members the others, by name. A
// list that is nil is an empty one.
func AppendObject(b *bytes.Buffer, src any, sorted bool, others map[string]json.RawMessage) error {
	v := reflect.ValueOf(src).Elem()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	value := func(v any) error {
		err := enc.Encode(v)
		if err == nil {
			b.Truncate(b.Len() - 1) // the newline with which Encode ends
		}
		return err
	}
	sep := byte('{')
	add := func(name string, v any) error {
		b.WriteByte(sep)
		sep = ','
		_ = value(name) // a string always has a JSON text
		b.WriteByte(':')
		if err := value(v); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	}
	members := layoutOf(v.Type()).declared
	if sorted {
		members = layoutOf(v.Type()).sorted
	}
	for _, m := range members {
		f := v.FieldByIndex(m.index)
		isList := f.Kind() == reflect.Slice && f.Type().Elem().Kind() != reflect.Uint8
		field := f.Interface()
		switch empty := f.IsZero() || (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0; {
		case empty && m.omitEmpty:
			continue
		case empty && isList:
			field = []struct{}{}
		}
		if err := add(m.name, field); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if err := add(name, others[name]); err != nil {
			return err
		}
	}
	if sep == '{' {
		b.WriteByte(sep)
	}
	b.WriteByte('}')
	return nil
}

// ReadObject fills the struct that dst points to from a JSON object. Only members that the struct has are decoded; null
// is none, and of a repeated name the last counts. misfit gets each that does not fit its field, which stays as it is,
// and other, unless it is nil, those that there is no field for. Nothing of data is kept.
func ReadObject(data []byte, dst any, misfit func(name string, field reflect.Value, value string, why error),
	other func(name, value string)) {
	v := reflect.ValueOf(dst).Elem()
	members := layoutOf(v.Type()).sorted
	gjson.Parse(Text(data)).ForEach(func(key, value gjson.Result) bool {
		i, found := slices.BinarySearchFunc(members, key.Str, func(m member, name string) int {
			return cmp.Compare(m.name, name)
		})
		if found {
			field := v.FieldByIndex(members[i].index)
			if err := set(field, value); err != nil {
				misfit(members[i].name, field, strings.Clone(value.Raw), err)
			}
		} else if other != nil {
			other(strings.Clone(key.Str), strings.Clone(value.Raw))
		}
		return true
	})
}

// set decodes one value. What of a list or an object does not fit is left at zero, and the rest decoded.
func set(f reflect.Value, value gjson.Result) error {
	switch {
	case value.Type == gjson.Null:
		f.SetZero()
		return nil
	case f.Kind() == reflect.String && value.Type == gjson.String:
		f.SetString(strings.Clone(value.Str))
		return nil
	case f.CanInt() && value.Type == gjson.Number:
		if n, ok := wholeNumber(value.Raw); ok {
			f.SetInt(n)
			return nil
		}
	case f.Kind() == reflect.Pointer:
		p := reflect.New(f.Type().Elem())
		err := set(p.Elem(), value)
		if err == nil || !p.Elem().IsZero() {
			f.Set(p)
		}
		return err
	}
	return json.Unmarshal([]byte(value.Raw), f.Addr().Interface())
}

// wholeNumber reads a JSON number as an integer, also in the forms 12.0 and 1e6 that other writers use.
func wholeNumber(raw string) (int64, bool) {
	const maxExact = 1 << 53 // up to which every whole number is a float64
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f < -maxExact || f > maxExact || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}
