package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// setupHint shows the shortest ways to say who works, each of which can be pasted.
const setupHint = `npm install -g @anthropic-ai/claude-code && claude auth login
  or @openai/codex, @google/gemini-cli, opencode-ai: one on PATH is used as it is
git config --global tilth.baseUrl http://localhost:11434/v1 && git tilth doctor
  any OpenAI-compatible endpoint, here Ollama's; doctor names its models
git tilth demo
  shows it all, with a scripted model`

// choice says who works in a role, and why.
type choice struct {
	program *agent.Program // nil for a model
	why     string
	others  []choice // who takes over, in this order
}

func (c choice) name() string { return loop.Role{Program: c.program}.Name() }

// chooseAgent decides between a model and an agent program: what is set, else a model if an endpoint is, else
// what is installed.
func (w *repoContext) chooseAgent(r config.Role) (choice, error) {
	name := "tilth." + string(r) + ".agent"
	set := w.config.Get(name)
	endpoint := w.config.Endpoint(r)
	switch {
	case set.Value != "":
		return w.listed(r, set.Value, name+" ("+set.Origin+")")
	case endpoint.BaseURL != "":
		return choice{why: "an endpoint is configured"}, nil
	case r != config.Worker:
		c, err := w.chooseAgent(config.Worker)
		c.why = "as the worker: " + c.why
		return c, err
	}
	if found := agent.Find(w.lookPath); found != nil {
		return choice{program: found, why: "found on PATH: " + found.Binary}, nil
	}
	return choice{}, refuse(setupHint,
		"nothing is configured to do the work: no model endpoint, and no agent program on PATH")
}

// listed are those whom a setting names, the first of them with the others.
func (w *repoContext) listed(r config.Role, list, why string) (first choice, err error) {
	var all []choice
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		c := choice{why: why}
		if name != "builtin" {
			if c.program, err = agent.Named(name, w.config.Agents()[name]); err != nil {
				return choice{}, refuse("git tilth config", "%s: %s", why, err)
			}
		}
		if slices.Contains(names, name) {
			return choice{}, refuse("git tilth config", "%s: %s is named twice", why, name)
		}
		all, names = append(all, c), append(names, name)
	}
	if len(all) > 1 && r == config.Prep {
		return choice{}, refuse("git config tilth.prep.agent "+text.ShellQuote(names[0]),
			"%s: only one can hold the interview", why)
	}
	first, first.others = all[0], all[1:]
	return first, nil
}

// lookPath finds a program as those that start it do: relative entries of PATH are not searched.
func (w *repoContext) lookPath(name string) (string, error) {
	return proc.LookPath(name, w.p.dir, w.p.environ)
}

// role resolves who works in a role, ready to work, with those who take over.
func (w *repoContext) role(r config.Role) (loop.Role, error) {
	c, err := w.chooseAgent(r)
	if err != nil {
		return loop.Role{}, err
	}
	role, err := w.oneRole(r, c, w.config.Text("tilth."+string(r)+".model"))
	for _, c := range c.others {
		if err != nil {
			return role, err
		}
		var next loop.Role
		next, err = w.oneRole(r, c, "")
		role.Others = append(role.Others, next)
	}
	return role, err
}

// oneRole is one of those who work in a role. model is what is set for it beside tilth.agent.<name>.model.
func (w *repoContext) oneRole(r config.Role, c choice, model string) (role loop.Role, err error) {
	role.Program = c.program
	own := w.config.Agents()[role.Name()]["model"]
	if c.program == nil {
		role.Client, role.Model, err = w.clientFor(r, own)
		return role, err
	}
	if _, err := w.lookPath(c.program.Binary); err != nil {
		return role, refuse(w.without(r, c.program), "%s: %s", c.why, c.program.NotInstalled())
	}
	role.Model = cmp.Or(model, own)
	return role, nil
}

