package agent

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// geminiReadOnly allows the tools that read and refuses all others, whatever the user's own rules say.
const geminiReadOnly = `[[rule]]
toolName = "*"
decision = "deny"
priority = 990

[[rule]]
toolName = ["read_file", "read_many_files", "glob", "grep_search", "search_file_content", "list_directory"]
decision = "allow"
priority = 999
`

// gemini is Google's Gemini CLI.
func gemini() *Program {
	return &Program{
		Name: "gemini", Title: "Gemini CLI", Package: "@google/gemini-cli", Binary: "gemini",
		Base: []string{"-o", "stream-json"},
		// auto_edit with a policy for the shell still asks, and so refuses, for rm -rf, git -c and their like. In
		// every mode the file tools stay inside the directory.
		Write:         []string{"--skip-trust", "--approval-mode", "yolo"},
		ReadOnly:      []string{"--approval-mode", "default", "--policy", "{private}/policy.toml"},
		EnvReadOnly:   map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "false", "GEMINI_CLI_HOME": "{private}/home"},
		FilesReadOnly: map[string]string{"policy.toml": geminiReadOnly}, prepareReadOnly: geminiHome,
		Model: []string{"-m", "{model}"},
		New:   []string{"--session-id", "{id}"}, Resume: []string{"--resume", "{id}"},
		// Its parent process swallows signals and leaves the child behind when it is killed.
		Env:     map[string]string{"GEMINI_CLI_NO_RELAUNCH": "true"},
		KeyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Preset:  true, ValidID: uuidForm, KeepsID: true, CanResume: true, CountsTurns: true,
		Terminal: "a result with status success", Login: "gemini, then /auth",
		escapePrompt: escapeGemini, read: readGemini, watch: watchGemini, finish: geminiFinish, store: geminiStore{},
		Rules: []Rule{
			{How: NotFound, Text: pattern.New(`Invalid session identifier|No previous sessions found for this project`)},
			{How: InUse, Text: pattern.New(`Session ID .*already exists`)},
			// The exit status is that of the API, without its upper bits.
			{How: Refused, Exit: 401 & 0xff}, {How: Refused, Exit: 403 & 0xff}, {How: Refused, Exit: 404 & 0xff},
			{How: UsageLimit, Exit: 429 & 0xff},
			{How: Refused, Exit: 41},
			{How: Refused, Text: pattern.New(`API key not valid|API_KEY_INVALID|"code": ?(?:401|403|404)\b`)},
			{How: UsageLimit, Text: pattern.New(
				`^(?:\[API Error: )?You have exhausted your (?:daily quota|capacity)|^TerminalQuotaError`)},
			{How: TurnLimit, Exit: 53},
			{How: TurnLimit, Text: pattern.New(`FatalTurnLimitedError|Reached max session turns`)},
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
		b.WriteString(atNote)
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
		s.emit(Activity{
			Kind: "tool_result", ID: e.ToolID, Text: firstOf(e.Output, e.Error.Message), IsError: e.Status == "error",
		})
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
		s.partial = append(s.partial, e.Content...)
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
	if wait := geminiReset(e.Error.Message); wait > 0 {
		s.reset = time.Now().Add(wait).UTC()
	}
}

var geminiWait = pattern.New(`^Attempt \d+ failed: (.*) Retrying after (\d{1,15})`)

// watchGemini ends it when it wants to sleep until a quota is filled again: waiting is for the harness's user to
// decide.
func watchGemini(s *stream, line []byte) {
	m := geminiWait.FindSubmatch(line)
	if m == nil {
		return
	}
	ms, err := strconv.ParseInt(string(m[2]), 10, 64)
	if err != nil || ms > (366*24*time.Hour).Milliseconds() {
		return
	}
	wait := time.Duration(ms) * time.Millisecond
	// What it sleeps is longer than what it was told, so that not all clients come back at once.
	if told := geminiReset(string(m[1])); wait >= patience && told >= patience {
		wait = told
	}
	s.wait(string(m[1]), wait)
}

var geminiResetForm = pattern.New(`quota will reset after ((?:\d{1,6}[hms])+)`)

// geminiReset returns after how long an error says that the quota is filled again, 0 if it does not.
func geminiReset(text string) time.Duration {
	m := geminiResetForm.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	wait, err := time.ParseDuration(m[1])
	if err != nil {
		return 0
	}
	return wait
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
