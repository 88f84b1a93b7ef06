package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// queue has a role's steps with their remaining uses; -1 is for ever.
type queue struct {
	steps []Step
	left  []int
	first int // steps before it are used up
}

func newQueue(steps []Step) *queue {
	q := &queue{steps: steps, left: make([]int, len(steps))}
	for i, st := range steps {
		q.left[i] = max(st.Repeat, 1)
		if st.Repeat == -1 {
			q.left[i] = -1
		}
	}
	return q
}

// next is the first step that is left and eligible for a request, or -1.
func (q *queue) next(text *haystack) int {
	for i := q.first; i < len(q.steps); i++ {
		if q.left[i] != 0 && text.holdsAll(q.steps[i].When) && text.lastHoldsAll(q.steps[i].WhenLast) {
			return i
		}
	}
	return -1
}

func (q *queue) use(i int) {
	if q.left[i] > 0 {
		q.left[i]--
	}
	for q.first < len(q.steps) && q.left[q.first] == 0 {
		q.first++
	}
}

func (q *queue) unused() int {
	n := 0
	for _, left := range q.left {
		n += max(left, 0)
	}
	return n
}

// mismatch names a text that the step expects and the request lacks, or that it forbids and the request has, or "".
func (st *Step) mismatch(text *haystack) string {
	for _, want := range st.Expect {
		if !text.holds(want) {
			return fmt.Sprintf("the request does not hold %q", want)
		}
	}
	for _, no := range st.Forbid {
		if text.holds(no) {
			return fmt.Sprintf("the request holds %q", no)
		}
	}
	return ""
}

// haystack is a request to search in. It finds a string in the raw JSON and in the messages' text, so a script can
// quote a line of a diff without escapes.
type haystack struct {
	raw, messages []byte
	decoded       []string // each message's strings, lazily
}

func newHaystack(raw, messages []byte) *haystack { return &haystack{raw: raw, messages: messages} }

func (h *haystack) texts() []string {
	if h.decoded == nil {
		h.decoded = []string{}
		for _, m := range elements(h.messages) {
			var v any
			var b strings.Builder
			if json.Unmarshal(m, &v) == nil {
				collect(&b, v)
			}
			h.decoded = append(h.decoded, b.String())
		}
	}
	return h.decoded
}

// collect joins all the strings in a value, one per line. Maps have no order; each string stays whole.
func collect(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
	case []any:
		for _, e := range v {
			collect(b, e)
		}
	case map[string]any:
		for _, e := range v {
			collect(b, e)
		}
	}
}

func (h *haystack) holds(s string) bool {
	if bytes.Contains(h.raw, []byte(s)) {
		return true
	}
	for _, t := range h.texts() {
		if strings.Contains(t, s) {
			return true
		}
	}
	return false
}

func (h *haystack) holdsAll(list []string) bool {
	for _, s := range list {
		if !h.holds(s) {
			return false
		}
	}
	return true
}

func (h *haystack) lastHoldsAll(list []string) bool {
	if len(list) == 0 {
		return true
	}
	texts := h.texts()
	if len(texts) == 0 {
		return false
	}
	for _, s := range list {
		if !strings.Contains(texts[len(texts)-1], s) {
			return false
		}
	}
	return true
}
