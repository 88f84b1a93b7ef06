package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// maxArg is the longest system prompt, in bytes, to pass as an argument. Linux accepts 128 KiB for one argument. A
// longer one is put before the prompt.
const maxArg = 100_000

// build builds the command of a turn. remove deletes its private directory; its error is about a renewed login that
// could not be copied back.
func (p *Program) build(t *Turn) (cmd proc.Cmd, remove func() error, err error) {
	env := ScrubEnv(t.Env)
	bin, err := proc.LookPath(p.Binary, t.Dir, env)
	if err != nil {
		return cmd, nil, p.NotInstalled()
	}
	rights := p.write
	if t.ReadOnly {
		rights = p.readOnly
	}
	private, err := p.private(t)
	if err != nil {
		return cmd, nil, err
	}
	box, done, err := p.inside(t.Box, env, t.Dir)
	if err != nil {
		os.RemoveAll(private)
		return cmd, nil, err
	}
	cmd = proc.Cmd{Argv: []string{bin}, Dir: t.Dir, Env: env, Stdin: strings.NewReader(p.prompt(t)),
		Box: box.With(private)}
	if private != "" {
		cmd.Dir = filepath.Join(private, outside)
	}
	vars := map[string]string{
		"{id}": t.Conversation.ID, "{model}": t.Model, "{turns}": "", "{dollars}": "", "{system}": "",
		"{dir}": proc.RealPath(t.Dir), "{gitdir}": t.GitDir, "{commondir}": t.CommonDir,
	}
	if t.MaxTurns > 0 {
		vars["{turns}"] = strconv.Itoa(t.MaxTurns)
	}
	if t.MaxCost > 0 {
		vars["{dollars}"] = strconv.FormatFloat(t.MaxCost, 'f', -1, 64)
	}
	if p.systemAsArgument(t) {
		vars["{system}"] = t.System
	}
	for _, part := range p.arguments(t, rights) {
		cmd.Argv = append(cmd.Argv, fill(part, vars)...)
	}
	for _, entry := range slices.Concat(p.env, rights.env) {
		cmd.Env = append(cmd.Env, expand(entry, vars))
	}
	if p.shellCommands {
		cmd.Env = append(cmd.Env, shellVars(t)...)
	}
	return cmd, func() error {
		os.RemoveAll(private)
		return done()
	}, nil
}

// arguments returns the parts of the command line in their order, which is the same for all rows.
func (p *Program) arguments(t *Turn, r rights) [][]string {
	base, conversation := p.base, p.begin
	switch {
	case t.Conversation.Resume && p.shellCommands:
		base, conversation = p.resume, nil
	case t.Conversation.Resume:
		conversation = p.resume
	}
	own := r.alone
	if t.Box != nil {
		own = r.boxed
	}
	rest := [][]string{p.model, p.limit, p.budget, p.system, p.Args, conversation, p.tail}
	return slices.Concat([][]string{base}, own, r.args, rest)
}

// outside is the empty working directory of an ACP agent that reviews, because the agent reads settings and
// instructions in its working directory.
const outside = "outside"

// private creates the working directory of a reviewer that uses ACP; it returns "" for any other turn. A kill leaves
// the directory behind. The caller chooses its path and can remove it later.
func (p *Program) private(t *Turn) (dir string, err error) {
	if !t.ReadOnly || p.acp == nil {
		return "", nil
	}
	if dir = t.Private; dir == "" {
		dir, err = os.MkdirTemp("", "git-tilth-agent-")
	} else if err = os.RemoveAll(dir); err == nil { // a worker may have made it a link
		err = os.MkdirAll(dir, 0o700) // a lane's parent directories may be missing
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, outside), 0o700)
	}
	if err != nil {
		os.RemoveAll(dir)
	}
	return dir, err
}

// fill puts values into a part of a command line. It omits a part with an empty value.
func fill(part []string, vars map[string]string) []string {
	var out []string
	for _, arg := range part {
		for name, value := range vars {
			if value == "" && strings.Contains(arg, name) {
				return nil
			}
		}
		out = append(out, expand(arg, vars))
	}
	return out
}

// expand replaces each placeholder once. It does not expand values.
func expand(s string, vars map[string]string) string {
	var pairs []string
	for name, value := range vars {
		pairs = append(pairs, name, value)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func (p *Program) systemAsArgument(t *Turn) bool {
	return len(p.system) > 0 && t.System != "" && len(t.System) <= maxArg
}

// prompt returns the text for the program's standard input.
func (p *Program) prompt(t *Turn) string {
	text := t.Prompt
	if t.ReadOnly && p.acp != nil {
		text = "The working tree that this is about is " + t.Dir +
			". Name its files by their absolute paths.\n\n" + text
	}
	if t.System != "" && !p.systemAsArgument(t) {
		text = t.System + "\n\n" + text
	}
	if p.escapePrompt != nil {
		text = p.escapePrompt(text)
	}
	return text
}

// NotInstalled is the error of a missing program.
func (p *Program) NotInstalled() error { return p.lacks(p.Binary) }

func (p *Program) lacks(binary string) error {
	hint := ""
	if p.Package != "" {
		hint = " (npm install -g " + p.Package + ")"
	}
	return fmt.Errorf("%s is not installed: no %s on PATH%s", p.Title, binary, hint)
}

// firstWord matches the first word of a shell command after assignments, if it names a program without shell syntax. A
// relative path depends on the worktree.
var firstWord = pattern.New(`^\s*(?:\w+=[\w./:@%+,-]*\s+)*(~?/[\w./@%+,-]+|[\w.@%+,-]+)(?:[\s;&|]|$)`)

// Lookup finds the program. For a shell command of the user it looks for the program in the first word, if any.
func (p *Program) Lookup(ctx context.Context, dir string, env []string) (path string, err error) {
	if path, err = proc.LookPath(p.Binary, dir, env); err != nil {
		return "", p.NotInstalled()
	}
	if p.Package != "" || len(p.base) != 2 || p.base[0] != "-c" { // not a shell command of the user
		return path, nil
	}
	m := firstWord().FindStringSubmatch(p.base[1])
	if m == nil {
		return path, nil
	}
	name := m[1]
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(proc.Getenv(env, "HOME"), rest)
	}
	out, err := proc.Run(ctx, proc.Cmd{Argv: []string{path, "-c", `command -v "$1"`, "sh", name}, Dir: dir, Env: env,
		Timeout: lookupTime, OutputCap: 4096})
	if err == nil && !out.TimedOut && out.ExitCode != 0 {
		return "", p.lacks(name)
	}
	return path, nil
}

const lookupTime = 10 * time.Second
