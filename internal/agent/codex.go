package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// codex is OpenAI's Codex CLI.
func codex() *Program {
	return &Program{
		Name: "codex", Title: "Codex CLI", Package: "@openai/codex", Binary: "codex",
		base: []string{"exec", "--json", "--skip-git-repo-check", "-c", "check_for_update_on_startup=false"},
		// Codex's sandbox makes everything except the worktree read-only. In a linked worktree git needs these four
		// paths.
		write: rights{alone: [][]string{{"-s", "workspace-write"}, {"--add-dir", "{gitdir}"},
			{"--add-dir", "{commondir}/objects"}, {"--add-dir", "{commondir}/refs"}, {"--add-dir", "{commondir}/logs"}},
			boxed: codexBoxed},
		// A review is never continued and must not be discovered.
		readOnly: rights{alone: [][]string{{"-s", "read-only"}}, boxed: codexBoxed,
			args: [][]string{{"--ephemeral", "--ignore-rules",
				"-c", "project_doc_max_bytes=0", "-c", `projects={"{dir}"={trust_level="untrusted"}}`,
				"-c", "skills.include_instructions=false"}}},
		model:  []string{"-m", "{model}"},
		resume: []string{"resume", "{id}"},
		tail:   []string{"-"},
		// Only the log tells how long Codex will wait.
		env:     []string{"RUST_LOG=error,codex_core::responses_retry=warn"},
		keyVars: []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"},
		keyFile: place{"CODEX_HOME", "config.toml", ".codex/config.toml"},
		keyName: pattern.New(`(?m)^[^#\n]*\b(?:env_key|bearer_token_env_var)\s*=\s*["']([A-Za-z_]\w*)["']`),
		state: []state{{codexDir,
			[]string{"auth.json", "sessions/", "archived_sessions/"}}},
		validID: uuidForm, keepsID: true, CanResume: true, countsTurns: true,
		Terminal: "a turn.completed event", Login: "codex login",
		read: events(readCodex), watch: watchCodex, finish: codexFinish, store: codexStore,
		rules: []rule{
			{how: NotFound, text: pattern.New(`(?i)no rollout found for thread id|thread/resume.* failed: no rollout`)},
			{how: InUse, text: pattern.New(`already has an active writer`)},
			{how: UsageLimit, text: codexLimit},
		},
	}
}

// codexDir is the directory of Codex's state.
var codexDir = place{"CODEX_HOME", "", ".codex"}

// codexBoxed turns off Codex's sandbox inside ours. Bubblewrap cannot start there, and without bubblewrap Codex runs
// no command, not even a read-only one.
var codexBoxed = [][]string{{"-s", "danger-full-access"}}

func codexUsage(u gjson.Result) Usage {
	return Usage{Prompt: count(u.Get("input_tokens")), Cached: count(u.Get("cached_input_tokens")),
		Eval: count(u.Get("output_tokens")), Reasoning: count(u.Get("reasoning_output_tokens"))}
}

func readCodex(s *stream, e gjson.Result) {
	item := e.Get("item")
	switch kind := e.Get("type").Str; {
	case kind == "thread.started":
		s.id(e.Get("thread_id").Str)
	case kind == "item.started" && item.IsObject():
		s.codexStarted(item)
	case kind == "item.completed" && item.IsObject():
		s.codexItem(item)
	case kind == "turn.started":
		s.success = false
	case kind == "turn.completed":
		s.success = true
		s.turns++
		if used := e.Get("usage"); used.IsObject() {
			s.total, s.totalKnown = codexUsage(used), true
		}
	case kind == "turn.failed":
		s.codexError(e.Get("error.message").Str)
	case kind == "error":
		s.codexError(e.Get("message").Str)
	}
}

// codexLimit matches the message that the account's allowance is used up. Some versions use a typographic apostrophe.
var codexLimit = pattern.New(`^You.{1,3}ve hit your usage limit`)

var (
	codexAgain = pattern.New(`^Reconnecting\.\.\. \d+/\d+ \((.*)\)$`)
	codexWait  = pattern.New(
		`retrying sampling request \(\d+/\d+ in (\d{1,8})(?:\.\d+)?s\)\.\.\..* sampling_error=(.*)$`)
)

// watchCodex reads the wait in Codex's log, from the API's Retry-After.
func watchCodex(s *stream, line []byte) {
	m := codexWait().FindSubmatch(line)
	if m == nil {
		return
	}
	seconds, err := strconv.Atoi(string(m[1]))
	if err == nil {
		s.wait(string(m[2]), time.Duration(seconds)*time.Second)
	}
}

func (s *stream) codexError(text string) {
	if meaning(0, text) == Refused {
		if m := codexAgain().FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		s.stop(Refused, text)
	} else if m := codexAgain().FindStringSubmatch(text); m != nil {
		s.wait(m[1], 0)
		return
	}
	s.fail(text)
}

