package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

type obj = map[string]any

// event prints one event.
func (p *player) event(e obj) {
	data, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(p.out, "%s\n", data)
}

func complainf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// claude prints the events of Claude Code 2.1.
type claude struct{}

func (claude) begin(p *player) {
	p.said = true
	p.event(obj{"type": "system", "subtype": "init", "cwd": p.dir, "session_id": p.id, "model": p.model,
		"tools": []string{"Bash", "Read", "Edit"}})
}

func (claude) message(p *player, content obj) {
	p.event(obj{"type": "assistant", "session_id": p.shown(), "parent_tool_use_id": nil,
		"message": obj{"id": fmt.Sprintf("msg_%d", p.turns), "role": "assistant",
			"content": []obj{content}, "usage": obj{"input_tokens": 100, "cache_read_input_tokens": 0,
				"cache_creation_input_tokens": 0, "output_tokens": 1}}})
}

func (c claude) tool(p *player, n int, denied string) {
	id := fmt.Sprintf("toolu_%d", n)
	c.message(p, obj{"type": "tool_use", "id": id, "name": "Bash", "input": obj{"command": "true"}})
	p.event(obj{"type": "user", "session_id": p.shown(),
		"message": obj{"role": "user", "content": []obj{{"type": "tool_result", "tool_use_id": id,
			"content": "ok", "is_error": denied != ""}}}})
}

func (c claude) text(p *player) { c.message(p, obj{"type": "text", "text": p.step.Text}) }

func (claude) end(p *player) int {
	prompt, eval := p.usage()
	denials := []obj{}
	for _, tool := range p.step.Denied {
		denials = append(denials, obj{"tool_name": tool, "tool_use_id": "x", "tool_input": obj{}})
	}
	result := obj{"type": "result", "subtype": "success", "is_error": false, "num_turns": p.turns,
		"session_id": p.shown(), "result": p.step.Text, "total_cost_usd": p.step.Cost, "permission_denials": denials,
		"usage": obj{"input_tokens": prompt, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
			"output_tokens": eval}}
	code := 0
	switch p.step.End {
	case "none":
		return 0
	case "turn_limit":
		result["subtype"], result["is_error"], result["errors"] = "error_max_turns", true,
			[]string{"Reached maximum number of turns"}
		delete(result, "result")
		code = 1
	case "budget":
		result["subtype"], result["is_error"], code = "error_max_budget_usd", true, 1
	case "usage_limit":
		p.event(obj{"type": "rate_limit_event", "session_id": p.shown(),
			"rate_limit_info": obj{"status": "rejected", "resetsAt": p.step.Reset, "rateLimitType": "five_hour"}})
		result["is_error"], result["result"], code = true, "You've hit your limit", 1
		if p.step.Reset == 0 {
			result["api_error_status"] = 429 // as with an API key, without a known end
		}
	case "error":
		result["is_error"], result["result"], code = true, "API Error: 500 Internal server error", 1
	case "refused":
		result["is_error"], result["result"], code = true, "Invalid authentication credentials", 1
		result["api_error_status"] = 401
	}
	p.event(result)
	return code
}

func (claude) interrupted(p *player, sig os.Signal) int {
	if sig == syscall.SIGINT {
		p.event(obj{"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": p.shown(),
			"num_turns": p.turns})
		return 0
	}
	return 143
}

func (claude) waits(p *player) {
	p.event(obj{"type": "system", "subtype": "api_retry", "session_id": p.shown(), "attempt": 1, "max_retries": 10,
		"retry_delay_ms": p.step.Wait * 1000, "error_status": 429, "error": "rate_limit"})
}

func (claude) refused(p *player, why string) int {
	if why == "in_use" {
		complainf("Error: Session ID %s is already in use.", p.id)
		return p.exit(1)
	}
	p.event(obj{"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": p.id,
		"num_turns": 0, "errors": []string{"No conversation found with session ID: " + p.id}})
	complainf("No conversation found with session ID: %s", p.id)
	p.out.Flush()
	return p.exit(1)
}

// shown returns the id for events, or nothing if it is missing by the script.
func (p *player) shown() string {
	if p.step.ID == "missing" || !p.said {
		return ""
	}
	return p.id
}

func (p *player) exit(code int) int {
	if p.step.Exit != nil {
		return *p.step.Exit
	}
	return code
}

// codex prints the events of Codex 0.169.
type codex struct{}

func (codex) begin(p *player) {
	p.event(obj{"type": "thread.started", "thread_id": p.id})
	p.event(obj{"type": "turn.started"})
}

func (codex) tool(p *player, n int, denied string) {
	item := obj{"id": fmt.Sprintf("item_%d", n), "type": "command_execution", "command": "true",
		"aggregated_output": "", "exit_code": nil, "status": "in_progress"}
	p.event(obj{"type": "item.started", "item": item})
	item["exit_code"], item["status"] = 0, "completed"
	if denied != "" {
		item["exit_code"], item["status"] = 1, "declined"
	}
	p.event(obj{"type": "item.completed", "item": item})
}

func (codex) text(p *player) {
	p.event(obj{"type": "item.completed", "item": obj{"id": "item_text", "type": "agent_message", "text": p.step.Text}})
}

func (codex) end(p *player) int {
	switch p.step.End {
	case "none":
		return 0
	case "error", "refused", "usage_limit":
		text := "stream disconnected before completion"
		switch p.step.End {
		case "refused":
			text = "unexpected status 401 Unauthorized: Invalid key, url: http://127.0.0.1/v1/responses"
			p.event(obj{"type": "error", "message": "Reconnecting... 1/5 (" + text + ")"})
		case "usage_limit":
			text = "You've hit your usage limit. Upgrade to Plus to continue using Codex, or try again at 3:45 PM."
		}
		p.event(obj{"type": "error", "message": text})
		p.event(obj{"type": "turn.failed", "error": obj{"message": text}})
		return 1
	}
	p.event(obj{"type": "turn.completed", "usage": obj{"input_tokens": p.tokens[0], "cached_input_tokens": 0,
		"output_tokens": p.tokens[1], "reasoning_output_tokens": 0}})
	return 0
}

func (codex) interrupted(p *player, sig os.Signal) int {
	if sig == syscall.SIGINT {
		return 1
	}
	return 143
}

// waits announces retries in its events. Its log, if it is on, has the waits.
func (codex) waits(p *player) {
	const said = "exceeded retry limit, last status: 429 Too Many Requests"
	if strings.Contains(os.Getenv("RUST_LOG"), "responses_retry=warn") {
		complainf(
			"2026-11-22T03:21:40.682339Z  WARN codex_core::responses_retry: stream disconnected - retrying sampling "+
				"request "+
				"(1/5 in %d.997993891s)... turn_id=t retries=1 max_retries=5 sampling_error=%s", p.step.Wait-1, said)
	}
	p.event(obj{"type": "error", "message": "Reconnecting... 1/5 (" + said + ")"})
}

func (codex) refused(p *player, why string) int {
	if why == "in_use" {
		complainf("Error: thread %s already has an active writer", p.id)
	} else {
		complainf("Error: thread/resume: thread/resume failed: no rollout found for thread id %s", p.id)
	}
	return p.exit(1)
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }
