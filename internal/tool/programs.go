package tool

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/git-tilth/git-tilth/internal/text"
)

// simple is one simple command as it is being inspected.
type simple struct {
	*inspector
	words  []shWord
	redirs []shRedir
}

// program inspects the command that is left once programs that run another one are taken off. It is the deny list, by
// program.
func (s *simple) program(words []shWord) string {
	words, reason := s.unwrap(words)
	if reason != "" || len(words) == 0 {
		return reason
	}
	name, args := path.Base(words[0].text), words[1:]
	if reason := s.writes(name, args); reason != "" {
		return reason
	}
	switch name {
	case "git":
		return s.git(args)
	case "git-tilth":
		return tilthReason // it would act on this run, or on another session of the user's
	case "rm":
		return s.rm(args)
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
		s.changeDir(args)
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

const pipedShell = "running a script straight from the network is not allowed; download it, read it, then run it"

// shell inspects what a shell is given to run: -c, standard input or a file.
func (s *simple) shell(args []shWord) string {
	script, operand, stdin := shellArgs(args)
	switch {
	case script != nil:
		if script.fetches {
			return pipedShell
		}
		return s.script(script.text)
	case operand != nil && !stdin:
		if operand.fetches {
			return pipedShell
		}
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

// shellArgs tells a shell's -c script from a script file, and whether -s makes it read standard input.
func shellArgs(args []shWord) (script, operand *shWord, stdin bool) {
	dashC := false
	for i := 0; i < len(args); i++ {
		a := args[i].text
		switch {
		case len(a) > 1 && (a[0] == '-' || a[0] == '+') && !strings.HasPrefix(a, "--"):
			dashC = dashC || a[0] == '-' && strings.Contains(a, "c")
			stdin = stdin || a[0] == '-' && strings.Contains(a, "s")
			if strings.HasSuffix(a, "o") || strings.HasSuffix(a, "O") {
				i++ // -o takes the name of an option
			}
		case a == "-":
			stdin = true
		case a == "--rcfile" || a == "--init-file":
			i++
		case strings.HasPrefix(a, "--"):
		case dashC:
			return &args[i], nil, stdin
		default:
			return nil, &args[i], stdin
		}
	}
	return nil, nil, true
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

// changeDir follows a change of directory.
func (s *simple) changeDir(args []shWord) {
	for len(args) > 0 && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	target := "~"
	if len(args) > 0 {
		target = args[0].text
	}
	s.cwd, _ = s.locate(target, s.cwd)
}

// rm refuses to remove, with all below it, what is not the worktree's.
func (s *simple) rm(args []shWord) string {
	flags, operands := splitFlags(args, "")
	if !flags.has("-r -R --recursive") {
		return ""
	}
	for _, w := range operands {
		if s.tooMuch(w) {
			return "rm -r of " + text.Clip(w.text, 60) + " is not allowed; remove files inside the worktree only"
		}
	}
	return ""
}
