package equip

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// setupHint shows the shortest ways to set up an agent or a model, each as a command.
const setupHint = `npm install -g @anthropic-ai/claude-code && claude auth login
  or @openai/codex, @google/gemini-cli, opencode-ai: one on PATH is used
git config --global tilth.baseUrl http://localhost:11434/v1 && git tilth doctor
  any OpenAI-compatible endpoint, here Ollama's; doctor names its models
git tilth demo
  shows it all, with a scripted model`

// Choice is the agent of a role, with the reason.
type Choice struct {
	Program *agent.Program // nil for a model
	Why     string
	Others  []Choice // agents that take over, in order
}

// Name returns the name of the agent.
func (c Choice) Name() string { return loop.Role{Program: c.Program}.Name() }

// ChooseAgent chooses a role's agent: the configured one, else a model if an endpoint is configured, else an installed
// program.
func (k *Kit) ChooseAgent(r config.Role) (Choice, error) {
	name := "tilth." + string(r) + ".agent"
	set := k.Config.Get(name)
	endpoint := k.Config.Endpoint(r)
	switch {
	case set.Value != "":
		return k.listed(r, set.Value, name+" ("+set.Origin+")")
	case endpoint.BaseURL != "":
		return Choice{Why: "an endpoint is configured"}, nil
	case r != config.Worker:
		c, err := k.ChooseAgent(config.Worker)
		c.Why = "as the worker: " + c.Why
		return c, err
	}
	if found := agent.Find(k.lookPath); found != nil {
		return Choice{Program: found, Why: "found on PATH: " + found.Binary}, nil
	}
	return Choice{}, held.Refuse(setupHint,
		"no worker is configured: no model endpoint, and no agent program on PATH")
}

// listed returns the agents of a setting, the first of them with the others.
func (k *Kit) listed(r config.Role, list, why string) (first Choice, err error) {
	var all []Choice
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		c := Choice{Why: why}
		if name != "builtin" {
			if c.Program, err = agent.Named(name, k.Config.Agents()[name]); err != nil {
				return Choice{}, held.Refuse("git tilth config", "%s: %s", why, err)
			}
		}
		if slices.Contains(names, name) {
			return Choice{}, held.Refuse("git tilth config", "%s: %s is named twice", why, name)
		}
		all, names = append(all, c), append(names, name)
	}
	if len(all) > 1 && r == config.Prep {
		return Choice{}, held.Refuse("git config tilth.prep.agent "+text.ShellQuote(names[0]),
			"%s: the interview needs exactly one program", why)
	}
	first, first.Others = all[0], all[1:]
	return first, nil
}

// lookPath finds a program on PATH, without relative entries, as the code that starts it does.
func (k *Kit) lookPath(name string) (string, error) {
	return proc.LookPath(name, k.Dir, k.Environ)
}

// Role returns a role's agent, ready to work, with its fallbacks.
func (k *Kit) Role(r config.Role) (loop.Role, error) {
	c, err := k.ChooseAgent(r)
	if err != nil {
		return loop.Role{}, err
	}
	role, err := k.oneRole(r, c, k.Config.Text("tilth."+string(r)+".model"))
	for _, c := range c.Others {
		if err != nil {
			return role, err
		}
		var next loop.Role
		next, err = k.oneRole(r, c, "")
		role.Others = append(role.Others, next)
	}
	return role, err
}

// oneRole returns one agent of a role. model is the role's model, for an agent without tilth.agent.<name>.model.
func (k *Kit) oneRole(r config.Role, c Choice, model string) (role loop.Role, err error) {
	role.Program = c.Program
	own := k.Config.Agents()[role.Name()]["model"]
	if c.Program == nil {
		role.Client, role.Model, err = k.client(r, own)
		return role, err
	}
	if _, err := c.Program.Lookup(k.Ctx, k.Dir, k.Environ); err != nil {
		return role, held.Refuse(k.without(r, c.Program), "%s: %s", c.Why, err)
	}
	if role.Model = cmp.Or(model, own); model != "" {
		role.UnsetModel = k.unset("tilth." + string(r) + ".model")
	}
	return role, nil
}

// without returns hints for a program that is not installed: install it, or remove the setting that names it.
func (k *Kit) without(r config.Role, p *agent.Program) (hint string) {
	if p.Package != "" {
		hint = "npm install -g " + p.Package + "\n"
	}
	if k.Config.Get("tilth."+string(r)+".agent").Value == "" {
		r = config.Worker // the worker's setting applies to all roles
	}
	return hint + k.unset("tilth."+string(r)+".agent")
}

