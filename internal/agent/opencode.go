package agent

import (
	"encoding/json"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// opencode is OpenCode.
func opencode() *Program {
	return &Program{
		Name: "opencode", Title: "OpenCode", Package: "opencode-ai", Binary: "opencode",
		// Its log says which conversation it began before the model is asked, and why it waits; its events say neither.
		Base:  []string{"run", "--format", "json", "--print-logs"},
		Model: []string{"-m", "{model}"}, Resume: []string{"--session", "{id}"},
		EnvWrite: map[string]string{"OPENCODE_PERMISSION": `{"*":"allow","external_directory":"deny"}`},
		// It takes AGENTS.md from below its directory with every file that it reads there.
		JudgesFromOutside: true, FilesReadOnly: map[string]string{outside + "/README": "Nothing is here on purpose.\n"},
		EnvReadOnly: map[string]string{
			"OPENCODE_PERMISSION": `{"*":"deny","read":"allow","glob":"allow","grep":"allow","list":"allow",` +
				`"external_directory":{"*":"deny","{dir}/*":"allow"}}`,
			"OPENCODE_DISABLE_PROJECT_CONFIG": "1",
		},
		KeyVars: []string{"OPENCODE_API_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
			"GEMINI_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY"},
		ValidID: pattern.New(`^ses_[0-9A-Za-z]+$`), KeepsID: true, CanResume: true, CountsTurns: true,
		Terminal: "a last step with reason stop", Login: "opencode auth login",
		read: readOpenCode, watch: watchOpenCode, store: openCodeStore{},
		Rules: []Rule{
			{How: NotFound, Text: pattern.New(
				`^(?:\x1b\[[0-9;]*m)*Error: (?:\x1b\[[0-9;]*m)*Session not found|^NotFoundError: `)},
			{How: UsageLimit, Text: pattern.New(
				`^APIError: (?:The usage limit has been reached|You exceeded your current quota)`)},
		},
	}
}

type openCodeEvent struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Part      struct {
		Type   string  `json:"type"`
		ID     string  `json:"id"`
		Text   string  `json:"text"`
		Reason string  `json:"reason"`
		Tool   string  `json:"tool"`
		CallID string  `json:"callID"`
		Cost   float64 `json:"cost"`
		Tokens *struct {
			Input     int64 `json:"input"`
			Output    int64 `json:"output"`
			Reasoning int64 `json:"reasoning"`
			Cache     struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
		State struct {
			Status string          `json:"status"`
			Input  json.RawMessage `json:"input"`
			Output string          `json:"output"`
			Error  string          `json:"error"`
		} `json:"state"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func readOpenCode(s *stream, line []byte) {
	var e openCodeEvent
	if !decode(line, &e) {
		return
	}
	// That there is no such conversation is said with its id too.
	if e.Type != "error" {
		s.id(e.SessionID)
	}
	switch e.Type {
	case "step_start":
		s.success = false
		s.step()
	case "text":
		s.say(e.Part.Text)
	case "reasoning":
		s.emit(Activity{Kind: "reasoning", Text: e.Part.Text})
	case "tool_use":
		s.openCodeTool(&e)
	case "step_finish":
		s.openCodeStep(&e)
	case "error":
		s.success = false
		s.fail(e.Error.Name + ": " + e.Error.Data.Message)
		s.how, s.why = Failed, s.errors[len(s.errors)-1]
		if refusedStatus(e.Error.Data.Status) {
			s.how = Refused
		}
	}
}

const openCodeLog = `^timestamp=\S+ level=`

var (
	openCodeBegun = pattern.New(openCodeLog + `INFO .*message=(?:created id|loop session\.id)=(ses_[0-9A-Za-z]+) `)
	openCodeCall  = pattern.New(openCodeLog + `INFO .*message=stream .*small=false `)
	openCodeError = pattern.New(openCodeLog +
		`ERROR .*message="stream error" .*small=false .*error\.error="(?:AI_APICallError: )?(.*)"`)
	openCodeLimit = pattern.New(`usage limit has been reached|usage_limit|exceeded your current quota|insufficient_quota`)
)

// watchOpenCode reads its log. The first conversation that is named is the run's own; those of its subagents follow.
func watchOpenCode(s *stream, line []byte) {
	if m := openCodeBegun.FindSubmatch(line); m != nil && s.conversation == "" {
		s.id(string(m[1]))
	}
	if openCodeCall.FindSubmatch(line) != nil {
		s.waits = ""
	}
	m := openCodeError.FindSubmatch(line)
	if m == nil {
		return
	}
	if said := string(m[1]); openCodeLimit.MatchString(said) {
		s.limit(time.Time{}, said)
		s.stop(UsageLimit, said)
	} else {
		s.wait(said, 0)
	}
}

func (s *stream) openCodeTool(e *openCodeEvent) {
	state := e.Part.State
	s.emit(Activity{Kind: "tool", Tool: e.Part.Tool, ID: e.Part.CallID, Args: string(state.Input)})
	s.emit(Activity{
		Kind: "tool_result", Tool: e.Part.Tool, ID: e.Part.CallID,
		Text: firstOf(state.Output, state.Error), IsError: state.Status == "error",
	})
	if state.Status == "error" && deniedForm.MatchString(state.Error) {
		s.deny(e.Part.Tool)
	}
}

var deniedForm = pattern.New(`(?i)rejected permission|prevents you from using|permission denied by`)

func (s *stream) openCodeStep(e *openCodeEvent) {
	if t := e.Part.Tokens; t != nil {
		s.usage = s.usage.plus(Usage{Prompt: t.Input + t.Cache.Read + t.Cache.Write, Eval: t.Output + t.Reasoning,
			Cached: t.Cache.Read, Reasoning: t.Reasoning, Cost: e.Part.Cost})
		s.costKnown = true
	}
	s.success = e.Part.Reason == "stop"
	if !s.success {
		s.enough()
	}
}
