package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// maxArg is the longest system prompt that is passed as an argument. Linux takes 128 KiB for one; what is longer is
// put in front of the prompt.
const maxArg = 100_000

// command is a turn as it will be started.
type command struct {
	argv   []string
	env    []string
	dir    string
	stdin  string
	remove func() // takes the turn's private directory away
}

// build makes the command line, environment and standard input of a turn.
func (p *Program) build(t *Turn) (*command, error) {
	env := ScrubEnv(t.Env)
	bin, err := proc.LookPath(p.Binary, t.Dir, env)
	if err != nil {
		return nil, &NotInstalledError{Program: p}
	}
	c := &command{env: env, dir: t.Dir, remove: func() {}}
	vars, err := p.scratch(c, t)
	if err != nil {
		return nil, err
	}
	c.argv = append([]string{bin}, p.arguments(t, vars)...)
	for _, set := range p.envFor(t) {
		for name, value := range set {
			c.env = append(c.env, name+"="+expand(value, vars))
		}
	}
	if p.shellCommands {
		c.env = append(c.env, shellVars(t)...)
	}
	c.stdin = p.prompt(t)
	return c, nil
}

// arguments returns all arguments in the order that every row follows.
func (p *Program) arguments(t *Turn, vars map[string]string) []string {
	rights := p.Write
	if t.ReadOnly {
		rights = p.ReadOnly
	}
	base, conversation := p.Base, p.New
	if t.Conversation.Resume {
		conversation = p.Resume
	}
	if p.shellCommands && t.Conversation.Resume {
		base, conversation = p.Resume, nil
	}
	var out []string
	for _, part := range [][]string{base, rights, p.Model, p.Limit, p.System, p.Args, conversation, p.Tail} {
		out = append(out, fill(part, vars)...)
	}
	return out
}

func (p *Program) envFor(t *Turn) []map[string]string {
	if t.ReadOnly {
		return []map[string]string{p.Env, p.EnvReadOnly}
	}
	return []map[string]string{p.Env, p.EnvWrite}
}

// scratch returns the values of the placeholders and writes the file that one of them names.
func (p *Program) scratch(c *command, t *Turn) (map[string]string, error) {
	vars := map[string]string{
		"{id}": t.Conversation.ID, "{model}": t.Model,
		"{dir}": realPath(t.Dir), "{gitdir}": t.GitDir, "{commondir}": t.CommonDir,
	}
	if t.MaxTurns > 0 {
		vars["{turns}"] = strconv.Itoa(t.MaxTurns)
	}
	if p.systemAsArgument(t) {
		vars["{system}"] = t.System
	}
	if t.ReadOnly && len(p.FilesReadOnly) > 0 {
		return vars, p.private(c, t, vars)
	}
	return vars, nil
}

// outside is the part of a turn's own directory in which a program is started that is to know nothing of the tree.
const outside = "outside"

// private makes the directory that a turn has for itself. A kill leaves it behind: the caller names it, and so can
// remove it later.
func (p *Program) private(c *command, t *Turn, vars map[string]string) error {
	dir := t.Private
	if dir == "" {
		made, err := os.MkdirTemp("", "git-tilth-agent-")
		if err != nil {
			return err
		}
		dir = made
	}
	c.remove = func() { os.RemoveAll(dir) }
	vars["{private}"] = dir
	for name, text := range p.FilesReadOnly {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(expand(text, vars)), 0o600)
		}
		if err != nil {
			c.remove()
			return err
		}
	}
	if p.prepareReadOnly != nil {
		if err := p.prepareReadOnly(c.env, dir); err != nil {
			c.remove()
			return err
		}
	}
	if p.JudgesFromOutside {
		c.dir = filepath.Join(dir, outside)
	}
	return nil
}

// fill puts values into a part of a command line. A part that names an empty value is left out; --add-dir and its
// like come in pairs, so that a pair is a part of its own when separated by an empty string.
func fill(part []string, vars map[string]string) []string {
	var out, group []string
	for i := 0; i <= len(part); i++ {
		if i < len(part) && part[i] != "" {
			group = append(group, part[i])
			continue
		}
		if filled, ok := fillGroup(group, vars); ok {
			out = append(out, filled...)
		}
		group = nil
	}
	return out
}

func fillGroup(group []string, vars map[string]string) ([]string, bool) {
	out := make([]string, 0, len(group))
	for _, arg := range group {
		for _, name := range placeholders {
			if strings.Contains(arg, name) && vars[name] == "" {
				return nil, false
			}
		}
		out = append(out, expand(arg, vars))
	}
	return out, true
}

var placeholders = []string{"{id}", "{model}", "{turns}", "{system}", "{dir}", "{gitdir}", "{commondir}", "{private}"}

// expand replaces each placeholder once, so that a value that looks like one stays as it is.
func expand(s string, vars map[string]string) string {
	var pairs []string
	for _, name := range placeholders {
		pairs = append(pairs, name, vars[name])
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func (p *Program) systemAsArgument(t *Turn) bool {
	return len(p.System) > 0 && t.System != "" && len(t.System) <= maxArg
}

// prompt returns what goes to standard input.
func (p *Program) prompt(t *Turn) string {
	text := t.Prompt
	if t.ReadOnly && p.JudgesFromOutside {
		text = "The working tree that this is about is " + t.Dir + ". Name its files by their absolute paths.\n\n" + text
	}
	if t.System != "" && !p.systemAsArgument(t) {
		text = t.System + "\n\n" + text
	}
	if p.escapePrompt != nil {
		text = p.escapePrompt(text)
	}
	return text
}

// NotInstalledError says that a program is not on PATH.
type NotInstalledError struct{ Program *Program }

func (e *NotInstalledError) Error() string {
	said := fmt.Sprintf("%s is not installed: no %s on PATH", e.Program.Title, e.Program.Binary)
	if e.Program.Package != "" {
		said += fmt.Sprintf(" (npm install -g %s)", e.Program.Package)
	}
	return said
}