// unset returns the command that removes a setting.
func (k *Kit) unset(name string) string {
	if variable, is := strings.CutPrefix(k.Config.Get(name).Origin, "environment "); is {
		return "unset " + variable
	}
	return k.gitConfigOf(name) + " --unset-all " + name
}

// client returns a client of a role's endpoint. Unless model is "", it replaces the role's model. If no variable has
// the key, git's credential helpers are asked for it.
func (k *Kit) client(r config.Role, other string) (*model.Client, string, error) {
	e := k.Config.Endpoint(r)
	e.Model = cmp.Or(other, e.Model)
	if e.BaseURL == "" {
		return nil, "",
			held.Refuse(setupHint, "no model endpoint for the %s: tilth.baseUrl (TILTH_BASE_URL) is not set", r)
	}
	if e.Model == "" {
		return nil, "", k.withoutModel(r, e)
	}
	if e.APIKey == "" {
		e.APIKey = k.credential(e.BaseURL)
	}
	k.hide(r, e.APIKey)
	c, err := model.New(model.Endpoint(e), model.Options{
		Timeout: k.Config.Duration("tilth.requestTimeout"), UserAgent: "git-tilth/" + k.Version,
		Price: k.price(e.Model)})
	if err != nil {
		return nil, "", held.Refuse("git tilth config", "%s", err)
	}
	return c, e.Model, nil
}

// price returns the price that is set for a model, nil for none.
func (k *Kit) price(name string) *model.Price {
	prompt, answer, known := k.Config.Price(name)
	if !known {
		return nil
	}
	return &model.Price{Prompt: prompt, Answer: answer}
}

