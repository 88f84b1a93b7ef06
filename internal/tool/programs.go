package tool

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// simple is one simple command as it is being inspected.
type simple struct {
	*inspector
	redirs []shRedir
}

const pipedShell = "running a script straight from the network is not allowed; download it, read it, then run it"

// program inspects the command that is left once programs that run another one are taken off. It is the deny list, by
// program.
func (s *simple) program(words []shWord) string {
	words, reason := s.unwrap(words)
	if reason != "" || len(words) == 0 {
		return reason
	}
	name, args := path.Base(words[0].text), words[1:]
	if slices.Contains(writers, name) {
		return s.writes(name, args)
	}
	switch name {
	case "git":
		return s.git(args)
	case "git-tilth":
		return tilthReason // it would act on this run, or on another session of the user's
	case "eval":
		if slices.ContainsFunc(args, func(a shWord) bool { return a.fetches }) {
			return pipedShell
		}
		return s.script(strings.Join(texts(args), " "))
	case "source", ".":
		if len(args) > 0 && args[0].fetches {
			return pipedShell
		}
	case "cd", "pushd":
		_, dirs := splitFlags(args, "", true)
		target := "~"
		if len(dirs) > 0 {
			target = dirs[0].text
		}
		s.cwd, _ = s.locate(target, s.cwd)
	case "popd":
		s.cwd = ""
	case "find":
		return s.find(args)
	case "sudo", "doas", "pkexec", "su":
		return "becoming another user is not allowed; work without sudo"
	case "curl", "wget":
		s.fetches = true
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish":
		return s.shell(args)
	case "python", "python3", "perl", "ruby", "node", "php":
		if s.fetched && (len(args) == 0 || args[0].text == "-") { // it runs what it is sent
			return pipedShell
		}
	}
	return ""
}

// shell inspects what a shell is given to run: -c, standard input or a file.
func (s *simple) shell(args []shWord) string {
	flags, operands := splitFlags(args, "-o -O --rcfile --init-file", true)
	switch {
	case len(operands) > 0 && operands[0].fetches:
		return pipedShell
	case len(operands) > 0 && flags.has("-c"):
		return s.script(operands[0].text)
	case len(operands) > 0 && operands[0].text != "-" && !flags.has("-s"):
		return ""
	case s.fetched:
		return pipedShell
	}
	for _, r := range s.redirs {
		input := r.body
		if r.op == syntax.WordHdoc {
			input = r.target.text
		}
		if r.target.fetches {
			return pipedShell
		}
		if reason := s.script(input); reason != "" {
			return reason
		}
	}
	return ""
}

func texts(words []shWord) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

// find inspects what find runs.
func (s *simple) find(args []shWord) string {
	for i, a := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a.text) {
			continue
		}
		end := i + 1
		for end < len(args) && args[end].text != ";" && args[end].text != "+" {
			end++
		}
		if reason := s.program(args[i+1 : end]); reason != "" {
			return reason
		}
	}
	return ""
}

// writers are programs whose operands they create, change or remove.
var writers = strings.Fields("rm mv cp tee touch mkdir rmdir unlink ln truncate install rsync chmod chown shred")

// writes refuses to write to a protected place or to git's own files, and to remove, with all below it, what is not the
// worktree's.
func (s *simple) writes(name string, args []shWord) string {
	flags, operands := splitFlags(args, "", false)
	for _, w := range operands {
		if reason := s.writesTo(w); reason != "" {
			return reason
		}
		if name == "rm" && flags.has("-r -R --recursive") && s.tooMuch(w) {
			return "rm -r of " + text.Clip(w.text, 60) + " is not allowed; remove files inside the worktree only"
		}
	}
	return ""
}

// wrapper is a program that runs the command after its own arguments.
type wrapper struct {
	valued   string // options that take a value
	operands int    // words of its own before the command
}

// wrappers is the table of such programs.
var wrappers = map[string]wrapper{
	"command": {}, "builtin": {}, "nohup": {}, "setsid": {}, "busybox": {}, "chronic": {}, "noglob": {},
	"exec": {valued: "-a"}, "time": {valued: "-o -f"}, "ionice": {valued: "-c -n -p"},
	"env":  {valued: "-u -C -S --unset --chdir --split-string"},
	"nice": {valued: "-n --adjustment"}, "stdbuf": {valued: "-i -o -e --input --output --error"},
	"timeout": {valued: "-s -k --signal --kill-after", operands: 1}, "flock": {valued: "-w -E", operands: 1},
	"xargs": {valued: "-I -E -L -n -P -s -d -a --arg-file --delimiter --max-args --max-procs --max-lines --replace"},
}

// unwrap takes off what stands before the command proper.
func (s *simple) unwrap(words []shWord) (rest []shWord, reason string) {
	for len(words) > 0 {
		name := path.Base(words[0].text)
		wrap, isWrapper := wrappers[name]
		if !isWrapper {
			return words, ""
		}
		flags, args := splitFlags(words[1:], wrap.valued, true)
		if name == "command" && flags.has("-v -V") {
			return nil, "" // only says what it would run
		}
		for name == "env" && len(args) > 0 && assignment.MatchString(args[0].text) {
			args = args[1:]
		}
		for _, script := range slices.Concat(flags.values["-S"], flags.values["--split-string"]) {
			if reason := s.script(script.text); name == "env" && reason != "" {
				return nil, reason
			}
		}
		words = args[min(wrap.operands, len(args)):]
	}
	return nil, ""
}

var assignment = pattern.New(`^[A-Za-z_]\w*\+?=`)
