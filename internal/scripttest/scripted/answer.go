package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// turn is a request and the step that answers it.
type turn struct {
	request Request
	model   []byte // as JSON
	step    *Step
}

const defaultUsage = `{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}`

func (st *Step) status() int {
	switch {
	case st.Drop || st.Hang:
		return 0
	case st.Status != 0:
		return st.Status
	}
	return http.StatusOK
}

func (t *turn) answer(w http.ResponseWriter, r *http.Request) {
	if !pause(r.Context(), time.Duration(t.step.DelayMS)*time.Millisecond) {
		return
	}
	switch {
	case t.step.Hang:
		<-r.Context().Done()
		return
	case t.step.Drop:
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
	body := t.body()
	header := w.Header()
	header.Set("Content-Type", "application/json")
	for name, value := range t.step.Headers {
		header.Set(name, value)
	}
	if t.step.Cut != nil {
		header.Set("Content-Length", fmt.Sprint(len(body)))
		body = body[:min(len(body), *t.step.Cut)]
	}
	w.WriteHeader(t.step.status())
	t.write(w, r, body)
	if t.step.Cut != nil {
		http.NewResponseController(w).Flush() // the connection is broken off next
		panic(http.ErrAbortHandler)
	}
}

// write sends a body whole, or in pieces with a pause between them.
func (t *turn) write(w http.ResponseWriter, r *http.Request, body []byte) {
	drip := time.Duration(t.step.DripMS) * time.Millisecond
	if drip == 0 {
		w.Write(body) // a client that left needs no answer
		return
	}
	out := http.NewResponseController(w)
	for len(body) > 0 {
		n := min(len(body), 16)
		if _, err := w.Write(body[:n]); err != nil || out.Flush() != nil {
			return
		}
		body = body[n:]
		if !pause(r.Context(), drip) {
			return
		}
	}
}

// pause waits; false if the client left first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// body returns the answer.
func (t *turn) body() []byte {
	st := t.step
	switch {
	case st.Raw != nil:
		return []byte(*st.Raw)
	case len(st.Error) > 0:
		return wrap(`{"error":`, st.Error, `}`)
	case st.status() >= 400:
		return errorBody("scripted_error", fmt.Sprintf("the script answers with status %d", st.Status))
	}
	return t.completion()
}

func wrap(before string, raw []byte, after string) []byte {
	return append(append([]byte(before), raw...), after...)
}

func (t *turn) modelName() []byte {
	if len(t.model) == 0 {
		return []byte(`"scripted"`)
	}
	return t.model
}

// completion is a chat completion.
func (t *turn) completion() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"id":"scripted-%d","object":"chat.completion","created":0,"model":%s,"choices":[{"index":0,"message":`,
		t.request.N, t.modelName())
	b.Write(t.step.message(t.request.N))
	fmt.Fprintf(&b, `,"finish_reason":%q`, t.step.finish())
	if len(t.step.ChoiceError) > 0 {
		b.Write(wrap(`,"error":`, t.step.ChoiceError, ""))
	}
	b.WriteString(`}],"usage":`)
	b.Write(t.step.usage())
	b.WriteString("}")
	return b.Bytes()
}

func (st *Step) usage() []byte {
	switch {
	case len(st.Usage) > 0:
		return st.Usage
	case st.Empty:
		return []byte(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`)
	}
	return []byte(defaultUsage)
}

func (st *Step) finish() string {
	switch {
	case st.FinishReason != "":
		return st.FinishReason
	case len(st.Tools) > 0:
		return "tool_calls"
	}
	return "stop"
}

// message returns the assistant's message of the nth request. Calls without an id get one made from n and their index.
func (st *Step) message(n int) json.RawMessage {
	if len(st.Message) > 0 {
		return st.Message
	}
	var b bytes.Buffer
	b.WriteString(`{"role":"assistant","content":`)
	if st.Content == "" && len(st.Tools) > 0 {
		b.WriteString("null")
	} else {
		b.Write(quote(st.Content))
	}
	if st.Reasoning != "" {
		b.Write(wrap(`,"reasoning":`, quote(st.Reasoning), ""))
	}
	if len(st.ReasoningDetails) > 0 {
		b.Write(wrap(`,"reasoning_details":`, st.ReasoningDetails, ""))
	}
	for i, t := range st.Tools {
		b.WriteString([]string{`,"tool_calls":[`, ","}[min(i, 1)])
		fmt.Fprintf(&b, `{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`,
			quote(t.id(n, i)), quote(t.Name), quote(t.arguments()))
	}
	if len(st.Tools) > 0 {
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (t Tool) id(n, i int) string {
	if t.ID != "" {
		return t.ID
	}
	return fmt.Sprintf("call_%d_%d", n, i)
}

func (t Tool) arguments() string {
	var text string
	switch {
	case len(t.Args) == 0:
		return "{}"
	case json.Unmarshal(t.Args, &text) == nil:
		return text
	}
	return string(t.Args)
}

func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string always encodes
	return bytes.TrimRight(b.Bytes(), "\n")
}
