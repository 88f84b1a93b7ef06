package jsonl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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

// ReadObject fills the struct that dst points to from a JSON object. Only members with a field are decoded; null counts
// as missing, and the last of a repeated name counts. misfit gets each member that does not fit its field, which does
// not change; other, unless it is nil, gets members without a field. The result does not share memory with data.
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

// set decodes one value. In a list or an object, parts that do not fit stay zero.
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

// JSON from outside (endpoints, agent programs, tool arguments) is read through this file, which bounds its nesting and
// its numbers. gjson checks JSON by recursion and has no bound of its own.

// maxDepth is the deepest nesting of JSON from outside.
const maxDepth = 1000

// ErrDeep is the error for JSON that is nested deeper than maxDepth.
var ErrDeep = errors.New("JSON nested deeper than 1,000 levels")

// IsDeep reports whether a text, valid JSON or not, opens more than maxDepth lists and objects before it closes one.
func IsDeep[T ~string | ~[]byte](data T) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Parse reads one JSON value from outside.
func Parse(data []byte) (gjson.Result, error) {
	if IsDeep(data) {
		return gjson.Result{}, ErrDeep
	}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(data), nil
}

// First reads the JSON value with which a text from outside begins, and returns the value and its length in the text.
// With a syntax error, the length is how much of the text was read.
func First[T ~string | ~[]byte](data T) (value json.RawMessage, length int, err error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	if err = dec.Decode(&value); err != nil {
		length = len(data)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			length = int(syntax.Offset)
		}
	} else {
		length = int(dec.InputOffset())
	}
	if IsDeep(data[:length]) {
		return nil, length, ErrDeep
	}
	return value, length, err
}

const (
	maxTokens  = 1_000_000_000
	maxDollars = 10_000
)

// Tokens returns the number of tokens of one call, 0 for an impossible number.
func Tokens(n int64) int64 {
	if n < 0 || n > maxTokens {
		return 0
	}
	return n
}

// Dollars returns the cost of one call. An impossible cost (negative, not finite or too large) is unknown.
func Dollars(cost float64) (dollars float64, known bool) {
	if !(cost >= 0 && cost <= maxDollars) {
		return 0, false
	}
	return cost, true
}
