package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// node is a JSON value that grows by deltas. Strings are kept as the JSON text between their quotes: joined like that,
// an escaped surrogate pair or a rune that was torn apart between two deltas is whole again.
type node struct {
	scalar json.RawMessage // number, bool or null
	str    []byte
	isStr  bool
	keys   []string // an object's, in the order of their first appearance
	object map[string]*node
	list   []*node
	isList bool
	index  map[float64]*node // of the list, by the index that the pieces of an entry name
}

// onceFields are strings that servers repeat in every delta of the same thing instead of continuing them.
var onceFields = map[string]bool{"id": true, "type": true, "role": true, "format": true, "object": true}

// flowFields are strings that arrive in pieces; two equal pieces are two pieces.
var flowFields = map[string]bool{
	"content": true, "reasoning": true, "reasoning_content": true, "refusal": true, "arguments": true,
	"text": true, "summary": true, "data": true, "thinking": true,
}

// maxDepth is the depth to which deltas are merged. Deeper values are replaced as a whole.
const maxDepth = 32

// merge adds a delta of the field key.
func (n *node) merge(key string, delta json.RawMessage, depth int) {
	delta = bytes.TrimSpace(delta)
	if len(delta) == 0 {
		return
	}
	switch first := delta[0]; {
	case first == '"':
		n.mergeString(key, delta[1:len(delta)-1])
	case first == '{' && depth < maxDepth:
		n.mergeObject(delta, depth)
	case first == '[' && depth < maxDepth:
		n.mergeList(key, delta, depth)
	case first == 'n':
		if n.isEmpty() {
			n.scalar = delta
		}
	default:
		*n = node{scalar: delta}
	}
}

func (n *node) isEmpty() bool { return !n.isStr && n.object == nil && !n.isList }

func (n *node) mergeString(key string, inner []byte) {
	switch {
	case !n.isStr:
		*n = node{isStr: true, str: append([]byte(nil), inner...)}
	case onceFields[key] && len(n.str) > 0:
	case !flowFields[key] && bytes.Equal(n.str, inner):
	default:
		n.str = append(n.str, inner...)
	}
}

func (n *node) mergeObject(delta json.RawMessage, depth int) {
	if n.object == nil {
		*n = node{object: map[string]*node{}}
	}
	gjson.ParseBytes(delta).ForEach(func(k, value gjson.Result) bool {
		n.ensure(textOf(k)).merge(textOf(k), json.RawMessage(value.Raw), depth+1)
		return true
	})
}

func (n *node) ensure(key string) *node {
	child, ok := n.object[key]
	if !ok {
		child = &node{}
		n.object[key] = child
		n.keys = append(n.keys, key)
	}
	return child
}

func (n *node) mergeList(key string, delta json.RawMessage, depth int) {
	if !n.isList {
		*n = node{isList: true, index: map[float64]*node{}}
	}
	for _, p := range gjson.ParseBytes(delta).Array() {
		n.element(key, p).merge("", json.RawMessage(p.Raw), depth+1)
	}
}

// element is the entry of the list that a delta continues, or a new one.
func (n *node) element(key string, delta gjson.Result) *node {
	index, hasIndex := number(delta.Get("index"))
	id, kind := textOf(delta.Get("id")), textOf(delta.Get("type"))
	isCall := key == "tool_calls"
	begins := isCall && id != "" && textOf(delta.Get("function.name")) != ""
	last := n.index[index]
	if !hasIndex && len(n.list) > 0 {
		last = n.list[len(n.list)-1]
	}
	if last != nil {
		ownID, ownKind := textOf(last.get("id")), textOf(last.get("type"))
		isAnother := id != "" && ownID != "" && id != ownID || kind != "" && ownKind != "" && kind != ownKind
		// Some servers give every call the same index, or none at all: another id with a name is another call.
		// Without an index an entry of another list is whole.
		if !(begins && id != ownID || !isCall && (!hasIndex || isAnother)) {
			return last
		}
	}
	e := &node{}
	n.list = append(n.list, e)
	if hasIndex {
		n.index[index] = e
	}
	return e
}

// get returns the value of a field, or an empty result for a missing one, as gjson does.
func (n *node) get(key string) gjson.Result {
	if child, ok := n.object[key]; ok {
		return gjson.ParseBytes(child.append(nil))
	}
	return gjson.Result{}
}

func (n *node) drop(key string) {
	delete(n.object, key)
	n.keys = slices.DeleteFunc(n.keys, func(k string) bool { return k == key })
}

// append writes the value as JSON.
func (n *node) append(b []byte) []byte {
	switch {
	case n.isStr:
		return append(append(append(b, '"'), n.str...), '"')
	case n.object != nil:
		b = append(b, '{')
		for i, key := range n.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, marshal(key)...), ':')
			b = n.object[key].append(b)
		}
		return append(b, '}')
	case n.isList:
		b = append(b, '[')
		for i, e := range n.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.append(b)
		}
		return append(b, ']')
	case len(n.scalar) > 0:
		return append(b, n.scalar...)
	}
	return append(b, "null"...)
}