// without are the ways on where a program that is to work in a role is not there: it is installed, or what names it
// goes, so that an endpoint or another program works.
func (w *repoContext) without(r config.Role, p *agent.Program) (hint string) {
	if p.Package != "" {
		hint = "npm install -g " + p.Package + "\n"
	}
	if w.config.Get("tilth."+string(r)+".agent").Value == "" {
		r = config.Worker // whose setting holds for all
	}
	name := "tilth." + string(r) + ".agent"
	if strings.HasPrefix(w.config.Get(name).Origin, "environment") {
		return hint + "unset TILTH_" + strings.ToUpper(string(r)) + "_AGENT"
	}
	return hint + w.gitConfigOf(name) + " --unset-all " + name
}

// client makes the client of a role's endpoint. Its key is asked of git's credential helpers if no variable has it.
func (w *repoContext) client(r config.Role) (*model.Client, string, error) { return w.clientFor(r, "") }

// clientFor makes it for another model than the role's, "" for that one.
func (w *repoContext) clientFor(r config.Role, other string) (*model.Client, string, error) {
	e := w.config.Endpoint(r)
	e.Model = cmp.Or(other, e.Model)
	if e.BaseURL == "" {
		return nil, "", refuse(setupHint, "no model endpoint for the %s: tilth.baseUrl (TILTH_BASE_URL) is not set", r)
	}
	if e.Model == "" {
		return nil, "", w.withoutModel(r, e)
	}
	if e.APIKey == "" {
		e.APIKey = w.credential(e.BaseURL)
	}
	w.hide(r, e.APIKey)
	c, err := model.New(model.Endpoint(e), model.Options{Stream: w.config.Bool("tilth.stream"),
		Timeout: w.config.Duration("tilth.requestTimeout"), UserAgent: "git-tilth/" + version})
	if err != nil {
		return nil, "", refuse("git tilth config", "%s", err)
	}
	return c, e.Model, nil
}

// withoutModel names the models that an endpoint has, where none is set.
func (w *repoContext) withoutModel(r config.Role, e config.Endpoint) error {
	set := "git config --global tilth." + string(r) + ".model "
	e.Model, e.APIKey = "none", cmp.Or(e.APIKey, w.credential(e.BaseURL))
	c, err := model.New(model.Endpoint(e), model.Options{Timeout: answerTime})
	if err != nil {
		return refuse("git tilth config", "%s", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.p.ctx, answerTime)
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
	return refuse(hint, "no model is set for the %s (tilth.%s.model); %s", r, r, why)
}

// keyless reports whether nothing gives a key for a role's endpoint.
func (w *repoContext) keyless(role config.Role) bool {
	e := w.config.Endpoint(role)
	return e.APIKey == "" && w.credential(e.BaseURL) == ""
}

// askKey sets a variable to a key that is pasted unseen: neither the screen nor the shell's history has it.
func askKey(name string) string {
	return "echo 'paste the key, then Enter:' && read -rs " + name + " && export " + name
}

// helperPatience is how long a credential helper may take: some ask a server.
const helperPatience = 30 * time.Second

// credential asks git's credential helpers for the key of a URL, once. Having none is no fault: local servers need
// none, and others will say so.
func (w *repoContext) credential(url string) string {
	if key, asked := w.asked[url]; asked {
		return key
	}
	ctx, cancel := context.WithTimeout(w.p.ctx, helperPatience)
	defer cancel()
	key := password(ctx, w.git, w.common, url)
	w.asked[url] = key
	return key
}

// password asks the credential helpers of the user, and of the repository with this common directory unless it is "",
// for the password of a URL; "" for none. Nobody is prompted, and a helper that waits for someone ends with the
// context.
func password(ctx context.Context, g *gitx.Git, common, url string) (password string) {
	if url == "" || strings.ContainsAny(url, "\n\x00") {
		return ""
	}
	c := gitx.Command{Dir: "/", Args: []string{"credential", "fill"}}
	if common != "" {
		c = gitx.InRepo(common, c.Args...)
	}
	c.Stdin, c.Keys = []byte("url="+url+"\n\n"), true
	out, err := g.Read(ctx, c)
	for line := range strings.Lines(string(out)) {
		if value, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "password="); is && err == nil {
			password = value
		}
	}
	return password
}

