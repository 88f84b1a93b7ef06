package agent

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// claude is Claude Code.
func claude() *Program {
	return &Program{
		Name: "claude", Title: "Claude Code", Package: "@anthropic-ai/claude-code", Binary: "claude",
		base: []string{"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"},
		// Claude Code refuses bypassPermissions to root. With acceptEdits its file tools stay inside the directory.
		// The disallowed tools would switch to another worktree, or continue after the turn.
		write: rights{args: [][]string{{"--permission-mode", "acceptEdits", "--allowedTools", "Bash",
			"--disallowedTools", "EnterWorktree,ExitWorktree,CronCreate,ScheduleWakeup"}}},
		// Only reading tools exist, whatever the user's settings allow, and no server can add tools. A review is never
		// continued, so it leaves no transcript for discovery.
		readOnly: rights{args: [][]string{{"--permission-mode", "default", "--tools", "Read,Glob,Grep",
			"--strict-mcp-config", "--no-session-persistence", "--setting-sources", "user"}},
			env: []string{"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1"}}, // the memory of a directory, which a worker may write
		model: []string{"--model", "{model}"}, limit: []string{"--max-turns", "{turns}"},
		budget: []string{"--max-budget-usd", "{dollars}"},
		system: []string{"--append-system-prompt", "{system}"},
		begin:  []string{"--session-id", "{id}"}, resume: []string{"--resume", "{id}"},
		keyVars: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
			"ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_FOUNDRY_API_KEY",
			"CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
			"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "AWS_ACCESS_KEY_ID",
			"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_APPLICATION_CREDENTIALS"},
		state: []state{{claudeDir,
			[]string{".credentials.json", "projects/{tree}/", "-projects/{tree}/memory", "todos/", "tasks/"}},
			{place{"", "", ".claude.json"}, nil}},
		preset: true, validID: uuidForm, CanResume: true,
		Terminal: "a result", Login: "claude auth login",
		status: []string{"auth", "status"}, loggedOut: pattern.New(`"loggedIn":\s*false`),
		escapePrompt: escapeClaude, read: events(readClaude), store: claudeStore,
		rules: []rule{
			{how: NotFound, text: pattern.New(`No conversation found with session ID`)},
			{how: InUse, text: pattern.New(`Session ID \S+ is already in use|^Error: .*already in use`)},
			{how: Refused, text: pattern.New(`^(?:Invalid API key|Not logged in|Please run /login|OAuth token)`)},
			{how: UsageLimit, text: pattern.New(`^Claude(?: AI)? usage limit reached\|\d+`)},
		},
	}
}

// claudeDir is the directory of Claude Code's state.
var claudeDir = place{"CLAUDE_CONFIG_DIR", "", ".claude"}

// escapeClaude escapes a prompt so that Claude Code does not read it as a command or replace @file by a file's
// contents.
func escapeClaude(p string) string {
	escaped := atWord().ReplaceAllString(p, `$1\@`)
	if escaped != p {
		escaped += atNote
	}
	return escapeSlash(escaped)
}

var atWord = pattern.New(`(^|\s)@`)

// atNote explains the escapes to the model, which does not know them.
const atNote = "\n\n(In this message \\@ stands for a plain at sign.)\n"

// escapeSlash escapes a prompt that begins with a slash, which would be a command.
func escapeSlash(p string) string {
	if strings.HasPrefix(strings.TrimSpace(p), "/") {
		return "Task:\n\n" + p
	}
	return p
}

func claudeUsage(u gjson.Result) Usage {
	cached := count(u.Get("cache_read_input_tokens"))
	return Usage{Prompt: count(u.Get("input_tokens")) + count(u.Get("cache_creation_input_tokens")) + cached,
		Eval: count(u.Get("output_tokens")), Cached: cached}
}

func readClaude(s *stream, e gjson.Result) {
	kind := e.Get("type").Str
	// The result for an unknown conversation also has its id.
	if kind == "system" || kind == "assistant" {
		s.id(e.Get("session_id").Str)
	}
	switch kind {
	case "system":
		s.claudeSystem(e)
	case "stream_event":
		s.claudePiece(e)
	case "assistant":
		s.claudeMessage(e)
	case "user":
		s.claudeBlocks(e, false)
	case "rate_limit_event":
		if e.Get("rate_limit_info.status").Str == "rejected" {
			s.reset = unixTime(e.Get("rate_limit_info.resetsAt").Num)
		}
	case "result":
		s.claudeResult(e)
	}
}

// claudeSystem handles the program's own events. Subagents run in the background. When one ends, the program continues
// even after it reported a result.
func (s *stream) claudeSystem(e gjson.Result) {
	switch e.Get("subtype").Str {
	case "init":
		s.success = false
	case "background_tasks_changed":
		s.under, s.background = nil, nil
		for _, task := range objects(e.Get("tasks")) {
			kind, id := task.Get("task_type").Str, task.Get("task_id").Str
			if task.Get("ambient").Bool() {
				continue
			}
			s.background = append(s.background, oneLine(kind+" "+cmp.Or(task.Get("description").Str, id)))
			if claudeOwn().MatchString(kind) {
				s.under = append(s.under, id)
			}
		}
	case "api_retry":
		s.claudeRetry(e)
	}
}

// claudeOwn are the kinds of background tasks that report to the conversation at their end. A shell may run for ever.
var claudeOwn = pattern.New(`agent|teammate|workflow`)

