package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// opencode is OpenCode.
func opencode() *Program {
	return &Program{
		Name: "opencode", Title: "OpenCode", Package: "opencode-ai", Binary: "opencode",
		// Its log says which conversation it began before the model is asked, and why it waits; its events say neither.
		base:  []string{"run", "--format", "json", "--print-logs"},
		model: []string{"-m", "{model}"}, resume: []string{"--session", "{id}"},
		write: rights{env: []string{`OPENCODE_PERMISSION={"*":"allow","external_directory":"deny"}`}},
		// It takes AGENTS.md from below its directory with every file that it reads there.
		judgesFromOutside: true,
		readOnly: rights{env: []string{
			`OPENCODE_PERMISSION={"*":"deny","read":"allow","glob":"allow","grep":"allow","list":"allow",` +
				`"external_directory":{"*":"deny","{dir}/*":"allow"}}`,
			"OPENCODE_DISABLE_PROJECT_CONFIG=1",
		}, prepare: openCodeOutside},
		keyVars: []string{"OPENCODE_API_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
			"GEMINI_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY",
			"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
			"GOOGLE_APPLICATION_CREDENTIALS"},
		keyFile: place{"XDG_CONFIG_HOME", "opencode/opencode.json", ".config/opencode/opencode.json"},
		keyName: pattern.New(`\{env:([A-Za-z_]\w*)\}`),
		state: []state{{place{"XDG_DATA_HOME", "opencode", ".local/share/opencode"}, []string{"/"}},
			{place{"XDG_STATE_HOME", "opencode", ".local/state/opencode"}, nil},
			{place{"XDG_CACHE_HOME", "opencode", ".cache/opencode"}, nil},
			{place{"XDG_CONFIG_HOME", "opencode", ".config/opencode"}, nil}},
		validID: pattern.New(`^ses_[0-9A-Za-z]+$`), keepsID: true, CanResume: true, countsTurns: true,
		Terminal: "a last step with reason stop", Login: "opencode auth login",
		read: events(readOpenCode), watch: watchOpenCode, store: openCodeStore{},
		rules: []rule{
			{how: NotFound, text: pattern.New(
				`^(?:\x1b\[[0-9;]*m)*Error: (?:\x1b\[[0-9;]*m)*Session not found|^NotFoundError: `)},
			{how: UsageLimit, text: pattern.New(
				`^APIError: (?:The usage limit has been reached|You exceeded your current quota)`)},
		},
	}
}

// openCodeOutside makes the directory from which it judges.
func openCodeOutside(_ []string, private string) error {
	dir := filepath.Join(private, outside)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "README"), []byte("Nothing is here on purpose.\n"), 0o600)
}

