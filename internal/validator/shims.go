package validator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// shimWords match a shim's message about a program that is not installed, with the command that installs it, filled
// from the match. The first match counts.
var shimWords = []struct {
	sign pattern.Regexp
	fix  string
}{
	{pattern.New(`(?m)^.*rustup could not choose a version of.*$`), "rustup default stable"},
	{pattern.New(`(?m)^.*toolchain '([\w.+-]+)' is not installed.*$`), "rustup toolchain install $1"},
	{pattern.New("(?m)^(pyenv|rbenv|nodenv|goenv): version [`']([\\w.+-]+)' is not installed.*$"), "$1 install $2"},
	{pattern.New(`(?m)^(pyenv|rbenv|nodenv|goenv): .*: command not found$[^:]*exists in these .*:\s+([\w.+-]+)$`),
		"$1 global $2"},
	{pattern.New(`(?m)^(pyenv|rbenv|nodenv|goenv): .*: command not found$`), "$1 install -l"},
	{pattern.New(`(?m)^mise ERROR .*(?:No version is set for shim|is not a valid shim).*$`), "mise install"},
	{pattern.New(`(?m)^No (?:version is set|preset version installed) for command .*$`), "asdf install"},
	{pattern.New(`(?m)^Volta error: Node is not available.*$`), "volta install node"},
}

// emptyShim returns the message of a shim without a program to start, and the command that installs the program.
func emptyShim(output string) (why, fix string) {
	for _, w := range shimWords {
		if m := w.sign().FindStringSubmatchIndex(output); m != nil {
			said, _, _ := strings.Cut(output[m[0]:m[1]], "\n")
			return clipped(said), string(w.sign().ExpandString(nil, w.fix, output, m))
		}
	}
	return "", ""
}

// lacks returns the reason why a check's program is missing, or "". If the program is a shim, one that works outside of
// the tree is enough: otherwise a worker could turn the check off by requesting a missing version in the tree.
func (p *layout) lacks(ctx context.Context, check, program string, env []string) string {
	at, err := proc.LookPath(program, p.Root, env)
	if program == withoutDir(check) {
		program = "it"
	}
	if err != nil {
		return program + " is not installed"
	}
	if !isShim(at) {
		return ""
	}
	why := ""
	for _, dir := range []string{"/", p.Root} {
		o, err := proc.Run(ctx, proc.Cmd{Argv: []string{at, "--version"}, Dir: dir, Env: env, Timeout: time.Minute,
			Box: p.Box})
		said, fix := emptyShim(string(o.Output))
		switch {
		case err != nil || said == "" && o.ExitCode != 127 || o.ExitCode == 0:
			return ""
		case said != "":
			why = program + " is not installed: " + said + " (" + fix + ")"
		default:
			why = program + " is not installed: " + at + " is a shim without a program"
		}
	}
	return why
}

// isShim reports whether a program may be a shim, by the files next to it.
func isShim(at string) bool {
	dir := filepath.Dir(at)
	for _, manager := range []string{"rustup", "volta-shim"} {
		if _, err := os.Stat(filepath.Join(dir, manager)); err == nil {
			return true
		}
	}
	return filepath.Base(dir) == "shims"
}
