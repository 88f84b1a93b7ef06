package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// examineRole asks who works in a role for a sign of life. No model is asked anything.
func (d *doctor) examineRole(role config.Role) {
	c, err := d.chooseAgent(role)
	var refused *exitError
	if errors.As(err, &refused) {
		d.add(string(role), finding, refused.hint, "%s", refused.msg)
		return
	}
	key := fmt.Sprint(d.config.Endpoint(role))
	if c.program != nil {
		key = c.program.Name
	}
	answer, known := d.answers[key]
	if !known {
		if c.program != nil {
			answer = d.askProgram(role, c.program)
		} else {
			answer = d.askEndpoint(role)
		}
		d.answers[key] = answer
	}
	answer.Name = string(role)
	if len(c.others) > 0 && answer.Status == finding {
		answer.Status = note // the next one takes over
	}
	d.checks = append(d.checks, answer)
}

// answerTime is how long an endpoint may take to say that it is there.
const answerTime = 20 * time.Second

// versionTime is how long an agent program may take to say which it is: some need ten seconds on a busy machine.
const versionTime = time.Minute

// agentTime is how long an agent may take to start and to say who it is.
const agentTime = time.Minute

func (d *doctor) askEndpoint(role config.Role) check {
	client, name, err := d.client(role)
	if err != nil {
		var refused *exitError
		errors.As(err, &refused)
		return check{Status: finding, Detail: err.Error(), Command: refused.hint}
	}
	defer client.Close()
	shown := config.ShownURL(d.config.Endpoint(role).BaseURL)
	ctx, cancel := context.WithTimeout(d.p.ctx, answerTime)
	defer cancel()
	models, err := client.Models(ctx)
	var f *model.Failure
	switch {
	case errors.As(err, &f) && (f.Status == 401 || f.Status == 403):
		c := check{Status: finding, Detail: f.Message, Command: askKey("TILTH_API_KEY")}
		if d.keyless(role) {
			c.Detail += ", and there is no key"
		} else if own := "tilth." + string(role) + ".apiKey"; d.config.Get(own).Value != "" {
			c.Command = askKey("TILTH_" + strings.ToUpper(string(role)) + "_API_KEY")
		}
		return c
	case errors.As(err, &f) && f.Status != 404 && f.Status != 405:
		return check{Status: finding, Detail: f.Message, Command: cmp.Or(f.Hint(), noCommand)}
	case err != nil || len(models) == 0:
		return check{Status: well, Detail: shown + " answers, and has no list of models"}
	case !slices.ContainsFunc(models, func(m model.Listed) bool { return m.ID == name }):
		return check{Status: note, Detail: fmt.Sprintf("%s answers, and does not list %s (it lists %s)", shown, name,
			text.Plural(len(models), "model"))}
	}
	if is := slices.IndexFunc(models, func(m model.Listed) bool { return m.ID == name }); models[is].NoTools {
		c := check{Status: finding, Command: noCommand,
			Detail: fmt.Sprintf("%s lists %s as a model that calls no tools", shown, name)}
		if i := slices.IndexFunc(models, func(m model.Listed) bool { return !m.NoTools }); i >= 0 {
			c.Command = "git config tilth." + string(role) + ".model " + text.ShellQuote(models[i].ID)
		}
		return c
	}
	return check{Status: well, Detail: shown + " answers, and has " + name}
}

func (d *doctor) askProgram(role config.Role, p *agent.Program) check {
	path, err := d.lookPath(p.Binary)
	if err != nil {
		return check{Status: finding, Detail: p.NotInstalled().Error(), Command: d.without(role, p)}
	}
	if p.SpeaksACP() {
		return d.initialize(p)
	}
	if p.Package == "" { // one that the user described
		return check{Status: well, Detail: p.Name + " is " + path}
	}
	env := p.Environ(d.git.Environ(d.p.ctx, os.TempDir()), nil)
	out, err := proc.Run(d.p.ctx, proc.Cmd{Argv: []string{path, "--version"}, Dir: os.TempDir(), Env: env,
		Timeout: versionTime, OutputCap: 4096})
	said := text.OneLine(string(out.Output))
	if out.TimedOut {
		said = "it did not answer within " + versionTime.String()
	}
	if err != nil || out.ExitCode != 0 {
		return check{Status: finding, Command: "npm install -g " + p.Package,
			Detail: fmt.Sprintf("%s --version fails: %s", p.Name,
				cmp.Or(said, reason(err), fmt.Sprintf("exit status %d, and it says nothing", out.ExitCode)))}
	}
	if p.LoggedOut(d.p.ctx, path, env) {
		return check{Status: finding, Detail: p.Name + " is not logged in", Command: p.Login}
	}
	return check{Status: well, Detail: p.Name + " answers: " + text.Clip(said, 80)}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// initialize starts an agent that speaks the Agent Client Protocol. No conversation is begun.
func (d *doctor) initialize(p *agent.Program) check {
	ctx, cancel := context.WithTimeout(d.p.ctx, agentTime)
	defer cancel()
	env := p.Environ(d.git.Environ(ctx, os.TempDir()), d.config.List("tilth.sandboxEnv"))
	info, err := p.Initialize(ctx, env, nil)
	login := p.Login
	if login == "" && len(info.Auth) > 0 {
		login = "its own command (" + strings.Join(info.Auth, ", ") + ")"
	}
	if err != nil {
		return check{Status: finding, Detail: p.Name + " does not answer by ACP: " + err.Error(),
			Command: cmp.Or(p.Login, "git config --get-regexp '^tilth.agent."+p.Name+"'")}
	}
	resumes := "cannot resume a conversation"
	if info.Resume != agent.ResumeByNone {
		resumes = "resumes by " + info.Resume
	}
	said := strings.TrimSpace(cmp.Or(info.Name, "it does not say its name") + " " + info.Version)
	detail := fmt.Sprintf("%s answers by ACP: %s; %s", p.Name, said, resumes)
	if login != "" {
		detail += "; to log in: " + login
	}
	return check{Status: well, Detail: detail}
}
