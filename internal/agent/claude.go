package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// claude is Claude Code.
func claude() *Program {
	return &Program{
		Name: "claude", Title: "Claude Code", Package: "@anthropic-ai/claude-code", Binary: "claude",
		Base: []string{"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"},
		// bypassPermissions is refused to root; with acceptEdits its file tools stay inside the directory.
		// The tools that are taken away would leave the worktree for another one, or go on after the turn.
		Write: []string{"--permission-mode", "acceptEdits", "--allowedTools", "Bash",
			"--disallowedTools", "EnterWorktree,ExitWorktree,CronCreate,ScheduleWakeup"},
		// Only tools that read exist at all, whatever the user's own settings allow; without servers that could bring more.
		// What is judged is never continued, so that it leaves no transcript for discovery to find.
		ReadOnly: []string{"--permission-mode", "default", "--tools", "Read,Glob,Grep", "--strict-mcp-config",
			"--no-session-persistence", "--setting-sources", "user"},
		Model: []string{"--model", "{model}"}, Limit: []string{"--max-turns", "{turns}"},
		System: []string{"--append-system-prompt", "{system}"},
		New:    []string{"--session-id", "{id}"}, Resume: []string{"--resume", "{id}"},
		KeyVars: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
			"ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "AWS_SESSION_TOKEN"},
		Preset: true, ValidID: uuidForm, CanResume: true,
		Terminal: "a result that is no error", Login: "claude auth login",
		escapePrompt: escapeClaude, read: readClaude, store: claudeStore{},
		Rules: []Rule{
			{How: NotFound, Text: pattern.New(`No conversation found with session ID`)},
			{How: InUse, Text: pattern.New(`Session ID \S+ is already in use|^Error: .*already in use`)},
			{How: Refused, Text: pattern.New(`^(?:Invalid API key|Not logged in|Please run /login|OAuth token)`)},
			{How: UsageLimit, Text: pattern.New(`^Claude(?: AI)? usage limit reached\|\d+`)},
		},
	}
}

// escapeClaude keeps a prompt from being taken as a command, and @file in it from being replaced by the file's
// contents.
func escapeClaude(p string) string {
	escaped := atWord.ReplaceAllString(p, `$1\@`)
	if escaped != p {
		escaped += atNote
	}
	return escapeSlash(escaped)
}

var atWord = pattern.New(`(^|\s)@`)

// atNote explains the escapes to the model, for which they are nothing special.
const atNote = "\n\n(In this message \\@ stands for a plain at sign.)\n"

// escapeSlash keeps a prompt that begins with a slash from being taken as a command.
func escapeSlash(p string) string {
	if strings.HasPrefix(strings.TrimSpace(p), "/") {
		return "Task:\n\n" + p
	}
	return p
}

type claudeEvent struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Message   struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   *claudeUsage    `json:"usage"`
	} `json:"message"`
	ParentToolUseID string `json:"parent_tool_use_id"`
	// of a stream_event, a piece of a message
	Event struct {
		Type    string `json:"type"`
		Message struct {
			ID    string       `json:"id"`
			Usage *claudeUsage `json:"usage"`
		} `json:"message"`
		Usage *claudeUsage `json:"usage"`
	} `json:"event"`

	// of a result
	IsError   bool     `json:"is_error"`
	NumTurns  int      `json:"num_turns"`
	Result    string   `json:"result"`
	Errors    []string `json:"errors"`
	TotalCost *float64 `json:"total_cost_usd"`
	Since     map[string]struct {
		Cost float64 `json:"costUSD"`
	} `json:"model_usage_since_last_result"`
	Usage     *claudeUsage `json:"usage"`
	APIStatus int          `json:"api_error_status"`
	Denials   []struct {
		ToolName string `json:"tool_name"`
	} `json:"permission_denials"`
	// of api_retry
	ErrorStatus int     `json:"error_status"`
	ErrorKind   string  `json:"error"`
	RetryDelay  float64 `json:"retry_delay_ms"`

	RateLimit *struct {
		Status   string  `json:"status"`
		ResetsAt float64 `json:"resetsAt"`
	} `json:"rate_limit_info"`
}

