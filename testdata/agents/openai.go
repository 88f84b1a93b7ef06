package main

import (
	"fmt"
	"net/http"
	"strings"
)

// responses speaks the Responses API to Codex.
var responses = dialect{
	path: "/responses",
	main: func(body []byte) bool { return mentions(body, `"tools":[{`) },
	write: func(w http.ResponseWriter, r *http.Request, body []byte, a answer) {
		id := unique("resp_")
		item := obj{"type": "message", "role": "assistant", "id": unique("msg_"),
			"content": []any{obj{"type": "output_text", "text": a.text}}}
		if command := a.command(); command != "" {
			name, args := "exec_command", obj{"cmd": command}
			if !mentions(body, `"name":"exec_command"`) {
				name, args = "shell_command", obj{"command": command}
			}
			item = obj{"type": "function_call", "id": unique("fc_"), "call_id": unique("call_"), "name": name,
				"arguments": quoted(args)}
		}
		startStream(w)
		sse(w, "response.created", obj{"type": "response.created", "response": obj{"id": id}})
		sse(w, "response.output_item.done", obj{"type": "response.output_item.done", "output_index": 0, "item": item})
		sse(w, "response.completed", obj{"type": "response.completed", "response": obj{"id": id, "usage": obj{
			"input_tokens": 100, "input_tokens_details": obj{"cached_tokens": 10},
			"output_tokens": 20, "output_tokens_details": obj{"reasoning_tokens": 5}, "total_tokens": 120}}})
	},
}

// command returns the answer as a shell command: Codex has no other tool for files that a stub could use.
func (a answer) command() string {
	switch {
	case a.write != "":
		return "echo written > " + a.write
	case a.read != "":
		return "cat " + a.read
	}
	return a.shell
}

// completions speaks the Chat Completions API to OpenCode, Qwen Code and Copilot.
var completions = dialect{
	path: "/chat/completions",
	main: func(body []byte) bool { return mentions(body, `"tools":[{`) },
	write: func(w http.ResponseWriter, r *http.Request, body []byte, a answer) {
		delta, reason := obj{"role": "assistant", "content": a.text}, "stop"
		switch {
		case a.shell != "":
			delta, reason = toolDelta(offered(body, "run_shell_command", "bash"), obj{"command": a.shell,
				"description": "a step", "is_background": false}), "tool_calls"
		case a.read != "":
			delta, reason = toolDelta(offered(body, "read_file", "view", "read"), obj{"filePath": a.read,
				"file_path": a.read, "path": a.read}), "tool_calls"
		case a.write != "":
			delta, reason = toolDelta(offered(body, "write_file", "create", "write"), obj{"filePath": a.write,
				"file_path": a.write, "path": a.write, "file_text": "written\n", "content": "written\n"}), "tool_calls"
		}
		usage := obj{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
			"prompt_tokens_details": obj{"cached_tokens": 10}}
		chunk := func(delta obj, reason any, usage any) obj {
			return obj{"id": "chatcmpl-stub", "object": "chat.completion.chunk", "created": 1, "model": "stub",
				"choices": []any{obj{"index": 0, "delta": delta, "finish_reason": reason}}, "usage": usage}
		}
		if !strings.Contains(string(body), `"stream":true`) {
			writeJSON(w, obj{"id": "chatcmpl-stub", "object": "chat.completion", "created": 1, "model": "stub",
				"usage": usage,
				"choices": []any{obj{"index": 0, "message": obj{"role": "assistant", "content": a.text},
					"finish_reason": "stop"}}})
			return
		}
		startStream(w)
		sse(w, "", chunk(delta, nil, nil))
		sse(w, "", chunk(obj{}, reason, usage))
		fmt.Fprint(w, "data: [DONE]\n\n")
	},
}

// offered returns the first of these tools that a request offers, else the last: each program has its own.
func offered(body []byte, names ...string) string {
	for _, name := range names {
		if mentions(body, `"name":"`+name+`"`) {
			return name
		}
	}
	return names[len(names)-1]
}

func toolDelta(name string, args obj) obj {
	return obj{"role": "assistant", "tool_calls": []any{obj{"index": 0, "id": unique("call_"), "type": "function",
		"function": obj{"name": name, "arguments": quoted(args)}}}}
}
