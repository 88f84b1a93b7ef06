// Package record is the record of a session, events.jsonl: its events, and code to write, read and fold them.
//
// An event is one struct and one row of the table in events.go. A writer fills the struct; a reader switches on its
// type. The json tags are the contract with scripts and other tools.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Event is one event of the record: a pointer to a struct of this package that embeds Scope.
type Event interface {
	// Common returns the fields that all events share, for reading and setting.
	Common() *Scope
}

// MaxText is the maximum number of characters of a text in an event.
const MaxText = 16_000

// Roles that spend tokens; also the names of the members of a checkpoint's usage.
const (
	RoleWorker      = "worker"
	RoleEvaluator   = "evaluator"
	RoleInterview   = "interview"
	RoleSelfImprove = "self_improve"
)

// Scope is the position of an event in a run. Empty fields are omitted.
type Scope struct {
	TaskID  string `json:"task_id,omitempty"`
	TraceID string `json:"trace_id,omitempty"` // 32 hex digits, one per run of a task
	SpanID  string `json:"span_id,omitempty"`  // 16 hex digits, one per iteration
	Iter    int    `json:"iter,omitempty"`     // starts at 1
	Phase   string `json:"phase,omitempty"`    // one of the roles; empty for the worker
	// RolledForward marks an event that a process wrote for an earlier, killed process.
	RolledForward bool `json:"rolled_forward,omitempty"`
}

// Common is part of Event.
func (s *Scope) Common() *Scope { return s }

// Unknown is an event of a type that this program does not write.
type Unknown struct {
	Scope
	Type    string          `json:"-"`
	Payload json.RawMessage `json:"-"`
}

// row is a type of event.
type row struct {
	name  string
	label string // above the event on the page
	make  func() Event
	// durable events are fsynced: the seed, verdicts, commits, and the start or end of an operation. A done task
	// follows from the verdict before it.
	durable  bool
	position position
}

// position is the position of an event relative to an attempt. Readers that start at the record's end use it to derive
// the progress of a run.
type position uint8

const (
	inReview     position = 1 << iota // between a case and its verdict, or after the end of a run in between
	afterVerdict                      // between a verdict and a ledger's line that a killed process had not written
	afterStop                         // after a stop, which remains the session's last state
	outside                           // before the first iteration or after the last

	work  position = 0 // part of an iteration
	aside          = inReview | afterVerdict | afterStop | outside
)

var (
	byName = map[string]row{}
	byType = map[reflect.Type]row{}
)

func init() {
	for _, r := range rows {
		byName[r.name] = r
		byType[reflect.TypeOf(r.make())] = r
	}
}

// TypeOf returns the name of an event's type in the record.
func TypeOf(ev Event) string {
	if u, ok := ev.(*Unknown); ok {
		return u.Type
	}
	return byType[reflect.TypeOf(ev)].name
}

// Labels returns the display names of the event types.
func Labels() map[string]string {
	labels := map[string]string{}
	for name, r := range byName {
		labels[name] = r.label
	}
	return labels
}

// Types returns the names of the events that this program writes, in their order in a session.
func Types() []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return names
}

// Decode reads the payload of an event of the named type. Missing members, and members of another type, are empty. The
// result does not share memory with payload.
func Decode(typ string, payload []byte) Event {
	r, known := byName[typ]
	if !known {
		u := &Unknown{Type: typ, Payload: append(json.RawMessage(nil), payload...)}
		_ = json.Unmarshal(payload, u)
		return u
	}
	ev := r.make()
	_ = json.Unmarshal(payload, ev)
	return ev
}

// Optional returns a text that is null in the record if it is empty.
func Optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// JSON encodes a value for an event: compact, with <, > and & unescaped. A value that cannot be encoded is null.
func JSON(v any) json.RawMessage {
	raw, err := jsonl.Encode(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// encode appends the payload of an event: its members sorted by name, an empty list as [].
func encode(b *bytes.Buffer, ev Event) error {
	if u, ok := ev.(*Unknown); ok {
		if !jsonl.IsObject(bytes.TrimSpace(u.Payload)) {
			return errors.New("the payload is not a JSON object")
		}
		return json.Compact(b, u.Payload)
	}
	text, err := jsonl.Encode(ev)
	if err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err = json.Unmarshal(text, &members); err == nil {
		text, err = jsonl.Encode(members)
		b.Write(text)
	}
	return err
}
