package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// prompted is the turn.
func (a *agent) prompted(m rpc) error {
	var p struct{ Prompt []struct{ Type, Text string } }
	if err := json.Unmarshal(m.Params, &p); err != nil || len(p.Prompt) != 1 || p.Prompt[0].Type != "text" ||
		p.Prompt[0].Text == "" {
		return fmt.Errorf("a prompt of %.200s: %v", m.Params, err)
	}
	a.stage, a.prompt = 3, p.Prompt[0].Text
	step, err := takeStep(a.call)
	if err != nil {
		return err
	}
	if err := writeLog(a.call, a.id, a.past); err != nil {
		return err
	}
	data, err := json.Marshal(append(a.past, a.prompt))
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.store+a.id, data, 0o600); err != nil {
		return err
	}
	if step.ACP == nil {
		step.ACP = &ACPStep{}
	}
	fmt.Fprint(os.Stderr, step.Stderr)
	stop, err := a.turn(step)
	if err != nil {
		return err
	}
	return a.end(m, step, stop)
}

// errRefused ends a turn after a permission was refused.
var errRefused = errors.New("refused")

func (a *agent) turn(step Step) (stop string, err error) {
	if step.Deaf {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	}
	a.noise(step)
	for i, ask := range step.ACP.Asks {
		if err := a.permission(i, ask); errors.Is(err, errRefused) {
			return ask.Then, nil
		} else if err != nil {
			return "", err
		}
		a.noise(step)
	}
	if a.cancels > 0 && !step.Deaf {
		return "cancelled", nil
	}
	p := &player{call: a.call, step: step, out: a.out}
	if err := p.act(); err != nil {
		return "", err
	}
	for n := range step.Turns {
		id := fmt.Sprint("tool-", n)
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": "Preparing...",
			"rawInput": map[string]any{}})
		a.noise(step)
		a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "title": fmt.Sprint("run ", n),
			"kind": "execute", "status": "in_progress", "rawInput": map[string]any{"command": fmt.Sprint("true ", n)}})
		a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
			"content": []any{map[string]any{"type": "content",
				"content": map[string]string{"type": "text", "text": "ok"}}}})
	}
	if step.ACP.Crash {
		return "", errCrash
	}
	if step.ACP.Long > 0 {
		a.out.WriteString(strings.Repeat("x", step.ACP.Long<<20) + "\n")
		a.out.Flush()
	}
	if step.Hang || step.ACP.Quiet {
		return a.hang(step)
	}
	return "", nil
}

// hang waits until the turn is cancelled, or for ever if it ignores that.
func (a *agent) hang(step Step) (string, error) {
	if step.Hang {
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "hangs", "title": "wait", "kind": "execute",
			"status": "in_progress", "rawInput": map[string]any{"command": "sleep 1000"}})
	}
	if step.Deaf {
		select {}
	}
	for a.cancels == 0 {
		if _, err := a.next(); err != nil {
			return "", err
		}
	}
	return "cancelled", nil
}

// permission asks for one, and waits for the answer.
func (a *agent) permission(n int, ask ACPAsk) error {
	if ask.Files != "" {
		return a.until(a.ask(ask.Files, map[string]any{"sessionId": a.id}, func(m rpc) error {
			if m.Error == nil || m.Error.Code != -32601 {
				return fmt.Errorf("%s was answered with %s", ask.Files, m.Result)
			}
			return nil
		}))
	}
	id := fmt.Sprint("asks-", n)
	call := map[string]any{"toolCallId": id}
	about := map[string]any{"sessionUpdate": "tool_call", "toolCallId": id, "title": "asks", "status": "pending",
		"kind": ask.Kind}
	if ask.Diff {
		about["content"] = []any{map[string]string{"type": "diff", "path": a.at(ask.Path), "newText": "x"}}
	} else if ask.Path != "" {
		about["locations"] = []any{map[string]string{"path": a.at(ask.Path)}}
	}
	if ask.Bare {
		a.update(about)
	} else {
		for _, key := range []string{"title", "kind", "locations", "content"} {
			if v, has := about[key]; has {
				call[key] = v
			}
		}
	}
	kinds := ask.Options
	if kinds == nil {
		kinds = []string{"allow_always", "allow_once", "reject_once"}
	}
	var options []any
	for _, kind := range kinds {
		options = append(options, map[string]string{"optionId": "o-" + kind, "name": kind, "kind": kind})
	}
	var chosen string
	asked := a.ask("session/request_permission",
		map[string]any{"sessionId": a.id, "toolCall": call, "options": options},
		func(m rpc) error {
			var r struct {
				Outcome struct{ Outcome, OptionID string }
			}
			if err := json.Unmarshal(m.Result, &r); err != nil {
				return err
			}
			o := r.Outcome
			if o.Outcome == "cancelled" && o.OptionID == "" {
				chosen = "cancelled"
				return nil
			}
			chosen = strings.TrimPrefix(o.OptionID, "o-")
			if o.Outcome != "selected" || !slices.Contains(kinds, chosen) {
				return fmt.Errorf("a permission was answered with %s", m.Result)
			}
			return nil
		})
	if err := a.until(asked); err != nil {
		return err
	}
	if ask.Unseen {
		return nil
	}
	status := "completed"
	if !strings.HasPrefix(chosen, "allow") {
		status = "failed"
	}
	a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
		"rawOutput": chosen})
	if status == "failed" && ask.Then != "" {
		return errRefused
	}
	return nil
}

