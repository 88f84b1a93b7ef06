package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

// acpRow describes a program that speaks the Agent Client Protocol. git-tilth sets the first of these modes that the
// agent offers. In such a mode the agent asks git-tilth for permission, not a model. A name that begins with # is a
// suffix.
type acpRow struct {
	command                  []string // arguments after the program; nil uses the row's
	modes, readOnly          []string
	boxed                    []string // mode in a Box, where the agent's own sandbox cannot start
	reportsUsage             bool     // the agent reports the usage of each turn
	notice                   pattern.Regexp
	mode, readOnlyMode, auth string   // the user's settings
	terminals                bool     // the agent's shell needs a terminal
	judging                  []string // options that let it read a tree outside its directory
}

// copilot is GitHub Copilot CLI.
func copilot() *Program {
	return byACP(&Program{
		Name: "copilot", Title: "GitHub Copilot CLI", Package: "@github/copilot", Binary: "copilot",
		Login: "copilot login",
		keyVars: []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY",
			"COPILOT_PROVIDER_BEARER_TOKEN"},
		state: []state{{place{"", "", ".copilot"},
			[]string{"session-state/", "history-session-state/"}},
			{place{"XDG_CACHE_HOME", "copilot", ".cache/copilot"}, nil}},
	}, acpRow{command: []string{"--acp"}, readOnly: []string{"#plan"}, reportsUsage: true,
		notice: pattern.New(`^\s*(?:Info|Warning): `)})
}

// gemini is Google's Gemini CLI.
func gemini() *Program {
	return byACP(&Program{
		Name: "gemini", Title: "Gemini CLI", Package: "@google/gemini-cli", Binary: "gemini",
		Login:   "gemini, then /auth",
		env:     []string{"GEMINI_CLI_NO_RELAUNCH=true"}, // its parent process swallows signals
		keyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"},
		state: []state{{place{"GEMINI_CLI_HOME", ".gemini", ".gemini"},
			[]string{"oauth_creds.json", "google_accounts.json", "tmp/", "history/"}}},
	}, acpRow{command: []string{"--acp"}, modes: []string{"default"}, readOnly: []string{"plan"},
		reportsUsage: true, terminals: true, judging: []string{"--include-directories", "{dir}"}})
}

// opencode is OpenCode.
func opencode() *Program {
	return byACP(&Program{
		Name: "opencode", Title: "OpenCode", Package: "opencode-ai", Binary: "opencode", Login: "opencode auth login",
		readOnly: rights{env: []string{
			`OPENCODE_PERMISSION={"*":"deny","read":"allow","glob":"allow","grep":"allow","list":"allow",` +
				`"external_directory":{"*":"deny","{dir}/*":"allow"}}`,
			"OPENCODE_DISABLE_PROJECT_CONFIG=1",
		}},
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
	}, acpRow{command: []string{"acp"}, readOnly: []string{"plan"}, reportsUsage: true})
}

// qwen is Qwen Code.
func qwen() *Program {
	return byACP(&Program{
		Name: "qwen", Title: "Qwen Code", Package: "@qwen-code/qwen-code", Binary: "qwen", Login: "qwen, then /auth",
		keyVars: []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "GEMINI_API_KEY",
			"ANTHROPIC_API_KEY"},
		state: []state{{place{"", "", ".qwen"}, []string{"oauth_creds.json", "projects/", "tmp/"}}},
	}, acpRow{command: []string{"--acp"}, modes: []string{"default"}, readOnly: []string{"plan"}, reportsUsage: true,
		terminals: true})
}

// acpOf has the changes to the native rows for tilth.agent.<name>.acp, and the programs that speak the protocol for
// them.
var acpOf = map[string]struct {
	binary, npm string
	row         acpRow
}{
	"claude": {"claude-agent-acp", "@agentclientprotocol/claude-agent-acp",
		acpRow{modes: []string{"default"}, readOnly: []string{"plan"}, notice: pattern.New(`^\s*\*\*Warning:\*\* `)}},
	// The older adapter of this name does not report tokens.
	"codex": {"codex-acp", "@agentclientprotocol/codex-acp",
		acpRow{modes: []string{"agent"}, readOnly: []string{"read-only"},
			boxed: []string{"agent-full-access", "full-access"}}},
}

// byACP changes a row to speak the protocol.
func byACP(p *Program, row acpRow) *Program {
	p.acp, p.base = &row, row.command
	p.CanResume, p.countsTurns = true, true
	p.preset, p.shellCommands, p.keepsID, p.validID = false, false, false, nil
	p.model, p.limit, p.budget, p.system, p.begin, p.resume, p.tail = nil, nil, nil, nil, nil, nil, nil
	p.Terminal = "the answer to its prompt"
	if p.escapePrompt == nil {
		p.escapePrompt = escapeSlash
	}
	p.read, p.watch, p.finish, p.store, p.rules = nil, nil, nil, nil, nil
	p.write, p.readOnly = rights{}, rights{args: [][]string{row.judging}, env: p.readOnly.env}
	return p
}