// withoutModel returns the error for a role without a model. The error lists the models of the endpoint.
func (k *Kit) withoutModel(r config.Role, e config.Endpoint) error {
	set := "git config --global tilth." + string(r) + ".model "
	e.Model, e.APIKey = "none", cmp.Or(e.APIKey, k.credential(e.BaseURL))
	c, err := model.New(model.Endpoint(e), model.Options{Timeout: answerTime})
	if err != nil {
		return held.Refuse("git tilth config", "%s", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(k.Ctx, answerTime)
	defer cancel()
	models, err := c.Models(ctx)
	hint, why := "echo 'which model?' && read -r model && "+set+`"$model"`, config.ShownURL(e.BaseURL)+" lists none"
	f, failed := errors.AsType[*model.Failure](err)
	switch {
	case failed && (f.Status == 401 || f.Status == 403):
		hint, why = askKey("TILTH_API_KEY"), f.Message
	case failed:
		why = f.Message
	case len(models) > 0:
		hint, why = set+text.ShellQuote(models[0].ID), ""
		for _, m := range models {
			why += ", " + m.ID
		}
		why = "the endpoint has " + text.Clip(text.OneLine(strings.TrimPrefix(why, ", ")), 300)
	}
	return held.Refuse(hint, "no model is set for the %s (tilth.%s.model); %s", r, r, why)
}

// Options checks everything that a run needs before it starts. asked has the options of its flags.
func (k *Kit) Options(asked loop.Options) (loop.Options, error) {
	worker, unready := k.Role(config.Worker)
	o, err := k.Judging(asked)
	if err != nil {
		return o, err
	}
	if k.Config.Count("tilth.lanes") > 1 {
		if v, can := k.Git.Version(k.Ctx, 2, 38); !can {
			return o, held.Refuse("git tilth run -h", "more than one lane needs git 2.38, and this is git %s: use -j 1",
				cmp.Or(v, "(unknown)"))
		}
	}
	if o.Worker = worker; unready != nil {
		return o, unready
	}
	if o.Worker.Client == nil && k.Config.Endpoint(config.Worker).BaseURL != "" &&
		k.Config.Endpoint(config.Worker).Model != "" {
		// A program works, but an endpoint can answer the question about learnings.
		if o.Worker.Client, _, err = k.client(config.Worker, ""); err != nil {
			return o, err
		}
	}
	o.Evaluator, err = k.Role(config.Evaluator)
	return o, err
}

// Judging returns the options of a run without its worker and evaluator.
func (k *Kit) Judging(asked loop.Options) (loop.Options, error) {
	o := loop.Options{
		Caps: k.Config.Caps(), Attempts: int(k.Config.Count("tilth.providerAttempts")),
		Validators: k.Config.List("tilth.validator"),
		MaxOutage:  k.MaxOutage(), Awake: k.awake(),
		Wait: k.Config.Bool("tilth.wait"), MaxWait: k.Config.Duration("tilth.maxWait"), Continue: asked.Continue,
		Fresh:       asked.Fresh,
		KeepGoing:   asked.KeepGoing || k.Config.Text("tilth.onFailure") == "continue",
		Lanes:       int(k.Config.Count("tilth.lanes")),
		NoPreflight: asked.NoPreflight, KnownFailures: asked.KnownFailures, Ready: k.ready,
		Checked:         asked.Checked,
		ValidatorConfig: k.gitConfigOf("tilth.validator"), RedFirst: k.Config.Text("tilth.redFirst"),
		RetryTests:  int(k.Config.Count("tilth.retryTests")),
		AllowBinary: k.Config.List("tilth.allowBinary"),
		MinFree:     k.Config.Count("tilth.minFree"),
		MaxFile:     k.Config.Count("tilth.maxFileSize"), KeepEnv: k.Config.List("tilth.sandboxEnv"),
		Limits: loop.Limits{
			Bash: k.Config.Duration("tilth.bashTimeout"), Validator: k.Config.Duration("tilth.validatorTimeout"),
			Turn: k.Config.Duration("tilth.turnTimeout"), Turns: int(k.Config.Count("tilth.maxTurns")),
			Linger: k.Config.Duration("tilth.linger"),
		},
	}
	var err error
	if o.Sandbox, err = k.Sandbox(); err != nil {
		return o, err
	}
	k.Git.Sandbox = func() (*sandbox.Box, error) { return o.Sandbox, nil } // same sandbox for the whole run
	if o.Prompts, err = loop.LoadPrompts(k.PromptDir()); err != nil {
		return o, held.Refuse("git config tilth.prompts", "%s", err)
	}
	if _, err := validator.FromConfig(o.Validators, ""); err != nil {
		return o, held.Refuse("git config --get-all tilth.validator", "%s", err)
	}
	return o, nil
}

// MaxOutage returns the longest time of failures in a row, tilth.maxOutage. With 0 the first failure is the last.
func (k *Kit) MaxOutage() time.Duration { return max(k.Config.Duration("tilth.maxOutage"), 1) }

// gitConfigOf returns the git command of the file that a setting is from.
func (k *Kit) gitConfigOf(name string) string {
	origin := k.Config.Get(name).Origin
	if file, ok := strings.CutPrefix(origin, "file:"); ok && !k.ofRepo(file) {
		return "git config --file " + text.ShellQuote(file)
	}
	return "git config"
}

// Change returns the command that changes a setting at its origin.
func (k *Kit) Change(name, value string) string {
	if v, ok := strings.CutPrefix(k.Config.Get(name).Origin, "environment "); ok {
		return "export " + v + "=" + value
	}
	return k.gitConfigOf(name) + " " + name + " " + value
}

// ofRepo reports whether a file is the repository's own config.
func (k *Kit) ofRepo(file string) bool {
	rel, err := filepath.Rel(k.Common, file)
	return k.Common != "" && (!filepath.IsAbs(file) || err == nil && filepath.IsLocal(rel))
}

// PromptDir returns the directory of the user's own prompts, "" for none.
func (k *Kit) PromptDir() string {
	dir := k.Config.Text("tilth.prompts")
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		return k.getenv("HOME") + "/" + rest
	}
	return dir
}

// StartOf returns the session_start event with the agents and models.
func (k *Kit) StartOf(o loop.Options) record.SessionStart {
	wall, _ := k.SandboxState()
	return record.SessionStart{Sandbox: wall.Detail, Agents: record.Agents{
		WorkerModel: new(ModelOf(o.Worker)), EvaluatorModel: new(ModelOf(o.Evaluator)),
		WorkerAgent: o.Worker.Name(), EvaluatorAgent: o.Evaluator.Name(),
		BaseURL: config.ShownURL(k.Config.Endpoint(config.Worker).BaseURL), Limits: o.Caps,
	}}
}

// ModelOf returns the model of a role, or the program that chooses one itself.
func ModelOf(r loop.Role) string {
	if r.Model == "" && r.Program != nil {
		return r.Program.Name
	}
	return r.Model
}