// at resolves a path of a script: a relative path is in the worktree.
func (a *agent) at(path string) string {
	if strings.HasPrefix(path, "$TMPDIR") {
		return os.Getenv("TMPDIR") + strings.TrimPrefix(path, "$TMPDIR")
	}
	if filepath.IsAbs(path) || strings.HasPrefix(path, "..") {
		return path
	}
	return filepath.Join(a.dir, path)
}

// until waits for an answer.
func (a *agent) until(id string) error {
	for a.open[id] != nil {
		m, ok := <-a.in
		if !ok {
			return io.EOF
		}
		var err error
		if m.Method == "" {
			err = a.answered(m)
		} else {
			err = a.check(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noise sends messages outside of the protocol as real agents do, and worse.
func (a *agent) noise(step Step) {
	notFound := func(m rpc) error {
		if m.Error == nil || m.Error.Code != -32601 {
			return fmt.Errorf("an unknown request was answered with %s%v", m.Result, m.Error)
		}
		return nil
	}
	kinds := []func(){
		func() { fmt.Fprintln(a.out, "Warning: this is no JSON {") },
		func() { fmt.Fprintln(a.out, `[{"jsonrpc":"2.0"}]`) },
		func() { fmt.Fprintln(a.out, strings.Repeat(`{"a":[`, 20000)) },
		func() { fmt.Fprintln(a.out, `{"jsonrpc":"2.0","id":99999,"result":{"stopReason":"end_turn"}}`) },
		func() {
			fmt.Fprintln(a.out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
		},
		func() { a.send(map[string]any{"method": "_auth/status_update", "params": []int{1}}) },
		func() { a.send(map[string]any{"method": "session/update", "params": "x"}) },
		func() { a.update(map[string]any{"sessionUpdate": "of_tomorrow", "content": 1}) },
		func() {
			a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "another",
				"update": chunk("agent_message_chunk", "", "of another conversation")}})
		},
		func() { a.ask("craft/drainMidTurnQueue", map[string]any{}, notFound) },
		func() {
			a.ask("fs/write_text_file", map[string]any{"sessionId": a.id, "path": "/etc/x", "content": "x"}, notFound)
		},
		func() { a.ask("terminal/create", nil, notFound) },
		func() { a.update(chunk("agent_thought_chunk", "", `{"summary": "a thought"}`)) },
		func() { a.update(map[string]any{"sessionUpdate": "plan", "entries": []any{}}) },
		func() { fmt.Fprintln(os.Stderr, "some log") },
	}
	for range step.ACP.Noise {
		kinds[int(time.Now().UnixNano()/1000)%len(kinds)]()
		a.out.Flush()
	}
}

// end sends the final message and answers the prompt.
func (a *agent) end(m rpc, step Step, stop string) error {
	s := step.ACP
	if stop == "" {
		text := step.Text
		if text == "" && s.Error == nil && s.Chunks == nil {
			text = "done"
		}
		if w := reviewWord.FindStringSubmatch(a.prompt); w != nil {
			text = strings.ReplaceAll(text, "{word}", w[1])
		}
		for i := 0; i < len(text) && text != "-"; i += 40 {
			a.update(chunk("agent_message_chunk", "", text[i:min(i+40, len(text))]))
		}
		for _, c := range s.Chunks {
			a.update(chunk("agent_message_chunk", c.ID, c.Text))
		}
		stop = s.Stop
	}
	a.noise(step)
	if s.Cost > 0 {
		coin := s.Coin
		if coin == "" {
			coin = "USD"
		}
		a.update(map[string]any{"sessionUpdate": "usage_update", "used": 1, "size": 2,
			"cost": map[string]any{"amount": s.Cost, "currency": coin}})
	}
	if s.Error != nil {
		a.fail(m, s.Error)
		return nil
	}
	answer := map[string]any{"stopReason": stop}
	if stop == "" {
		answer["stopReason"] = "end_turn"
	} else if stop == "-" {
		delete(answer, "stopReason")
	}
	p := &player{call: a.call, step: step}
	prompt, eval := p.price()
	switch usage := string(s.Usage); usage {
	case "":
		answer["usage"] = map[string]any{"inputTokens": prompt, "outputTokens": eval, "totalTokens": prompt + eval}
	case `"left out"`:
	default:
		answer["usage"] = s.Usage
	}
	if s.Meta != nil {
		answer["_meta"] = s.Meta
	}
	if s.Under > 0 {
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "helper", "title": "a helper",
			"kind": "think", "status": "in_progress", "rawInput": map[string]string{"prompt": "help"}})
	}
	out, late := a.out, &bytes.Buffer{}
	a.out = bufio.NewWriter(late)
	a.reply(m, answer)
	for _, c := range s.After {
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "late", "kind": "execute",
			"status": "completed"})
		a.update(chunk("agent_message_chunk", c.ID, c.Text))
	}
	a.out = out
	a.out.Write(late.Bytes())
	a.out.Flush()
	if s.Under > 0 {
		time.Sleep(time.Duration(s.Under * float64(time.Second)))
		a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "helper", "status": "completed"})
		a.update(chunk("agent_message_chunk", "", "what the helper found"))
	}
	return nil
}
