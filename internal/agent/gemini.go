package agent

import (
	"encoding/json"
	"regexp"
	"strings"
)

// geminiPolicy lets the shell tool run without a question; edits are allowed by the approval mode.
const geminiPolicy = `[[rule]]
toolName = "run_shell_command"
decision = "allow"
priority = 900
`

// geminiReadOnly refuses every tool that changes something, whatever the user's own rules say.
const geminiReadOnly = `[[rule]]
toolName = ["run_shell_command", "write_file", "replace", "save_memory", "web_fetch", "google_web_search"]
decision = "deny"
priority = 999
`

// gemini is Google's Gemini CLI.
func gemini() *Program {
	return &Program{
		Name: "gemini", Title: "Gemini CLI", Package: "@google/gemini-cli", Binary: "gemini",
		Base:     []string{"--skip-trust", "-o", "stream-json"},
		Write:    []string{"--approval-mode", "auto_edit", "--policy", "{policy}"},
		ReadOnly: []string{"--approval-mode", "default", "--policy", "{policy}"},
		Policy:   geminiPolicy, PolicyReadOnly: geminiReadOnly,
		Model: []string{"-m", "{model}"},
		New:   []string{"--session-id", "{id}"}, Resume: []string{"--resume", "{id}"},
		// Its parent process swallows signals and leaves the child behind when it is killed.
		Env:     map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true"},
		KeyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Preset:  true, MakeID: newUUID, ValidID: uuidForm, KeepsID: true, CanResume: true, CountsTurns: true,
		Usage: PerRun, Terminal: "a result event with status success",
		EscapePrompt: escapeGemini, read: readGemini, finish: geminiFinish, store: geminiStore{},
		Rules: []Rule{
			{How: NotFound, Text: regexp.MustCompile(`Invalid session identifier|No previous sessions found for this project`)},
			{How: InUse, Text: regexp.MustCompile(`Session ID .*already exists`)},
			{How: TurnLimit, Exit: 53},
			{How: TurnLimit, Text: regexp.MustCompile(`FatalTurnLimitedError|Reached max session turns`)},
		},
		Notes: []string{
			"It resumes only from the directory in which the conversation began.",
			"Versions that do not know --session-id (0.36 and older) cannot be used.",
			"Its turn limit is a setting that it reads only from a file in a directory nobody else can write; instead its uses of tools are counted as turns and it is ended from outside.",
			"It reports no dollars.",
			"It would replace @name in a prompt by that file; each @ is written as \\@ and the prompt says so.",
			"An interrupted run ends with exit status 0 and no result; that is never taken as success.",
		},
	}
}

// escapeGemini keeps @file from being replaced by the file's contents and a leading slash from being a command.
func escapeGemini(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '@' && (i == 0 || p[i-1] != '\\') {
			b.WriteByte('\\')
		}
		b.WriteByte(p[i])
	}
	if b.Len() > len(p) {
		b.WriteString("\n\n(In this message \\@ stands for a plain at sign.)\n")
	}
	return escapeSlash(b.String())
}

type geminiEvent struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`

	Role    string `json:"role"`
	Content string `json:"content"`
	Delta   bool   `json:"delta"`

	ToolName   string          `json:"tool_name"`
	ToolID     string          `json:"tool_id"`
	Parameters json.RawMessage `json:"parameters"`
	Output     string          `json:"output"`
	Status     string          `json:"status"`
	Severity   string          `json:"severity"`
	Message    string          `json:"message"`
	Error      struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
		Total  int64 `json:"total_tokens"`
	} `json:"stats"`
}

func readGemini(s *stream, line []byte) {
	var e geminiEvent
	if !decode(line, &e) {
		return
	}
	switch e.Type {
	case "init":
		s.id(e.SessionID)
	case "message":
		if e.Role == "assistant" {
			s.geminiText(&e)
		}
	case "tool_use":
		s.flush()
		s.toolBegan()
		s.emit(Activity{Kind: "tool", Tool: e.ToolName, ID: e.ToolID, Args: string(e.Parameters)})
	case "tool_result":
		s.emit(Activity{Kind: "tool_result", ID: e.ToolID, Text: firstOf(e.Output, e.Error.Message), IsError: e.Status == "error"})
		if strings.Contains(e.Error.Type, "policy") || strings.Contains(e.Error.Type, "denied") {
			s.deny(e.ToolID)
		}
		s.toolEnded()
	case "error":
		if e.Severity != "warning" {
			s.fail(e.Message)
		}
	case "result":
		s.geminiResult(&e)
	}
}

// geminiText puts the pieces of a message together; what uses a tool ends it.
func (s *stream) geminiText(e *geminiEvent) {
	if !e.Delta {
		s.flush()
	}
	if len(s.partial) < maxMessage {
		s.partial += e.Content
	}
}

func (s *stream) geminiResult(e *geminiEvent) {
	s.flush()
	if e.Stats != nil {
		// Thoughts are only in the total.
		eval := max(e.Stats.Output, e.Stats.Total-e.Stats.Input)
		s.usage = Usage{Prompt: e.Stats.Input, Eval: eval, Cached: e.Stats.Cached, Reasoning: eval - e.Stats.Output}
		s.usageSaid = true
	}
	if e.Status == "success" {
		s.success = true
		s.step()
		return
	}
	if e.Error.Type == "FatalTurnLimitedError" {
		s.how, s.why = TurnLimit, e.Error.Message
		return
	}
	s.fail(e.Error.Message)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
