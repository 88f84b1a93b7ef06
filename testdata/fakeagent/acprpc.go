package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rpc is a message of either side.
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *ACPError       `json:"error,omitempty"`
}

// listen reads the client's messages.
func (a *agent) listen() {
	defer close(a.in)
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) > 0 {
				fault(fmt.Errorf("half a line: %.80q", line))
			}
			return
		}
		var m rpc
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&m); err != nil || m.Version != "2.0" {
			fault(fmt.Errorf("no message: %v: %.200q", err, line))
			continue
		}
		a.in <- m
	}
}

// next returns the next message of the client that is not an answer, or io.EOF at the end of its input.
func (a *agent) next() (rpc, error) {
	for {
		m, ok := <-a.in
		if !ok {
			if len(a.open) > 0 {
				return m, fmt.Errorf("%d requests were never answered", len(a.open))
			}
			return m, io.EOF
		}
		if m.Method != "" {
			return m, a.check(m)
		}
		if err := a.answered(m); err != nil {
			return m, err
		}
	}
}

// answered checks an answer.
func (a *agent) answered(m rpc) error {
	check, ok := a.open[string(m.ID)]
	if !ok {
		return fmt.Errorf("an answer to nothing: id %s", m.ID)
	}
	delete(a.open, string(m.ID))
	if (m.Result == nil) == (m.Error == nil) {
		return fmt.Errorf("an answer with result and error, or neither: id %s", m.ID)
	}
	return check(m)
}

// members are the members of a method's parameters, all of them required.
var members = map[string]string{
	"initialize": "clientCapabilities clientInfo protocolVersion", "authenticate": "methodId",
	"session/new": "cwd mcpServers", "session/load": "cwd mcpServers sessionId",
	"session/resume": "cwd mcpServers sessionId", "session/prompt": "prompt sessionId",
	"session/set_mode": "modeId sessionId", "session/set_model": "modelId sessionId",
	"session/set_config_option": "configId sessionId value", "session/cancel": "sessionId",
}

// check compares a request or notification with the schema and the expected order.
func (a *agent) check(m rpc) error {
	want, known := members[m.Method]
	var params map[string]json.RawMessage
	if err := json.Unmarshal(m.Params, &params); err != nil || !known {
		return fmt.Errorf("method %q, params %.80q: %v", m.Method, m.Params, err)
	}
	var got []string
	for name := range params {
		got = append(got, name)
	}
	slices.Sort(got)
	if strings.Join(got, " ") != want {
		return fmt.Errorf("%s has the parameters %s, not %s", m.Method, got, want)
	}
	if session, has := params["sessionId"]; has && !strings.HasSuffix(m.Method, "load") &&
		!strings.HasSuffix(m.Method, "resume") && string(session) != fmt.Sprintf("%q", a.id) {
		return fmt.Errorf("%s is about %s, not %s", m.Method, session, a.id)
	}
	if m.Method == "session/cancel" {
		if a.cancels++; m.ID != nil || a.cancels > 1 || a.stage != 3 {
			return fmt.Errorf("cancel %d with id %q at stage %d", a.cancels, m.ID, a.stage)
		}
		return nil
	}
	var id int64
	if err := json.Unmarshal(m.ID, &id); err != nil || id <= a.lastID {
		return fmt.Errorf("%s has the id %q after %d", m.Method, m.ID, a.lastID)
	}
	a.lastID = id
	return a.inOrder(m, params)
}

func (a *agent) inOrder(m rpc, params map[string]json.RawMessage) error {
	stage := map[string]int{"authenticate": 1, "session/new": 1, "session/load": 1, "session/resume": 1,
		"session/set_mode": 2, "session/set_model": 2, "session/set_config_option": 2, "session/prompt": 2}[m.Method]
	if a.stage != stage {
		return fmt.Errorf("%s at stage %d", m.Method, a.stage)
	}
	var cwd string
	if raw, has := params["cwd"]; has {
		err := json.Unmarshal(raw, &cwd)
		if err != nil || !filepath.IsAbs(cwd) || string(params["mcpServers"]) != "[]" {
			return fmt.Errorf("%s with %s", m.Method, m.Params)
		}
	}
	return nil
}

func (a *agent) send(m map[string]any) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	a.out.Write(append(line, '\n'))
	a.out.Flush()
}

// reply answers a request.
func (a *agent) reply(m rpc, result any) {
	if a.setup.Silent != m.Method {
		a.send(map[string]any{"id": m.ID, "result": result})
	}
}

func (a *agent) fail(m rpc, e *ACPError) { a.send(map[string]any{"id": m.ID, "error": e}) }

// ask sends a request; check checks the answer.
func (a *agent) ask(method string, params any, check func(rpc) error) string {
	a.asked++
	id := fmt.Sprintf(`"ask-%d"`, a.asked)
	a.open[id] = check
	a.send(map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	return id
}

func (a *agent) update(u map[string]any) {
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": a.id, "update": u}})
}

func chunk(kind, id, text string) map[string]any {
	u := map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}}
	if id != "" {
		u["messageId"] = id
	}
	return u
}