func readOpenCode(s *stream, e gjson.Result) {
	kind := e.Get("type").Str
	// That there is no such conversation is said with its id too.
	if kind != "error" {
		s.id(e.Get("sessionID").Str)
	}
	switch kind {
	case "step_start":
		s.success = false
		s.turns++
	case "text":
		s.say(e.Get("part.text").Str)
	case "tool_use":
		s.openCodeTool(e)
	case "step_finish":
		s.openCodeStep(e)
	case "error":
		s.success = false
		s.fail(e.Get("error.name").Str + ": " + e.Get("error.data.message").Str)
		s.how, s.why = Failed, s.errors[len(s.errors)-1]
		if refusedStatus(e.Get("error.data.statusCode").Int()) {
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
	if m := openCodeBegun().FindSubmatch(line); m != nil && s.conversation == "" {
		s.id(string(m[1]))
	}
	if openCodeCall().FindSubmatch(line) != nil {
		s.waits, s.asking, s.heard, s.quiet = "", true, time.Now(), false
	}
	m := openCodeError().FindSubmatch(line)
	if m == nil {
		return
	}
	if said := string(m[1]); openCodeLimit().MatchString(said) {
		s.how, s.why = UsageLimit, said
		s.stop(UsageLimit, said)
	} else {
		s.wait(said, 0)
	}
}

func (s *stream) openCodeTool(e gjson.Result) {
	tool, state := e.Get("part.tool").Str, e.Get("part.state")
	failed, failure := state.Get("status").Str == "error", state.Get("error").Str
	s.uses(tool, state.Get("input").Raw)
	s.used(tool, cmp.Or(state.Get("output").Str, failure), failed)
	if failed && deniedForm().MatchString(failure) {
		s.deny(tool)
	}
}

var deniedForm = pattern.New(`(?i)rejected permission|prevents you from using|permission denied by`)

func (s *stream) openCodeStep(e gjson.Result) {
	if t := e.Get("part.tokens"); t.IsObject() {
		cached, reasoning := count(t.Get("cache.read")), count(t.Get("reasoning"))
		s.usage = plus(s.usage, Usage{Prompt: count(t.Get("input")) + cached + count(t.Get("cache.write")),
			Eval: count(t.Get("output")) + reasoning, Cached: cached, Reasoning: reasoning,
			Cost: max(0, min(e.Get("part.cost").Num, 1e6)), CostKnown: true}, 1)
	}
	s.success = e.Get("part.reason").Str == "stop"
	if !s.success {
		s.enough()
	}
}

// openCodeStore asks the program itself: its database is its own affair.
type openCodeStore struct{}

// askLimit bounds how long a question to the program may take.
const askLimit = time.Minute

// ask returns what the program answers, from the first of the characters begin on.
func (openCodeStore) ask(
	ctx context.Context, h *history, begin byte, args ...string,
) (answer gjson.Result, res proc.Outcome, err error) {
	env := ScrubEnv(h.env)
	bin, err := proc.LookPath(h.program.Binary, h.dir, env)
	if err != nil {
		return gjson.Result{}, proc.Outcome{}, h.program.NotInstalled()
	}
	box, done, err := h.program.inside(h.program.Box, env, h.dir)
	if err != nil {
		return gjson.Result{}, proc.Outcome{}, err
	}
	defer func() { err = cmp.Or(err, done()) }()
	res, err = proc.Run(ctx, proc.Cmd{Argv: append([]string{bin}, args...), Dir: h.dir, Env: env,
		Box: box, Timeout: askLimit, OutputCap: 64 << 20, SeparateStderr: true})
	if start := bytes.IndexByte(res.Output, begin); start >= 0 {
		answer, _ = jsonl.Parse(res.Output[start:])
	}
	return answer, res, err
}

func (o openCodeStore) state(ctx context.Context, h *history) (gone bool, why string) {
	said, res, err := o.ask(ctx, h, '{', "export", h.id)
	switch {
	case err != nil:
		return false, err.Error()
	case bytes.Contains(slices.Concat(res.Output, res.Stderr), []byte("Session not found")):
		return true, "opencode has no conversation with this id"
	case res.ExitCode != 0:
		return false, askFailed("export", res).Error()
	case said.Get("info.id").Str != h.id:
		return false, "what opencode export says is not understood"
	case proc.RealPath(said.Get("info.directory").Str) != h.dir:
		return true, "its conversation belongs to the directory " + said.Get("info.directory").Str
	case said.Get("messages.#").Int() == 0:
		return true, "its conversation is empty"
	}
	return false, "opencode has its conversation"
}

func askFailed(what string, res proc.Outcome) error {
	return fmt.Errorf("opencode %s ended with exit status %d: %s", what, res.ExitCode, oneLine(string(res.Stderr)))
}

func (o openCodeStore) newest(ctx context.Context, h *history, since time.Time, except []string) (string, error) {
	list, res, err := o.ask(ctx, h, '[', "session", "list", "--format", "json")
	switch {
	case err != nil:
		return "", err
	case res.ExitCode != 0 || !list.IsArray() && bytes.IndexByte(res.Output, '[') >= 0:
		return "", askFailed("session list", res)
	}
	best := candidate{h: h, since: since, except: except}
	for _, s := range objects(list) {
		best.offer(s.Get("id").Str, s.Get("directory").Str, time.UnixMilli(s.Get("created").Int()))
	}
	return best.id, nil
}
