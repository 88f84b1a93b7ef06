package main

import (
	"net/http"
	"strings"
)

// generative speaks the Gemini API.
var generative = dialect{
	path: "/models/",
	main: func(body []byte) bool { return mentions(body, `"functionDeclarations"`) },
	write: func(w http.ResponseWriter, r *http.Request, body []byte, a answer) {
		part := obj{"text": a.text}
		if a.text != "" && (mentions(body, "model_choice") || mentions(body, "complexity_score")) {
			// The program asks for the model of a prompt, and asks again for a minute and a half without an answer.
			part = obj{"text": `{"reasoning": "", "model_choice": "pro", "complexity_reasoning": "", "complexity_score": 90}`}
		}
		switch {
		case a.shell != "":
			part = obj{"functionCall": obj{"name": "run_shell_command",
				"args": obj{"command": a.shell, "description": "a step"}}}
		case a.read != "":
			part = obj{"functionCall": obj{"name": "read_file", "args": obj{"file_path": a.read}}}
		case a.write != "":
			part = obj{"functionCall": obj{"name": "write_file",
				"args": obj{"file_path": a.write, "content": "written\n"}}}
		}
		if strings.HasSuffix(r.URL.Path, ":countTokens") {
			writeJSON(w, obj{"totalTokens": 100})
			return
		}
		reply := obj{"candidates": []any{
			obj{"content": obj{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
			"usageMetadata": obj{"promptTokenCount": 100, "candidatesTokenCount": 20, "cachedContentTokenCount": 10,
				"totalTokenCount": 120},
			"modelVersion": "stub", "responseId": unique("r")}
		if !strings.HasSuffix(r.URL.Path, ":streamGenerateContent") {
			writeJSON(w, reply)
			return
		}
		startStream(w)
		sse(w, "", reply)
	},
}
