package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// member is a field of an event's struct, or of its Scope, as a member of its payload.
type member struct {
	name      string
	index     []int
	omitEmpty bool
}

// layouts has the members of each event's struct, by name: a payload's members are sorted.
var layouts sync.Map // reflect.Type to []member

func layoutOf(t reflect.Type) []member {
	if known, ok := layouts.Load(t); ok {
		return known.([]member)
	}
	var all []member
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		// A field outranks one of the same name in Scope.
		if i := slices.IndexFunc(all, func(m member) bool { return m.name == name }); i >= 0 {
			if len(f.Index) < len(all[i].index) {
				all[i] = member{name, f.Index, opts == "omitempty"}
			}
			continue
		}
		all = append(all, member{name, f.Index, opts == "omitempty"})
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	layouts.Store(t, all)
	return all
}

// encode appends the payload of an event: its members sorted by name, an empty list as [].
func encode(b *bytes.Buffer, ev Event) error {
	if u, ok := ev.(*Unknown); ok {
		if !jsonl.IsObject(bytes.TrimSpace(u.Payload)) {
			return errors.New("the payload is no JSON object")
		}
		return json.Compact(b, u.Payload)
	}
	v := reflect.ValueOf(ev).Elem()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	sep := ""
	for _, m := range layoutOf(v.Type()) {
		f := v.FieldByIndex(m.index)
		if m.omitEmpty && isEmpty(f) {
			continue
		}
		b.WriteString(sep + `"` + m.name + `":`)
		sep = ","
		if f.Kind() == reflect.Slice && f.IsNil() && f.Type().Elem().Kind() != reflect.Uint8 {
			b.WriteString("[]")
			continue
		}
		if err := enc.Encode(f.Interface()); err != nil {
			return fmt.Errorf("%q: %w", m.name, err)
		}
		b.Truncate(b.Len() - 1) // the newline with which Encode ends
	}
	b.WriteByte('}')
	return nil
}

func isEmpty(f reflect.Value) bool {
	if f.Kind() == reflect.Slice || f.Kind() == reflect.Map {
		return f.Len() == 0
	}
	return f.IsZero()
}

// decode fills the struct that dst points to from a payload. Only the members that the struct has are decoded, because
// most of a record is text that nobody asks for; a member of another kind than its field is left out.
func decode(payload []byte, dst any) {
	v := reflect.ValueOf(dst).Elem()
	layout := layoutOf(v.Type())
	gjson.Parse(jsonl.Text(payload)).ForEach(func(key, value gjson.Result) bool {
		i, found := slices.BinarySearchFunc(layout, key.Str, func(m member, name string) int {
			return cmp.Compare(m.name, name)
		})
		if found {
			set(v.FieldByIndex(layout[i].index), value)
		}
		return true
	})
}

// set decodes one value; false leaves the field as it was.
func set(f reflect.Value, value gjson.Result) bool {
	switch f.Kind() {
	case reflect.String:
		f.SetString(strings.Clone(value.String())) // of what is no string its JSON
		return true
	case reflect.Int, reflect.Int64:
		if value.Type == gjson.Number {
			f.SetInt(value.Int()) // 12.0 and 1e6 too
		}
		return value.Type == gjson.Number
	case reflect.Pointer:
		p := reflect.New(f.Type().Elem())
		if value.Type == gjson.Null || !set(p.Elem(), value) {
			return false
		}
		f.Set(p)
		return true
	}
	// What of a list or an object does not fit is left at zero, and the rest decoded.
	err := json.Unmarshal([]byte(value.Raw), f.Addr().Interface())
	var misfit *json.UnmarshalTypeError
	return err == nil || errors.As(err, &misfit) && f.Kind() != reflect.Float64 && f.Kind() != reflect.Bool
}