type claudeUsage struct {
	Input         int64 `json:"input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	Output        int64 `json:"output_tokens"`
}

func (u *claudeUsage) usage() Usage {
	return Usage{Prompt: u.Input + u.CacheCreation + u.CacheRead, Eval: u.Output, Cached: u.CacheRead}
}

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func readClaude(s *stream, line []byte) {
	var e claudeEvent
	if !decode(line, &e) {
		return
	}
	// A result that says that there is no such conversation carries its id too.
	if e.Type == "system" || e.Type == "assistant" {
		s.id(e.SessionID)
	}
	switch e.Type {
	case "system":
		s.claudeRetry(&e)
	case "stream_event":
		s.claudePiece(&e)
	case "assistant":
		s.claudeMessage(&e)
	case "user":
		s.claudeBlocks(&e)
	case "rate_limit_event":
		if e.RateLimit != nil && e.RateLimit.Status == "rejected" {
			s.reset = unixTime(e.RateLimit.ResetsAt)
		}
	case "result":
		s.claudeResult(&e)
	}
}

// claudeRetry ends what cannot succeed: a refused key is retried for minutes.
func (s *stream) claudeRetry(e *claudeEvent) {
	if e.Subtype != "api_retry" {
		return
	}
	said := fmt.Sprintf("the API answers with status %d (%s)", e.ErrorStatus, e.ErrorKind)
	if refusedStatus(e.ErrorStatus) {
		s.stop(Refused, said)
		return
	}
	s.wait(said, time.Duration(e.RetryDelay)*time.Millisecond)
}

// refusedStatus reports whether an HTTP status says that the same call will never be answered.
func refusedStatus(status int) bool { return status == 401 || status == 403 || status == 404 }

// claudePiece takes the tokens of a message from its pieces: the message itself has only those that were known when it
// began, and the sum comes with a result, which a run that is ended has none of.
func (s *stream) claudePiece(e *claudeEvent) {
	switch ev := &e.Event; {
	case ev.Type == "message_start" && ev.Message.Usage != nil:
		s.message = ev.Message.ID
		s.spend(s.message, ev.Message.Usage.usage())
	case ev.Type == "message_delta" && ev.Usage != nil && s.message != "":
		used := s.steps[s.message]
		used.Eval = ev.Usage.Output
		s.spend(s.message, used)
	}
}

// claudeMessage counts a message once: it is printed again for each of its blocks.
func (s *stream) claudeMessage(e *claudeEvent) {
	id := e.Message.ID
	if !s.counted[id] && e.ParentToolUseID == "" {
		s.counted[id] = true
		s.step()
	}
	if _, known := s.steps[id]; !known && e.Message.Usage != nil {
		s.spend(id, e.Message.Usage.usage())
	}
	s.claudeBlocks(e)
}

func (s *stream) claudeBlocks(e *claudeEvent) {
	var blocks []claudeBlock
	if json.Unmarshal(e.Message.Content, &blocks) != nil {
		return
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if e.Type == "assistant" && e.ParentToolUseID == "" {
				s.say(b.Text)
			}
		case "thinking":
			s.emit(Activity{Kind: "reasoning", Text: b.Thinking})
		case "tool_use":
			s.emit(Activity{Kind: "tool", Tool: b.Name, ID: b.ID, Args: string(b.Input)})
		case "tool_result":
			s.emit(Activity{Kind: "tool_result", ID: b.ToolUseID, Text: textOf(b.Content), IsError: b.IsError})
		}
	}
}

func (s *stream) claudeResult(e *claudeEvent) {
	if e.Usage != nil {
		s.usage = e.Usage.usage()
	}
	s.claudeCost(e)
	for _, d := range e.Denials {
		s.deny(d.ToolName)
	}
	for _, text := range e.Errors {
		s.fail(text)
	}
	switch {
	case !e.IsError && e.Subtype == "success":
		s.success = true
		if strings.TrimSpace(e.Result) != "" {
			s.text = text.HeadBytes(e.Result, maxMessage)
		}
	case e.Subtype == "error_max_turns" || e.Subtype == "error_max_budget_usd":
		s.how, s.why = TurnLimit, e.Subtype
	case e.IsError && refusedStatus(e.APIStatus):
		s.how, s.why = Refused, e.Result
	case e.IsError && (e.APIStatus == 429 || !s.reset.IsZero()):
		s.limit(s.reset, e.Result)
	default:
		s.fail(e.Result)
	}
}

// claudeCost takes the dollars of this run. Versions that say what was added since the last result mean the whole
// conversation with total_cost_usd; older ones mean the run.
func (s *stream) claudeCost(e *claudeEvent) {
	switch {
	case e.Since != nil:
		s.costKnown = true
		for _, model := range e.Since {
			s.usage.Cost += model.Cost
		}
	case e.TotalCost != nil:
		s.usage.Cost, s.costKnown = *e.TotalCost, true
	}
}

// unixTime reads seconds since 1970; 0 and nonsense are the zero time.
func unixTime(sec float64) time.Time {
	if sec <= 0 || sec > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(sec), 0).UTC()
}