// hide keeps a key that came from elsewhere than the environment out of the record. Each role may have one of its own.
func (w *repoContext) hide(r config.Role, key string) {
	if key == "" || slices.Contains(slices.Collect(maps.Values(w.keys)), key) {
		return
	}
	name := "TILTH_API_KEY"
	if w.keys[name] != "" {
		name = "TILTH_" + strings.ToUpper(string(r)) + "_API_KEY"
	}
	w.keys[name] = key
	w.redact = w.redactor()
}

// options checks everything that a run needs before it starts. What its own flags say is in asked.
func (w *repoContext) options(asked loop.Options) (loop.Options, error) {
	o, err := w.judging(asked)
	if err != nil {
		return o, err
	}
	if w.config.Count("tilth.lanes") > 1 {
		if v, can := w.git.Version(w.p.ctx, 2, 38); !can {
			return o, refuse("git tilth run -h", "more than one lane needs git 2.38, and this is git %s: use -j 1",
				cmp.Or(v, "(unknown)"))
		}
	}
	if o.Worker, err = w.role(config.Worker); err != nil {
		return o, err
	}
	if o.Worker.Client == nil && w.config.Endpoint(config.Worker).BaseURL != "" &&
		w.config.Endpoint(config.Worker).Model != "" {
		// A program works, but there is an endpoint to ask what was learned.
		if o.Worker.Client, _, err = w.client(config.Worker); err != nil {
			return o, err
		}
	}
	if o.Evaluator, err = w.role(config.Evaluator); err != nil || w.config.Text("tilth.capMode") != "strict" {
		return o, err
	}
	for _, role := range []*loop.Role{&o.Worker, &o.Evaluator} {
		err = errors.Join(err, w.holdToCaps(role, o.Caps))
		for i := range role.Others {
			err = errors.Join(err, w.holdToCaps(&role.Others[i], o.Caps))
		}
	}
	return o, err
}

// holdToCaps makes a role one whose model calls can be held to the caps. The calls of an agent program are its own.
func (w *repoContext) holdToCaps(r *loop.Role, caps config.Caps) error {
	const task = "git config tilth.capMode task" // where the task at hand may pass a cap before the run stops
	switch {
	case caps[config.MaxTokens] == 0 && caps[config.MaxCost] == 0:
		return nil
	case r.Program != nil:
		return refuse(task, "strict caps cannot hold %s: an agent program makes its model calls itself", r.Program.Name)
	}
	r.MaxAnswer = w.config.Count("tilth.maxAnswerTokens")
	if caps[config.MaxCost] == 0 {
		return nil
	}
	if prompt, answer, known := w.config.Price(r.Model); known {
		r.Price = &model.Price{Prompt: prompt, Answer: answer}
		return nil
	}
	why := "the endpoint's list of models names none"
	models, err := r.Client.Models(w.p.ctx)
	if err != nil {
		why = "the endpoint gives no list of models: " + err.Error()
	}
	for _, m := range models {
		if m.ID == r.Model && m.Price != nil {
			r.Price = m.Price
			if m.MaxAnswer > 0 {
				r.MaxAnswer = min(r.MaxAnswer, m.MaxAnswer)
			}
			return nil
		}
	}
	return refuse("git config --edit", "a strict dollar cap needs the price of %s: %s (%s is the dollars for a "+
		"million tokens of prompt and of answer, as in '3 15')", r.Model, why, config.PriceKey(r.Model))
}

