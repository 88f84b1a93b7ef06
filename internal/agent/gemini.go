package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
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
		base: []string{"-o", "stream-json"},
		// auto_edit with a policy for the shell still asks, and so refuses, for rm -rf, git -c and their like. In
		// every mode the file tools stay inside the directory.
		write: rights{args: [][]string{{"--skip-trust", "--approval-mode", "yolo"}}},
		readOnly: rights{
			args:    [][]string{{"--approval-mode", "default", "--policy", "{private}/policy.toml"}},
			env:     []string{"GEMINI_CLI_TRUST_WORKSPACE=false", "GEMINI_CLI_HOME={private}/home"},
			prepare: geminiHome,
		},
		model: []string{"-m", "{model}"},
		begin: []string{"--session-id", "{id}"}, resume: []string{"--resume", "{id}"},
		// Its parent process swallows signals and leaves the child behind when it is killed.
		env:     []string{"GEMINI_CLI_NO_RELAUNCH=true"},
		keyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"},
		state: []state{{geminiDir,
			[]string{"oauth_creds.json", "google_accounts.json", "tmp/", "history/"}}},
		preset: true, validID: uuidForm, keepsID: true, CanResume: true, countsTurns: true,
		Terminal: "a result with status success", Login: "gemini, then /auth",
		escapePrompt: escapeGemini, read: events(readGemini), watch: watchGemini, finish: geminiFinish,
		store: geminiStore,
		rules: []rule{
			{how: NotFound, text: pattern.New(`Invalid session identifier|No previous sessions found for this project`)},
			{how: InUse, text: pattern.New(`Session ID .*already exists`)},
			// The exit status is that of the API, without its upper bits.
			{how: Refused, exit: 401 & 0xff}, {how: Refused, exit: 403 & 0xff}, {how: Refused, exit: 404 & 0xff},
			{how: UsageLimit, exit: 429 & 0xff},
			{how: Refused, exit: 41},
			{how: Refused, text: pattern.New(`API key not valid|API_KEY_INVALID|"code": ?(?:401|403|404)\b`)},
			{how: UsageLimit, text: pattern.New(
				`^(?:\[API Error: )?You have exhausted your (?:daily quota|capacity)|^TerminalQuotaError`)},
			{how: TurnLimit, exit: 53},
			{how: TurnLimit, text: pattern.New(`FatalTurnLimitedError|Reached max session turns`)},
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

func readGemini(s *stream, e gjson.Result) {
	kind := e.Get("type").Str
	s.success = s.success && kind != "init" && kind != "message" && kind != "tool_use" // it goes on
	switch kind {
	case "init":
		s.id(e.Get("session_id").Str)
	case "message":
		if e.Get("role").Str == "assistant" {
			s.geminiText(e.Get("content").Str, e.Get("delta").Bool())
		}
	case "tool_use":
		s.flush()
		s.toolBegan()
		s.uses(e.Get("tool_name").Str, e.Get("parameters").Raw)
	case "tool_result":
		s.used("", cmp.Or(e.Get("output").Str, e.Get("error.message").Str), e.Get("status").Str == "error")
		if failure := e.Get("error.type").Str; strings.Contains(failure, "policy") ||
			strings.Contains(failure, "denied") {
			s.deny(e.Get("tool_id").Str)
		}
		s.toolEnded()
	case "error":
		if e.Get("severity").Str != "warning" {
			s.fail(e.Get("message").Str)
		}
	case "result":
		s.geminiResult(e)
	}
}

// geminiText puts the pieces of a message together; what uses a tool ends it.
func (s *stream) geminiText(piece string, isDelta bool) {
	if !isDelta {
		s.flush()
	}
	if len(s.partial) < maxMessage {
		s.partial = append(s.partial, piece...)
	}
}

func (s *stream) geminiResult(e gjson.Result) {
	s.flush()
	if stats := e.Get("stats"); stats.IsObject() {
		// Thoughts are only in the total.
		prompt, output := count(stats.Get("input_tokens")), count(stats.Get("output_tokens"))
		eval := max(output, count(stats.Get("total_tokens"))-prompt)
		s.usage = Usage{Prompt: prompt, Eval: eval, Cached: count(stats.Get("cached")), Reasoning: eval - output}
		s.usageSaid = true
	}
	if e.Get("status").Str == "success" {
		s.success = true
		s.turns++
		return
	}
	said := e.Get("error.message").Str
	if e.Get("error.type").Str == "FatalTurnLimitedError" {
		s.how, s.why = TurnLimit, said
		return
	}
	s.fail(said)
	if wait := geminiReset(said); wait > 0 {
		s.reset = time.Now().Add(wait).UTC()
	}
}

var geminiWait = pattern.New(`^Attempt \d+ failed: (.*) Retrying after (\d{1,15})`)

// watchGemini ends it when it wants to sleep until a quota is filled again: waiting is for the harness's user to
// decide.
func watchGemini(s *stream, line []byte) {
	m := geminiWait().FindSubmatch(line)
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
	m := geminiResetForm().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	wait, _ := time.ParseDuration(m[1])
	return wait
}

// geminiStore is ~/.gemini/tmp/<slug>/chats/session-<time>-<first 8 of the id>.jsonl: a description and then a message
// on each line. The directory of a slug stands in .project_root beside its chats. The program's own list of them,
// ~/.gemini/projects.json, goes with a turn, and is made again from these.
var geminiStore = &transcripts{
	word: "conversation", missing: "conversation with this id for this directory",
	files: func(h *history) (found []string, err error) {
		tmp := filepath.Join(geminiDir.in(h.env), "tmp")
		slugs, err := os.ReadDir(tmp)
		if err != nil {
			return nil, err
		}
		err = fs.ErrNotExist
		for _, slug := range slugs {
			dir := filepath.Join(tmp, slug.Name())
			root, unread := jsonl.ReadIn(dir, ".project_root", maxSettings)
			if unread != nil || strings.TrimSpace(string(root)) != h.dir {
				continue
			}
			var chats []string
			chats, err = filepath.Glob(text.GlobQuote(dir) + "/chats/session-*-" + h.anyID(8) + ".json*")
			found = append(found, chats...)
		}
		return found, err
	},
	head: func(h *history, t *transcript, e gjson.Result) {
		if id := e.Get("sessionId").Str; id != "" && t.cwd == "" {
			t.id, t.cwd, t.began = id, h.dir, e.Get("startTime").Time()
		}
		if kind := e.Get("type").Str; kind == "user" || kind == "gemini" {
			t.messages++
		}
	},
}

// geminiDir is where the program keeps what is its own.
var geminiDir = place{"GEMINI_CLI_HOME", ".gemini", ".gemini"}

// geminiFinish adds up the tokens of a run that was ended before it could: each answer in the conversation carries
// its own. An answer is written again when its tools are done.
func geminiFinish(s *stream, h *history) {
	if s.usageSaid {
		return
	}
	began := s.began.Truncate(time.Millisecond) // as the times in the conversation are
	geminiStore.each(h, func(e gjson.Result) {
		used := e.Get("tokens")
		if e.Get("type").Str != "gemini" || !used.IsObject() || e.Get("timestamp").Time().Before(began) {
			return
		}
		thoughts := count(used.Get("thoughts"))
		s.spend(e.Get("id").Str, Usage{Prompt: count(used.Get("input")), Eval: count(used.Get("output")) + thoughts,
			Cached: count(used.Get("cached")), Reasoning: thoughts})
	})
}

// geminiHome makes a policy and a home for a run that judges. Of a directory that is not trusted the program loads
// nothing; but without a person at hand it refuses to run there, unless trust is switched off, which only a settings
// file of the user can do. So it gets the user's own files but for the settings, which have that in them, and for its
// conversations.
func geminiHome(env []string, private string) error {
	theirs := geminiDir.in(env)
	home := filepath.Join(private, "home", ".gemini")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(private, "policy.toml"), []byte(geminiReadOnly), 0o600); err != nil {
		return err
	}
	entries, err := os.ReadDir(theirs)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	settings := map[string]any{}
	for _, e := range entries {
		path := filepath.Join(theirs, e.Name())
		switch e.Name() {
		case "settings.json":
			if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
				return errors.Join(err, fmt.Errorf("%s is no file", path))
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if json.Unmarshal(data, &settings) != nil {
				return fmt.Errorf("%s is not plain JSON; take the comments out of it", path)
			}
		case "tmp", "history", "projects.json", "trustedFolders.json":
		default:
			if err := os.Symlink(path, filepath.Join(home, e.Name())); err != nil {
				return err
			}
		}
	}
	security, ok := settings["security"].(map[string]any)
	if !ok {
		security = map[string]any{}
	}
	security["folderTrust"], settings["security"] = map[string]any{"enabled": false}, security
	data, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "settings.json"), data, 0o600)
}
