package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ACPSetup are the properties of an ACP agent for all of its runs.
type ACPSetup struct {
	Resume  string          `json:"resume"`  // "" is by load; "resume", "none"
	Version json.RawMessage `json:"version"` // protocol version of the answer; default 1
	Modes   []string        `json:"modes"`
	Models  []string        `json:"models"`
	Options bool            `json:"options"` // modes and models are configuration options
	Auth    string          `json:"auth"`    // "" for logged in; "needs:METHOD", or "terminal:METHOD"
	Replay  string          `json:"replay"`  // at a load: "" is all; "none"; "late" is the rest after the answer
	Loads   *ACPError       `json:"loads"`   // the answer to each load
	Silent  string          `json:"silent"`  // a method that is never answered
}

// ACPStep adds the actions of an ACP agent to a Step.
type ACPStep struct {
	Asks   []ACPAsk        `json:"asks"`  // permissions
	Noise  int             `json:"noise"` // number of meaningless lines between messages
	Crash  bool            `json:"crash"` // it ends in the middle
	Error  *ACPError       `json:"error"` // the answer to the prompt
	Stop   string          `json:"stop"`  // stop reason; "" is end_turn, "-" is none
	Usage  json.RawMessage `json:"usage"` // usage in the answer; default: by number; or "left out"
	Meta   json.RawMessage `json:"meta"`  // _meta of the answer
	Cost   float64         `json:"cost"`  // the conversation's running total
	Coin   string          `json:"coin"`
	Chunks []ACPChunk      `json:"chunks"` // replaces the text
	After  []ACPChunk      `json:"after"`  // sent after the answer, as is a tool call
	Under  float64         `json:"under"`  // seconds for which a subagent continues after the answer
	Quiet  bool            `json:"quiet"`  // sends nothing, and waits for a signal or the end of its input
	Long   int             `json:"long"`   // MiB of a line
}

// ACPChunk is a piece of a message.
type ACPChunk struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// ACPAsk is a request for a permission.
type ACPAsk struct {
	Kind    string   `json:"kind"`
	Path    string   `json:"path"`
	Options []string `json:"options"` // kinds; "" is allow_once, allow_always and reject_once
	Bare    bool     `json:"bare"`    // the request repeats neither kind nor place
	Diff    bool     `json:"diff"`    // the place is only in a change that it shows
	Unseen  bool     `json:"unseen"`  // the tool has no message but the request
	Files   string   `json:"files"`   // a method for the client's files or terminals instead of a permission
	Then    string   `json:"then"`    // after a refusal: "" continues; "cancelled" or "end_turn" end the turn
}

// ACPError is an error of JSON-RPC.
type ACPError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// agent is an ACP agent that checks the client against the protocol.
type agent struct {
	*call
	setup   ACPSetup
	in      chan rpc // closed at the end of the input
	out     *bufio.Writer
	lastID  int64
	asked   int
	open    map[string]func(rpc) error // our requests, with a check of the answer
	stage   int                        // 0 nothing, 1 initialized, 2 a conversation, 3 prompted
	loaded  bool
	logged  bool
	cancels int
	store   string
	past    []string
}

// playsACP reports whether this is a call of an agent by ACP.
func playsACP(kind string, args []string) bool {
	return strings.HasSuffix(kind, "-acp") || slices.Contains(args, "--acp") || len(args) > 0 && args[0] == "acp"
}

func playACP(kind string, args []string, dir string) int {
	a := &agent{call: &call{kind: kind, args: args, dir: dir, readOnly: filepath.Base(dir) == "outside"},
		in: make(chan rpc), out: bufio.NewWriter(os.Stdout), open: map[string]func(rpc) error{}, store: acpStore()}
	script, err := readScript()
	if err != nil {
		return complain(err)
	}
	a.setup = script.ACP[kind]
	go a.listen()
	err = a.serve()
	if errors.Is(err, errCrash) {
		a.out.Flush()
		return 9
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fault(err)
		return complain(err)
	}
	return 0
}

// errCrash ends it as a crash would.
var errCrash = errors.New("crash")

