package equip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// CheckRole checks that a role's agent answers, without a model call. answers has the results of other roles.
func (k *Kit) CheckRole(role config.Role, answers map[string]record.Check) record.Check {
	c, err := k.ChooseAgent(role)
	var refused *held.RefusedError
	if errors.As(err, &refused) {
		return record.Check{Name: string(role), Status: record.CheckFinding, Command: refused.Hint, Detail: refused.Why}
	}
	key := fmt.Sprint(k.Config.Endpoint(role))
	if c.Program != nil {
		key = c.Program.Name
	}
	answer, known := answers[key]
	if !known {
		if c.Program != nil {
			answer = k.askProgram(role, c.Program)
		} else {
			answer = k.askEndpoint(role)
		}
		answers[key] = answer
	}
	answer.Name, answer.From = string(role), "tilth."+string(role)
	if len(c.Others) > 0 && answer.Status == record.CheckFinding {
		answer.Status = record.CheckNote // the next one takes over
	}
	return answer
}

// answerTime is the time limit for an endpoint's first answer.
const answerTime = 20 * time.Second

// versionTime is the timeout of an agent program's --version: some need ten seconds on a busy machine.
const versionTime = time.Minute

// agentTime limits an agent's start and its answer with name and version.
const agentTime = time.Minute

func (k *Kit) askEndpoint(role config.Role) record.Check {
	client, name, err := k.client(role, "")
	if err != nil {
		var refused *held.RefusedError
		errors.As(err, &refused)
		return record.Check{Status: record.CheckFinding, Detail: err.Error(), Command: refused.Hint}
	}
	defer client.Close()
	shown := config.ShownURL(k.Config.Endpoint(role).BaseURL)
	ctx, cancel := context.WithTimeout(k.Ctx, answerTime)
	defer cancel()
	models, err := client.Models(ctx)
	var f *model.Failure
	switch {
	case errors.As(err, &f) && (f.Status == 401 || f.Status == 403):
		c := record.Check{Status: record.CheckFinding, Detail: f.Message, Command: askKey("TILTH_API_KEY")}
		if k.keyless(role) {
			c.Detail += ", and there is no key"
		} else if own := "tilth." + string(role) + ".apiKey"; k.Config.Get(own).Value != "" {
			c.Command = askKey("TILTH_" + strings.ToUpper(string(role)) + "_API_KEY")
		}
		return c
	case errors.As(err, &f) && f.Status != 404 && f.Status != 405:
		return record.Check{Status: record.CheckFinding, Detail: f.Message, Command: cmp.Or(f.Hint(), NoCommand)}
	case err != nil || len(models) == 0:
		return record.Check{Status: record.CheckOK, Detail: shown + " answers, but has no list of models"}
	case !slices.ContainsFunc(models, func(m model.Listed) bool { return m.ID == name }):
		return record.Check{Status: record.CheckNote, Detail: fmt.Sprintf(
			"%s answers, but does not list %s (it lists %s)", shown, name, text.Plural(len(models), "model"))}
	}
	if is := slices.IndexFunc(models, func(m model.Listed) bool { return m.ID == name }); models[is].NoTools {
		c := record.Check{Status: record.CheckFinding, Command: NoCommand,
			Detail: fmt.Sprintf("%s lists %s as a model without tool calls", shown, name)}
		if i := slices.IndexFunc(models, func(m model.Listed) bool { return !m.NoTools }); i >= 0 {
			c.Command = "git config tilth." + string(role) + ".model " + text.ShellQuote(models[i].ID)
		}
		return c
	}
	return record.Check{Status: record.CheckOK, Detail: shown + " answers, and has " + name}
}

func (k *Kit) askProgram(role config.Role, p *agent.Program) record.Check {
	path, err := p.Lookup(k.Ctx, k.Dir, k.Environ)
	if err != nil {
		return record.Check{Status: record.CheckFinding, Detail: err.Error(), Command: k.without(role, p)}
	}
	if p.SpeaksACP() {
		return k.initialize(p)
	}
	if p.Package == "" { // a program described by the user
		return record.Check{Status: record.CheckOK, Detail: p.Name + " is " + path}
	}
	env := p.Environ(k.Git.Environ(k.Ctx, os.TempDir()), nil)
	out, err := proc.Run(k.Ctx, proc.Cmd{Argv: []string{path, "--version"}, Dir: os.TempDir(), Env: env,
		Timeout: versionTime, OutputCap: 4096})
	said := text.OneLine(string(out.Output))
	if out.TimedOut {
		said = "it did not answer within " + versionTime.String()
	}
	if err != nil {
		said = cmp.Or(said, err.Error())
	}
	if err != nil || out.ExitCode != 0 {
		return record.Check{Status: record.CheckFinding, Command: "npm install -g " + p.Package,
			Detail: fmt.Sprintf("%s --version fails: %s", p.Name,
				cmp.Or(said, fmt.Sprintf("exit status %d without output", out.ExitCode)))}
	}
	if p.LoggedOut(k.Ctx, path, env) {
		return record.Check{Status: record.CheckFinding, Detail: p.Name + " is not logged in", Command: p.Login}
	}
	return record.Check{Status: record.CheckOK, Detail: p.Name + " answers: " + text.Clip(said, 80)}
}

// initialize starts an agent that speaks the Agent Client Protocol, without a conversation.
func (k *Kit) initialize(p *agent.Program) record.Check {
	ctx, cancel := context.WithTimeout(k.Ctx, agentTime)
	defer cancel()
	env := p.Environ(k.Git.Environ(ctx, os.TempDir()), k.Config.List("tilth.sandboxEnv"))
	info, err := p.Initialize(ctx, env, nil)
	login := p.Login
	if login == "" && len(info.Auth) > 0 {
		login = "its own command (" + strings.Join(info.Auth, ", ") + ")"
	}
	if err != nil {
		return record.Check{Status: record.CheckFinding, Detail: p.Name + " does not answer over ACP: " + err.Error(),
			Command: cmp.Or(p.Login, "git config --get-regexp '^tilth.agent."+p.Name+"'")}
	}
	resumes := "cannot resume a conversation"
	if info.Resume != agent.ResumeByNone {
		resumes = "resumes by " + info.Resume
	}
	said := strings.TrimSpace(cmp.Or(info.Name, "no name") + " " + info.Version)
	detail := fmt.Sprintf("%s answers over ACP: %s; %s", p.Name, said, resumes)
	if login != "" {
		detail += "; to log in: " + login
	}
	return record.Check{Status: record.CheckOK, Detail: detail}
}

// NoCommand is the hint of a finding without a known fix.
const NoCommand = "git tilth config"

// ready checks that worker and evaluator answer, as doctor does, without a model call.
func (k *Kit) ready(context.Context) (checks []record.Check, err error) {
	answers, said := map[string]record.Check{}, map[string]bool{}
	for _, role := range []config.Role{config.Worker, config.Evaluator} {
		c := k.CheckRole(role, answers)
		if c.Status != record.CheckFinding || said[c.Detail] {
			continue
		}
		said[c.Detail] = true
		if !text.IsCommand(c.Command) || c.Command == NoCommand {
			c.Command = ""
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// AnyRoot returns the command that moves the sessions to a directory that anybody can write.
func AnyRoot() string {
	return "export TILTH_SESSIONS_DIR=" + text.ShellQuote(filepath.Join(os.TempDir(), "tilth-sessions"))
}
