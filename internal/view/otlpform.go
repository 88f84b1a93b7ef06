package view

import (
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The messages of OTLP, for both of its encodings: the json tags name a field in JSON, the pb tags number it in
// protobuf, as opentelemetry/proto/trace/v1/trace.proto does. Libraries for them would cost every command their
// initialisation.
type (
	tracesData struct {
		ResourceSpans []*resourceSpans `json:"resourceSpans" pb:"1"`
	}
	resourceSpans struct {
		Resource   resource      `json:"resource" pb:"1"`
		ScopeSpans []*scopeSpans `json:"scopeSpans" pb:"2"`
	}
	resource struct {
		Attributes []attribute `json:"attributes" pb:"1"`
	}
	scopeSpans struct {
		Scope library `json:"scope" pb:"1"`
		Spans []*span `json:"spans" pb:"2"`
	}
	library struct {
		Name string `json:"name" pb:"1"`
	}
	span struct {
		TraceID    traceID     `json:"traceId" pb:"1"`
		ID         spanID      `json:"spanId" pb:"2"`
		Parent     spanID      `json:"parentSpanId,omitzero" pb:"4"`
		Name       string      `json:"name" pb:"5"`
		Kind       int64       `json:"kind" pb:"6"`
		Begin      moment      `json:"startTimeUnixNano" pb:"7"`
		End        moment      `json:"endTimeUnixNano" pb:"8"`
		Attributes []attribute `json:"attributes,omitempty" pb:"9"`
		Events     []spanEvent `json:"events,omitempty" pb:"11"`
		Links      []spanLink  `json:"links,omitempty" pb:"13"`
		Status     spanStatus  `json:"status" pb:"15"`

		attrs attributes // until it is put
	}
	// spanEvent is what happened in a span and has no length of its own.
	spanEvent struct {
		At         moment      `json:"timeUnixNano" pb:"1"`
		Name       string      `json:"name" pb:"2"`
		Attributes []attribute `json:"attributes,omitempty" pb:"3"`
	}
	spanLink struct {
		TraceID traceID `json:"traceId" pb:"1"`
		SpanID  spanID  `json:"spanId" pb:"2"`
	}
	spanStatus struct {
		Message string `json:"message,omitempty" pb:"2"`
		Code    int64  `json:"code,omitempty" pb:"3"`
	}
	attribute struct {
		Key   string   `json:"key" pb:"1"`
		Value anyValue `json:"value" pb:"2"`
	}
	// anyValue has one member that is not nil.
	anyValue struct {
		String *string    `json:"stringValue,omitempty" pb:"1"`
		Bool   *bool      `json:"boolValue,omitempty" pb:"2"`
		Int    *int64     `json:"intValue,string,omitempty" pb:"3"`
		Double *float64   `json:"doubleValue,omitempty" pb:"4"`
		Array  *valueList `json:"arrayValue,omitempty" pb:"5"`
	}
	valueList struct {
		Values []anyValue `json:"values" pb:"1"`
	}
)

// Values of OTLP's enumerations.
const (
	kindInternal = 1
	kindClient   = 3
	statusOK     = 1
	statusError  = 2
)

type (
	traceID [16]byte
	spanID  [8]byte
	// attributes are strings, int64s, float64s, bools and lists of strings, by name.
	attributes map[string]any
	// moment is a time in nanoseconds since 1970.
	moment uint64
)

// MarshalText is a trace's name in JSON.
func (id traceID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// MarshalText is a span's name in JSON.
func (id spanID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// MarshalText is a moment in JSON, where numbers of 64 bits are strings.
func (m moment) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(m), 10), nil }

// list is the attributes that say something in a fixed order, so that two exports are the same.
func (a attributes) list() []attribute {
	list := make([]attribute, 0, len(a))
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if a[key] != "" {
			list = append(list, attribute{key, valueOf(a[key])})
		}
	}
	return list
}

func valueOf(v any) (value anyValue) {
	switch v := v.(type) {
	case string:
		value.String = &v
	case bool:
		value.Bool = &v
	case int64:
		value.Int = &v
	case float64:
		value.Double = &v
	case []string:
		value.Array = &valueList{}
		for _, item := range v {
			value.Array.Values = append(value.Array.Values, valueOf(item))
		}
	}
	return value
}

// tracesOf is spans of one session as a message.
func tracesOf(session string, spans []*span) *tracesData {
	return &tracesData{[]*resourceSpans{{
		Resource:   resource{attributes{"service.name": "git-tilth", "session.id": session}.list()},
		ScopeSpans: []*scopeSpans{{Scope: library{"github.com/git-tilth/git-tilth"}, Spans: spans}},
	}}}
}

// protobuf is the message in protobuf's wire format. Messages of this type add up when they are joined.
func (t *tracesData) protobuf() []byte { return appendMessage(nil, reflect.ValueOf(t).Elem()) }

func appendMessage(b []byte, v reflect.Value) []byte {
	for i := range v.NumField() {
		number, err := strconv.ParseUint(v.Type().Field(i).Tag.Get("pb"), 10, 32)
		if f := v.Field(i); err == nil && !f.IsZero() {
			b = appendField(b, number, f)
		}
	}
	return b
}

// Types of a field on the wire, the lowest three bits of its tag.
const (
	wireVarint = iota
	wireFixed
	wireBytes
)

func appendField(b []byte, number uint64, v reflect.Value) []byte {
	tag := func(wire uint64) []byte { return binary.AppendUvarint(b, number<<3|wire) }
	sized := func(content []byte) []byte {
		return append(binary.AppendUvarint(tag(wireBytes), uint64(len(content))), content...)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return appendField(b, number, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			b = appendField(b, number, v.Index(i))
		}
		return b
	case reflect.Struct:
		return sized(appendMessage(nil, v))
	case reflect.Array:
		return sized(v.Bytes())
	case reflect.String:
		return sized([]byte(strings.ToValidUTF8(v.String(), "\uFFFD"))) // a receiver refuses anything else
	case reflect.Bool:
		return binary.AppendUvarint(tag(wireVarint), map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Int64:
		return binary.AppendUvarint(tag(wireVarint), uint64(v.Int()))
	case reflect.Uint64:
		return binary.LittleEndian.AppendUint64(tag(wireFixed), v.Uint())
	default:
		return binary.LittleEndian.AppendUint64(tag(wireFixed), math.Float64bits(v.Float()))
	}
}