// fault logs a fault of the client.
func fault(err error) {
	f, failed := os.OpenFile(acpStore()+"faults", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if failed == nil {
		fmt.Fprintln(f, err)
		f.Close()
	}
}

// acpStore returns the path of the conversations: next to the log, which the sandbox allows.
func acpStore() string {
	log := os.Getenv("FAKEAGENT_LOG")
	if to, err := os.Readlink(log); err == nil {
		log = to
	}
	return log + ".acp-"
}

// serve answers the client until its input ends.
func (a *agent) serve() error {
	for {
		m, err := a.next()
		if err != nil {
			return err
		}
		switch m.Method {
		case "initialize":
			err = a.initialize(m)
		case "authenticate":
			a.logged = true
			a.reply(m, map[string]any{})
		case "session/new":
			a.begin(m)
		case "session/load", "session/resume":
			err = a.takeUp(m)
		case "session/set_mode", "session/set_model", "session/set_config_option":
			err = a.set(m)
		case "session/prompt":
			err = a.prompted(m)
		}
		if err != nil {
			return err
		}
	}
}

func (a *agent) initialize(m rpc) error {
	var p struct {
		ProtocolVersion    int
		ClientCapabilities struct {
			FS       struct{ ReadTextFile, WriteTextFile bool }
			Terminal bool
		}
		ClientInfo struct{ Name, Version string }
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	able := p.ClientCapabilities
	if p.ProtocolVersion != 1 || p.ClientInfo.Name != "git-tilth" || p.ClientInfo.Version == "" ||
		able.Terminal || able.FS.ReadTextFile || able.FS.WriteTextFile {
		return fmt.Errorf("initialize with %s", m.Params)
	}
	a.stage = 1
	caps := map[string]any{"loadSession": a.setup.Resume == ""}
	if a.setup.Resume == "resume" {
		caps["sessionCapabilities"] = map[string]any{"resume": map[string]any{}}
	}
	version := any(1)
	if a.setup.Version != nil {
		version = a.setup.Version
	}
	answer := map[string]any{"protocolVersion": version, "agentCapabilities": caps,
		"agentInfo": map[string]string{"name": a.kind, "title": "Fake " + a.kind, "version": "0.0.0"}}
	if how, method, ok := strings.Cut(a.setup.Auth, ":"); ok {
		way := map[string]string{"id": method, "name": method}
		if how == "terminal" {
			way["type"] = how
		}
		answer["authMethods"] = []any{way}
	}
	a.reply(m, answer)
	return nil
}

// opened returns the options of a conversation.
func (a *agent) opened() map[string]any {
	out := map[string]any{}
	if a.setup.Options {
		var options []any
		for category, values := range map[string][]string{"mode": a.setup.Modes, "model": a.setup.Models} {
			var list []any
			for _, v := range values {
				list = append(list, map[string]string{"value": v, "name": v})
			}
			if list != nil {
				group := map[string]any{"group": "g", "name": "g", "options": list}
				options = append(options, map[string]any{"id": "the-" + category, "name": category,
					"category": category, "type": "select", "currentValue": values[0], "options": []any{group}})
			}
		}
		out["configOptions"] = options
		return out
	}
	list := func(values []string, id string) (all []any) {
		for _, v := range values {
			all = append(all, map[string]string{id: v, "name": v})
		}
		return all
	}
	if a.setup.Modes != nil {
		out["modes"] = map[string]any{"currentModeId": a.setup.Modes[0], "availableModes": list(a.setup.Modes, "id")}
	}
	if a.setup.Models != nil {
		out["models"] = map[string]any{"currentModelId": a.setup.Models[0],
			"availableModels": list(a.setup.Models, "modelId")}
	}
	return out
}

func (a *agent) begin(m rpc) {
	if a.setup.Auth != "" && !a.logged {
		a.fail(m, &ACPError{Code: -32000, Message: "Authentication required"})
		return
	}
	a.id = newID()
	a.stage = 2
	out := a.opened()
	out["sessionId"] = a.id
	a.reply(m, out)
	a.update(map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
}

func (a *agent) takeUp(m rpc) error {
	byLoad := m.Method == "session/load"
	if byLoad != (a.setup.Resume == "") || a.setup.Resume == "none" {
		return fmt.Errorf("%s was not offered", m.Method)
	}
	var p struct{ SessionID string }
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	data, err := os.ReadFile(a.store + p.SessionID)
	switch {
	case a.setup.Loads != nil:
		a.fail(m, a.setup.Loads)
		return nil
	case err != nil:
		a.fail(m, &ACPError{Code: -32603, Message: "Internal error", Data: json.RawMessage(`{"details":"no such session"}`)})
		return nil
	}
	if err := json.Unmarshal(data, &a.past); err != nil {
		return err
	}
	a.id, a.resume, a.stage = p.SessionID, true, 2
	rest := func(pause time.Duration) {
		for i := range a.past {
			time.Sleep(pause)
			a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": fmt.Sprint("tool-", i), "title": "old",
				"kind": "edit", "status": "completed", "locations": []any{map[string]string{"path": "/old"}}})
			a.update(chunk("agent_message_chunk", "", "what was said before"))
		}
	}
	if byLoad && a.setup.Replay != "none" {
		for _, prompt := range a.past {
			a.update(chunk("user_message_chunk", "", prompt))
		}
	}
	if byLoad && a.setup.Replay == "" {
		rest(0)
	}
	a.reply(m, a.opened())
	if byLoad && a.setup.Replay == "late" {
		rest(20 * time.Millisecond)
	}
	return nil
}

func (a *agent) set(m rpc) error {
	var p struct{ ModeID, ModelID, ConfigID, Value string }
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	offered, value := a.setup.Modes, p.ModeID+p.ModelID+p.Value
	if m.Method == "session/set_model" || p.ConfigID == "the-model" {
		offered = a.setup.Models
	}
	if a.setup.Options != (p.ConfigID != "") || !slices.Contains(offered, value) {
		return fmt.Errorf("%s with %s", m.Method, m.Params)
	}
	if strings.HasPrefix(m.Method, "session/set_model") || p.ConfigID == "the-model" {
		a.model = value
	} else {
		a.args = append(a.args, "mode="+value)
	}
	a.reply(m, map[string]any{})
	return nil
}
