package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Script has one queue of steps for each role. See the package's documentation.
type Script struct {
	Worker      []Step `json:"worker,omitempty"`
	Evaluator   []Step `json:"evaluator,omitempty"`
	Interview   []Step `json:"interview,omitempty"`
	SelfImprove []Step `json:"self_improve,omitempty"`
	// Key, if set, is the bearer token that every request must carry; others get a 401.
	Key string `json:"key,omitempty"`
	// Models, if set, is the answer to GET /models.
	Models json.RawMessage `json:"models,omitempty"`
	// Lenient turns off the checks of the history, VerifyEcho adds one.
	Lenient    bool `json:"lenient,omitempty"`
	VerifyEcho bool `json:"verify_echo,omitempty"`
}

// Step is one answer.
type Step struct {
	// Note is for the script's reader.
	Note string `json:"note,omitempty"`

	// The assistant's answer.
	Content          string          `json:"content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	Tools            []Tool          `json:"tools,omitempty"`
	Message          json.RawMessage `json:"message,omitempty"`
	FinishReason     string          `json:"finish_reason,omitempty"`
	Usage            json.RawMessage `json:"usage,omitempty"`
	Empty            bool            `json:"empty,omitempty"`

	// The failure.
	Status      int               `json:"status,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Error       json.RawMessage   `json:"error,omitempty"`
	ChoiceError json.RawMessage   `json:"choice_error,omitempty"`
	Raw         *string           `json:"raw,omitempty"`
	Cut         *int              `json:"cut,omitempty"`
	Drop        bool              `json:"drop,omitempty"`
	Hang        bool              `json:"hang,omitempty"`
	DelayMS     int               `json:"delay_ms,omitempty"`
	DripMS      int               `json:"drip_ms,omitempty"`

	// The conditions.
	Repeat   int     `json:"repeat,omitempty"`
	When     Strings `json:"when,omitempty"`
	WhenLast Strings `json:"when_last,omitempty"`
	Expect   Strings `json:"expect,omitempty"`
	Forbid   Strings `json:"forbid,omitempty"`
}

// Tool is a tool call of a step. Args is the arguments as a JSON object or, as a string, their text, valid or not.
type Tool struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
	ID   string          `json:"id,omitempty"`
}

// Strings is a list of strings. A script may have a single string instead.
type Strings []string

// UnmarshalJSON accepts a string or a list of strings.
func (s *Strings) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var one string
		if err := json.Unmarshal(b, &one); err != nil {
			return err
		}
		*s = Strings{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(s))
}

// Load reads a script file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script. A field that does not exist is an error: a misspelt one would be a step that does nothing.
func Parse(data []byte) (*Script, error) {
	var s Script
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, at(data, err, dec.InputOffset())
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value in the script")
	}
	return &s, s.check()
}

// at adds the line to a JSON error.
func at(data []byte, err error, offset int64) error {
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &wrongType):
		offset = wrongType.Offset
	}
	offset = max(0, min(offset, int64(len(data))))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:offset], []byte("\n")), err)
}

func (s *Script) queues() map[string][]Step {
	return map[string][]Step{
		RoleWorker: s.Worker, RoleEvaluator: s.Evaluator, RoleInterview: s.Interview, RoleSelfImprove: s.SelfImprove,
	}
}

func (s *Script) check() error {
	for role, steps := range s.queues() {
		for i, step := range steps {
			if err := step.check(); err != nil {
				return fmt.Errorf("%s, step %d: %w", role, i+1, err)
			}
		}
	}
	return nil
}

func (st Step) check() error {
	for _, t := range st.Tools {
		if t.Name == "" {
			return errors.New("a tool call without a name")
		}
	}
	switch {
	case st.Repeat < -1:
		return errors.New("repeat must be a count, or -1 for no end")
	case st.Status != 0 && (st.Status < 200 || st.Status > 599):
		return fmt.Errorf("status %d is not from 200 to 599", st.Status)
	case st.DelayMS < 0 || st.DripMS < 0 || st.Cut != nil && *st.Cut < 0:
		return errors.New("a time or length is negative")
	case len(st.Usage) > 0 && st.Usage[0] != '{':
		return errors.New("usage must be an object")
	case len(st.Message) > 0 && st.Message[0] != '{':
		return errors.New("message must be an object")
	}
	return nil
}