// judging is what a run needs without those who work and judge.
func (w *repoContext) judging(asked loop.Options) (loop.Options, error) {
	o := loop.Options{
		Caps: w.config.Caps(), Attempts: int(w.config.Count("tilth.providerAttempts")),
		Validators: w.config.List("tilth.validator"),
		Wait:       asked.Wait, MaxWait: w.config.Duration("tilth.maxWait"), Continue: asked.Continue,
		Fresh:       asked.Fresh,
		KeepGoing:   asked.KeepGoing || w.config.Text("tilth.onFailure") == "continue",
		Lanes:       int(w.config.Count("tilth.lanes")),
		NoPreflight: asked.NoPreflight, KnownFailures: asked.KnownFailures, Ready: w.ready,
		Checked:         asked.Checked,
		ValidatorConfig: w.gitConfigOf("tilth.validator"),
		Borrow:          w.config.Text("tilth.judgeBorrow") == "deps",
		AllowBinary:     w.config.List("tilth.allowBinary"),
		MinFree:         w.config.Count("tilth.minFree"),
		MaxFile:         w.config.Count("tilth.maxFileSize"), KeepEnv: w.config.List("tilth.sandboxEnv"),
		Limits: loop.Limits{
			Bash: w.config.Duration("tilth.bashTimeout"), Validator: w.config.Duration("tilth.validatorTimeout"),
			Turn: w.config.Duration("tilth.turnTimeout"), Turns: int(w.config.Count("tilth.maxTurns")),
			Linger: w.config.Duration("tilth.linger"),
		},
	}
	var err error
	if o.Sandbox, err = w.sandbox(); err != nil {
		return o, err
	}
	w.git.Sandbox = func() (*sandbox.Box, error) { return o.Sandbox, nil } // the same for a whole run
	if o.Prompts, err = loop.LoadPrompts(w.promptDir()); err != nil {
		return o, refuse("git config tilth.prompts", "%s", err)
	}
	if _, err := validator.FromConfig(o.Validators, ""); err != nil {
		return o, refuse("git config --get-all tilth.validator", "%s", err)
	}
	return o, nil
}

// gitConfigOf is the git command of the file that a setting is from.
func (w *repoContext) gitConfigOf(name string) string {
	origin := w.config.Get(name).Origin
	if file, ok := strings.CutPrefix(origin, "file:"); ok && !w.ofRepo(file) {
		return "git config --file " + text.ShellQuote(file)
	}
	return "git config"
}

// change is the command that gives a setting another value where it has the one that holds.
func (w *repoContext) change(name, value string) string {
	if v, ok := strings.CutPrefix(w.config.Get(name).Origin, "environment "); ok {
		return "export " + v + "=" + value
	}
	return w.gitConfigOf(name) + " " + name + " " + value
}

// ofRepo reports whether a file is the repository's own config.
func (w *repoContext) ofRepo(file string) bool {
	rel, err := filepath.Rel(w.common, file)
	return w.common != "" && (!filepath.IsAbs(file) || err == nil && filepath.IsLocal(rel))
}

func (w *repoContext) promptDir() string {
	dir := w.config.Text("tilth.prompts")
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		return w.p.getenv("HOME") + "/" + rest
	}
	return dir
}

// startOf is what session_start says of who works, beside where.
func (w *repoContext) startOf(o loop.Options) record.SessionStart {
	wall, _ := w.sandboxState()
	return record.SessionStart{Sandbox: wall.Detail,
		WorkerModel: new(modelOf(o.Worker)), EvaluatorModel: new(modelOf(o.Evaluator)),
		WorkerAgent: o.Worker.Name(), EvaluatorAgent: o.Evaluator.Name(),
		BaseURL: config.ShownURL(w.config.Endpoint(config.Worker).BaseURL), Limits: o.Caps,
	}
}

func modelOf(r loop.Role) string {
	if r.Model == "" && r.Program != nil {
		return r.Program.Name
	}
	return r.Model
}