// codexStarted counts a tool when it begins. It counts an unannounced item when the item is complete.
func (s *stream) codexStarted(item gjson.Result) {
	if tool, args := codexUse(item); tool != "" {
		s.steps[item.Get("id").Str] = Usage{}
		s.toolBegan()
		s.uses(tool, args)
	}
}

func (s *stream) codexItem(item gjson.Result) {
	id, status := item.Get("id").Str, item.Get("status").Str
	if item.Get("type").Str == "agent_message" {
		s.say(item.Get("text").Str)
	}
	tool, _ := codexUse(item)
	if tool == "" {
		return
	}
	if _, begun := s.steps[id]; !begun {
		s.codexStarted(item)
	}
	if status == "declined" {
		s.deny(tool)
	}
	s.used(tool, item.Get("aggregated_output").Str,
		status == "failed" || status == "declined" || item.Get("exit_code").Int() != 0)
	s.toolEnded()
}

// codexUse returns the tool of an item and its arguments as JSON; "" if the item is not a tool call.
func codexUse(item gjson.Result) (tool, args string) {
	switch item.Get("type").Str {
	case "command_execution":
		return "shell", string(record.JSON(map[string]string{"command": item.Get("command").Str}))
	case "file_change":
		return "apply_patch", item.Get("changes").Raw
	case "mcp_tool_call":
		return item.Get("server").Str + "." + item.Get("tool").Str, item.Get("arguments").Raw
	case "web_search":
		return "web_search", string(record.JSON(map[string]string{"query": item.Get("query").Str}))
	}
	return "", ""
}

// codexStore has files $CODEX_HOME/sessions/Y/M/D/rollout-<time>-<id>.jsonl. The first line describes the thread.
var codexStore = &transcripts{
	word: "rollout", missing: "rollout of it",
	// A search for one conversation starts at the newest day and ends at the first match, so it does not read years of
	// days. A glob with a star before the id would compare each position of each name.
	files: func(h *history) (found []string, err error) {
		days, err := filepath.Glob(text.GlobQuote(codexDir.in(h.env)) + "/sessions/*/*/*")
		for _, day := range slices.Backward(days) {
			entries, _ := os.ReadDir(day)
			for _, e := range entries {
				if name := e.Name(); strings.HasPrefix(name, "rollout-") && strings.HasSuffix(name, h.id+".jsonl") {
					found = append(found, filepath.Join(day, name))
				}
			}
			if h.id != "" && len(found) > 0 {
				break
			}
		}
		return found, err
	},
	head: func(t *transcript, e gjson.Result) {
		switch {
		case e.Get("type").Str == "session_meta" && t.began.IsZero():
			t.id, t.cwd, t.began = e.Get("payload.id").Str, e.Get("payload.cwd").Str, e.Get("payload.timestamp").Time()
		case codexSaid(e):
			t.messages++
		}
	},
}

// codexSaid reports whether a line is a message: an answer of the model, or a message to it. The messages with which
// Codex begins a thread do not count.
func codexSaid(e gjson.Result) bool {
	role := e.Get("payload.role").Str
	if e.Get("type").Str != "response_item" || role == "developer" || role == "system" {
		return false
	}
	return role != "user" || !codexOwn().MatchString(textOf(e.Get("payload.content")))
}

var codexOwn = pattern.New(
	`^\s*(?:$|<(?:environment_context|user_instructions|permissions|skills?_|plugins?_|apps?_)|# AGENTS\.md)`)

// codexTail is the number of bytes at a rollout's end that are searched for tokens.
const codexTail = 16 << 20

// codexFinish reads the thread's tokens from its rollout. Newer versions write the whole thread's usage there after
// each answer. The event at a run's end, and all events of older versions, add to the last run's token_count, which
// may be one answer behind. Both are in the last lines of a rollout.
func codexFinish(s *stream, h *history) {
	if s.turn.ReadOnly {
		return // an ephemeral thread has no rollout
	}
	var thread, counted gjson.Result
	paths, _ := codexStore.files(h)
	for _, path := range paths {
		end := int64(0)
		_, _ = jsonl.Tail(path, func(off int64, line []byte) bool {
			end = max(end, off)
			e, _ := event(line)
			used, total := e.Get("payload.thread_token_usage"), e.Get("payload.info.total_token_usage")
			switch {
			case e.Get("type").Str == "token_usage_record" && used.IsObject():
				thread = used
			case e.Get("payload.type").Str == "token_count" && total.IsObject() && !counted.IsObject():
				counted = total
			}
			return !thread.IsObject() && end-off < codexTail
		})
	}
	switch {
	case thread.IsObject() && codexUsage(thread).Prompt >= s.total.Prompt:
		s.total, s.totalKnown = codexUsage(thread), true
	case counted.IsObject() && !s.totalKnown:
		s.total, s.totalKnown = codexUsage(counted), true
	}
}