// SpeaksACP reports whether the program speaks the Agent Client Protocol.
func (p *Program) SpeaksACP() bool { return p.acp != nil }

// acpRowOf returns the ACP row of a program, or nil.
func acpRowOf(p *Program) *Program {
	if p.acp != nil {
		return p
	}
	known, ok := acpOf[p.Name]
	if !ok {
		return nil
	}
	p.Binary, p.Package = known.binary, known.npm
	return byACP(p, known.row)
}

// configure sets the mode and the model of an opened conversation, if the user or the row names them.
func (c *acpConn) configure(ctx context.Context, opened gjson.Result) error {
	t, row := c.s.turn, c.row
	wanted, asked, key := row.modes, row.mode, "mode"
	if t.ReadOnly {
		wanted, asked, key = row.readOnly, row.readOnlyMode, "readOnlyMode"
	}
	if t.Box != nil && len(row.boxed) > 0 {
		wanted = row.boxed
	}
	if asked != "" {
		wanted = []string{asked}
	}
	name := c.s.program.Name
	err := c.choose(ctx, opened, acpChoice{category: "mode", wanted: wanted, asked: asked != "",
		method: "session/set_mode", member: "modeId", list: "modes.availableModes", id: "id",
		key: "tilth.agent." + name + "." + key})
	if err != nil || t.Model == "" {
		return err
	}
	return c.choose(ctx, opened, acpChoice{category: "model", wanted: []string{t.Model}, asked: true,
		method: "session/set_model", member: "modelId", list: "models.availableModels", id: "modelId",
		key: "tilth.agent." + name + ".model", unset: t.UnsetModel})
}

// acpChoice is a value to set in a conversation: through an option of the category if the agent has one, else through
// the method.
type acpChoice struct {
	category, method, member string
	list, id                 string // list of the method's values
	wanted                   []string
	asked                    bool // the user set the value
	key                      string
	unset                    string // command that unsets the value; "" if key sets it
}

func (c *acpConn) choose(ctx context.Context, opened gjson.Result, choice acpChoice) error {
	if len(choice.wanted) == 0 {
		return nil
	}
	method, params := choice.method, map[string]any{"sessionId": c.session}
	var offered []string
	for _, option := range objects(opened.Get("configOptions")) {
		if option.Get("category").Str == choice.category && option.Get("options").IsArray() {
			method, params["configId"], choice.member = "session/set_config_option", option.Get("id").Str, "value"
			offered = optionValues(option.Get("options"))
			break
		}
	}
	if len(offered) == 0 {
		for _, o := range objects(opened.Get(choice.list)) {
			offered = append(offered, o.Get(choice.id).Str)
		}
	}
	for _, wanted := range choice.wanted {
		i := slices.IndexFunc(offered, func(o string) bool {
			return o == wanted || strings.HasPrefix(wanted, "#") && strings.HasSuffix(o, wanted)
		})
		if i < 0 {
			continue
		}
		params[choice.member] = offered[i]
		_, err := c.ask(ctx, method, params)
		return err
	}
	if len(offered) == 0 && !choice.asked {
		return nil
	}
	return &ending{how: Refused, misset: true, hint: cmp.Or(choice.unset, oneOf(choice.key, offered)),
		why: fmt.Sprintf("it has no %s %q, only %s", choice.category, choice.wanted[0], listed(offered))}
}

// oneOf returns the command that sets the first offered value, or unsets the key if none is offered.
func oneOf(key string, offered []string) string {
	if len(offered) == 0 {
		return "git config --unset-all " + key
	}
	return "git config " + key + " " + text.ShellQuote(text.VisibleLine(offered[0]))
}

// optionValues returns the values of an option, in groups or not.
func optionValues(options gjson.Result) (values []string) {
	for _, o := range objects(options) {
		if group := o.Get("options"); group.IsArray() {
			values = append(values, optionValues(group)...)
		} else {
			values = append(values, o.Get("value").Str)
		}
	}
	return values
}

// Initialize starts an ACP agent in an empty directory, reads its name and version, and ends it. It starts no
// conversation.
func (p *Program) Initialize(ctx context.Context, env []string, box *sandbox.Box) (info ACPInfo, err error) {
	t := Turn{Env: env, Box: box, ReadOnly: true, Dir: os.TempDir()}
	cmd, remove, err := p.build(&t)
	if err != nil {
		return ACPInfo{}, err
	}
	defer func() { err = cmp.Or(err, remove()) }()
	s := newStream(p, &t)
	ctx, cancel := s.stoppable(ctx)
	defer cancel(nil)
	c, shut := s.connect(ctx, cmd)
	said := c.initialize(ctx)
	res, err := shut()
	if err == nil && said != nil {
		err = errors.New(oneLine(strings.TrimSpace(c.endOf(said).why + " " + lastLine(string(res.Stderr)))))
	}
	return c.info, err
}