// claudeRetry ends a turn that cannot succeed. The program would retry a refused key for minutes.
func (s *stream) claudeRetry(e gjson.Result) {
	status := e.Get("error_status").Int()
	said := fmt.Sprintf("the API answers with status %d (%s)", status, e.Get("error").Str)
	if meaning(status, said) == Refused {
		s.stop(Refused, said)
		return
	}
	s.wait(said, time.Duration(e.Get("retry_delay_ms").Num)*time.Millisecond)
}

// claudePiece counts a message's tokens from its pieces. The message itself has only the tokens at its start, and an
// interrupted run has no result with the sum.
func (s *stream) claudePiece(e gjson.Result) {
	kind, begun, added := e.Get("event.type").Str, e.Get("event.message.usage"), e.Get("event.usage")
	switch {
	case kind == "message_start" && begun.IsObject():
		s.success = false
		s.message = e.Get("event.message.id").Str
		s.spend(s.message, claudeUsage(begun))
	case kind == "message_delta" && added.IsObject() && s.message != "":
		used := s.steps[s.message]
		used.Eval = count(added.Get("output_tokens"))
		s.spend(s.message, used)
	}
}

// claudeMessage counts a message once, because the program prints it again for each of its blocks.
func (s *stream) claudeMessage(e gjson.Result) {
	id, own := e.Get("message.id").Str, e.Get("parent_tool_use_id").Str == ""
	if !s.counted[id] && own {
		s.counted[id], s.success = true, false
		s.turns++
	}
	if used := e.Get("message.usage"); used.IsObject() {
		s.others[id] = !own
		if _, known := s.steps[id]; !known {
			s.spend(id, claudeUsage(used))
		}
	}
	s.claudeBlocks(e, own)
}

// claudeBlocks handles the blocks of a message. Text counts only from the main agent.
func (s *stream) claudeBlocks(e gjson.Result, said bool) {
	for _, b := range objects(e.Get("message.content")) {
		switch b.Get("type").Str {
		case "text":
			if said {
				s.say(b.Get("text").Str)
			}
		case "tool_use":
			s.uses(b.Get("name").Str, b.Get("input").Raw)
		case "tool_result":
			s.used("", textOf(b.Get("content")), b.Get("is_error").Bool())
		}
	}
}

func (s *stream) claudeResult(e gjson.Result) {
	s.claudeSum(e)
	for _, denied := range objects(e.Get("permission_denials")) {
		s.deny(denied.Get("tool_name").Str)
	}
	for _, said := range e.Get("errors").Array() {
		s.fail(said.Str)
	}
	failed, kind, status, said := e.Get("is_error").Bool(), e.Get("subtype").Str, e.Get("api_error_status").Int(),
		e.Get("result").Str
	switch {
	case !failed && kind == "success":
		s.success = true
		if strings.TrimSpace(said) != "" {
			s.text = text.HeadBytes(said, maxMessage)
		}
	case kind == "error_max_turns":
		s.how, s.why = TurnLimit, kind
	case kind == "error_max_budget_usd":
		s.how, s.why = Unfinished, "it reached its dollar limit"
	case failed && !s.reset.IsZero() && !model.Passes(said):
		s.how, s.why = UsageLimit, said
	case failed && meaning(status, said) != Failed:
		s.how, s.why = meaning(status, said), said
	default:
		s.fail(said)
	}
}

// claudeSum replaces the usage of messages since the last result by the result's usage. Versions that report usage
// since the last result include subagents, and their total_cost_usd is for the whole conversation. In older versions
// total_cost_usd is for the run, and usage is for the main agent's messages since the last result.
func (s *stream) claudeSum(e gjson.Result) {
	since, used, total := e.Get("model_usage_since_last_result"), e.Get("usage"), e.Get("total_cost_usd")
	switch {
	case since.IsObject():
		s.forget(func(string) bool { return true })
		known := true
		since.ForEach(func(_, u gjson.Result) bool {
			cached := count(u.Get("cacheReadInputTokens"))
			cost, ok := jsonl.Dollars(u.Get("costUSD").Num)
			known = known && ok
			s.usage = plus(s.usage, Usage{Cost: cost, Cached: cached,
				Prompt: count(u.Get("inputTokens")) + count(u.Get("cacheCreationInputTokens")) + cached,
				Eval:   count(u.Get("outputTokens"))}, 1)
			return true
		})
		s.usage.CostKnown = known
		return
	case used.IsObject():
		s.forget(func(message string) bool { return !s.others[message] })
		s.usage = plus(s.usage, claudeUsage(used), 1)
	}
	if total.Type == gjson.Number {
		s.usage.Cost, s.usage.CostKnown = jsonl.Dollars(total.Num)
	}
}

// unixTime reads seconds since 1970; 0 and invalid values are the zero time.
func unixTime(sec float64) time.Time {
	if sec <= 0 || sec > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(sec), 0).UTC()
}

// claudeStore is $CLAUDE_CONFIG_DIR/projects/<directory>/<id>.jsonl, with one message per line. The directory's name
// is cut and hashed differently in each version, so the search covers all directories.
var claudeStore = &transcripts{
	word: "transcript", missing: "transcript of it (it removes them after 30 days)",
	files: func(h *history) ([]string, error) {
		root := text.GlobQuote(claudeDir.in(h.env))
		return filepath.Glob(root + "/projects/*/" + cmp.Or(h.id, "*") + ".jsonl")
	},
	head: func(t *transcript, e gjson.Result) {
		if t.cwd == "" {
			t.cwd = e.Get("cwd").Str
		}
		if t.began.IsZero() {
			t.began = e.Get("timestamp").Time()
		}
		if kind := e.Get("type").Str; kind == "user" || kind == "assistant" {
			t.messages++
		}
	},
}
