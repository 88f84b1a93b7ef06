package view

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// The messages of OTLP in its JSON encoding. A library for them would cost every command its initialisation.
type (
	tracesData struct {
		ResourceSpans []*resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource      `json:"resource"`
		ScopeSpans []*scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope library `json:"scope"`
		Spans []*span `json:"spans"`
	}
	library struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID    traceID     `json:"traceId"`
		ID         spanID      `json:"spanId"`
		Parent     spanID      `json:"parentSpanId,omitzero"`
		Name       string      `json:"name"`
		Kind       int64       `json:"kind"`
		Begin      moment      `json:"startTimeUnixNano"`
		End        moment      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Events     []spanEvent `json:"events,omitempty"`
		Links      []spanLink  `json:"links,omitempty"`
		Status     spanStatus  `json:"status"`

		attrs attributes // until it is put
	}
	// spanEvent is what happened in a span and has no length of its own.
	spanEvent struct {
		At         moment      `json:"timeUnixNano"`
		Name       string      `json:"name"`
		Attributes []attribute `json:"attributes,omitempty"`
	}
	spanLink struct {
		TraceID traceID `json:"traceId"`
		SpanID  spanID  `json:"spanId"`
	}
	spanStatus struct {
		Message string `json:"message,omitempty"`
		Code    int64  `json:"code,omitempty"`
	}
	attribute struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	// anyValue has one member that is not nil.
	anyValue struct {
		String *string    `json:"stringValue,omitempty"`
		Bool   *bool      `json:"boolValue,omitempty"`
		Int    *int64     `json:"intValue,string,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *valueList `json:"arrayValue,omitempty"`
	}
	valueList struct {
		Values []anyValue `json:"values"`
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
