package agent

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// codex is OpenAI's Codex CLI.
func codex() *Program {
	return &Program{
		Name: "codex", Title: "Codex CLI", Package: "@openai/codex", Binary: "codex",
		Base: []string{"exec", "--json", "--skip-git-repo-check", "-c", "check_for_update_on_startup=false"},
		// Its sandbox makes everything but the worktree read only; git needs these four to work in a linked worktree.
		Write: []string{"-s", "workspace-write", "", "--add-dir", "{gitdir}", "", "--add-dir", "{commondir}/objects", "",
			"--add-dir", "{commondir}/refs", "", "--add-dir", "{commondir}/logs"},
		// What is judged is never continued, and not to be discovered.
		ReadOnly: []string{"-s", "read-only", "--ephemeral", "--ignore-rules", "-c", "project_doc_max_bytes=0",
			"-c", `projects={"{dir}"={trust_level="untrusted"}}`, "-c", "skills.include_instructions=false"},
		Model:  []string{"-m", "{model}"},
		Resume: []string{"resume", "{id}"},
		Tail:   []string{"-"},
		// Only its log says for how long it will wait by itself.
		Env:     map[string]string{"RUST_LOG": "error,codex_core::responses_retry=warn"},
		KeyVars: []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"},
		ValidID: uuidForm, KeepsID: true, CanResume: true, CountsTurns: true,
		Terminal: "a turn.completed event", Login: "codex login",
		read: readCodex, watch: watchCodex, finish: codexFinish, store: codexStore{},
		Rules: []Rule{
			{How: NotFound, Text: pattern.New(`(?i)no rollout found for thread id|thread/resume.* failed: no rollout`)},
			{How: InUse, Text: pattern.New(`already has an active writer`)},
			{How: UsageLimit, Text: codexLimit},
			{How: UsageLimit, Text: pattern.New(`^exceeded retry limit, last status: 429\b`)},
		},
	}
}

type codexEvent struct {
	Type     string      `json:"type"`
	ThreadID string      `json:"thread_id"`
	Message  string      `json:"message"`
	Usage    *codexUsage `json:"usage"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Item codexItem `json:"item"`
}

type codexUsage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

func (u *codexUsage) usage() Usage {
	return Usage{Prompt: u.Input, Cached: u.Cached, Eval: u.Output, Reasoning: u.Reasoning}
}

type codexItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Command  string          `json:"command"`
	Output   string          `json:"aggregated_output"`
	ExitCode *int            `json:"exit_code"`
	Status   string          `json:"status"`
	Changes  json.RawMessage `json:"changes"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"arguments"`
	Query    string          `json:"query"`
	Message  string          `json:"message"`
}

func readCodex(s *stream, line []byte) {
	var e codexEvent
	if !decode(line, &e) {
		return
	}
	switch e.Type {
	case "thread.started":
		s.id(e.ThreadID)
	case "item.started":
		s.codexStarted(&e.Item)
	case "item.completed":
		s.codexItem(&e.Item)
	case "turn.completed":
		s.success = true
		s.step()
		if e.Usage != nil {
			s.total, s.totalKnown = e.Usage.usage(), true
		}
	case "turn.failed":
		s.codexError(e.Error.Message)
	case "error":
		s.codexError(e.Message)
	}
}

// codexLimit is how it says that the account's allowance is used up. The apostrophe is a typographic one in some
// versions.
var codexLimit = pattern.New(`^You.{1,3}ve hit your usage limit`)

var codexReset = pattern.New(`try again at (?:(\w{3} \d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}:\d{2} [AP]M)`)

var (
	codexRefused = pattern.New(`unexpected status (?:401|403|404)\b`)
	codexAgain   = pattern.New(`^Reconnecting\.\.\. \d+/\d+ \((.*)\)$`)
	codexWait    = pattern.New(
		`retrying sampling request \(\d+/\d+ in (\d{1,8})(?:\.\d+)?s\)\.\.\..* sampling_error=(.*)$`)
)

// watchCodex reads its log. It takes the time that its API names in Retry-After, however long.
func watchCodex(s *stream, line []byte) {
	m := codexWait.FindSubmatch(line)
	if m == nil {
		return
	}
	seconds, err := strconv.Atoi(string(m[1]))
	if err == nil {
		s.wait(string(m[2]), time.Duration(seconds)*time.Second)
	}
}

// codexError keeps an error. That of a used up allowance says when it is over: the time of today, or with its date.
func (s *stream) codexError(text string) {
	if codexRefused.MatchString(text) {
		if m := codexAgain.FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		s.stop(Refused, text)
	} else if m := codexAgain.FindStringSubmatch(text); m != nil {
		s.wait(m[1], 0)
		return
	}
	s.fail(text)
	if !codexLimit.MatchString(text) {
		return
	}
	m := codexReset.FindStringSubmatch(text)
	if m == nil {
		return
	}
	day := time.Now().Format("Jan 2 2006")
	if m[1] != "" {
		day = m[1] + " " + m[2]
	}
	reset, err := time.ParseInLocation("Jan 2 2006 3:04 PM", day+" "+m[3], time.Local)
	if err != nil {
		return
	}
	// Seconds are cut off: a limit must not be called over before it is.
	s.reset = reset.Add(time.Minute).UTC()
}

// codexStarted counts a tool when it begins. An item that was never announced is counted when it is complete.
func (s *stream) codexStarted(item *codexItem) {
	if tool, args := item.use(); tool != "" {
		s.steps[item.ID] = Usage{}
		s.toolBegan()
		s.emit(Activity{Kind: "tool", Tool: tool, ID: item.ID, Args: args})
	}
}

func (s *stream) codexItem(item *codexItem) {
	switch item.Type {
	case "agent_message":
		s.say(item.Text)
		return
	case "reasoning":
		s.emit(Activity{Kind: "reasoning", Text: item.Text})
		return
	case "error":
		s.emit(Activity{Kind: "error", Text: item.Message, IsError: true})
		return
	}
	if _, begun := s.steps[item.ID]; !begun {
		s.codexStarted(item)
	}
	tool, _ := item.use()
	if tool == "" {
		return
	}
	if item.Status == "declined" {
		s.deny(tool)
	}
	s.emit(Activity{Kind: "tool_result", Tool: tool, ID: item.ID, Text: item.Output,
		IsError: item.Status == "failed" || item.Status == "declined" || (item.ExitCode != nil && *item.ExitCode != 0)})
	s.toolEnded()
}

// use names the tool of an item and its arguments as JSON; "" if the item is no use of a tool.
func (i *codexItem) use() (tool, args string) {
	switch i.Type {
	case "command_execution":
		return "shell", object("command", i.Command)
	case "file_change":
		return "apply_patch", string(i.Changes)
	case "mcp_tool_call":
		return i.Server + "." + i.Tool, string(i.Args)
	case "web_search":
		return "web_search", object("query", i.Query)
	}
	return "", ""
}

// object writes a JSON object with one string.
func object(name, value string) string {
	data, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		return "{}"
	}
	return string(data)
}
