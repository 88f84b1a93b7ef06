package main

import (
	"net/http"
)

// anthropic speaks the Messages API to Claude Code.
var anthropic = dialect{
	path: "/v1/messages",
	main: func(body []byte) bool { return mentions(body, `"name":"Read"`) },
	write: func(w http.ResponseWriter, r *http.Request, body []byte, a answer) {
		block := obj{"type": "text", "text": ""}
		delta := obj{"type": "text_delta", "text": a.text}
		reason := "end_turn"
		switch {
		case a.shell != "":
			block = obj{"type": "tool_use", "id": unique("toolu_"), "name": "Bash", "input": obj{}}
			delta = obj{"type": "input_json_delta",
				"partial_json": quoted(obj{"command": a.shell, "description": "a step"})}
			reason = "tool_use"
		case a.read != "":
			block = obj{"type": "tool_use", "id": unique("toolu_"), "name": "Read", "input": obj{}}
			delta = obj{"type": "input_json_delta", "partial_json": quoted(obj{"file_path": a.read})}
			reason = "tool_use"
		case a.agent != "":
			name := "Task"
			if mentions(body, `"name":"Agent"`) {
				name = "Agent"
			}
			block = obj{"type": "tool_use", "id": unique("toolu_"), "name": name, "input": obj{}}
			delta = obj{"type": "input_json_delta", "partial_json": quoted(obj{"description": "a helper",
				"prompt": a.agent, "subagent_type": "general-purpose"})}
			reason = "tool_use"
		case a.write != "":
			block = obj{"type": "tool_use", "id": unique("toolu_"), "name": "Write", "input": obj{}}
			delta = obj{"type": "input_json_delta",
				"partial_json": quoted(obj{"file_path": a.write, "content": "written\n"})}
			reason = "tool_use"
		}
		usage := obj{"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 10,
			"cache_creation_input_tokens": 0}
		message := obj{"id": unique("msg_"), "type": "message", "role": "assistant", "model": "stub",
			"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
		if !mentions(body, `"stream":true`) {
			message["content"] = []any{obj{"type": "text", "text": a.text}}
			message["stop_reason"] = "end_turn"
			writeJSON(w, message)
			return
		}
		startStream(w)
		sse(w, "message_start", obj{"type": "message_start", "message": message})
		sse(w, "content_block_start", obj{"type": "content_block_start", "index": 0, "content_block": block})
		sse(w, "content_block_delta", obj{"type": "content_block_delta", "index": 0, "delta": delta})
		sse(w, "content_block_stop", obj{"type": "content_block_stop", "index": 0})
		sse(w, "message_delta", obj{"type": "message_delta", "delta": obj{"stop_reason": reason, "stop_sequence": nil},
			"usage": obj{"output_tokens": 20}})
		sse(w, "message_stop", obj{"type": "message_stop"})
	},
}
