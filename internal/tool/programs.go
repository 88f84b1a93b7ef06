package tool

import (
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

// rule inspects the arguments of one program.
type rule func(s *simple, args []shWord) string

// ruleOf is the deny list, by program.
func ruleOf(name string) rule {
	switch name {
	case "git":
		return gitRule
	case "git-tilth":
		return tilthRule
	case "rm":
		return rmRule
	case "eval":
		return evalRule
	case "source", ".":
		return sourceRule
	case "cd", "pushd":
		return cdRule
	case "popd":
		return unknownPlace
	case "find":
		return findRule
	case "sudo", "doas", "pkexec", "su":
		return rootRule
	case "curl", "wget":
		return fetchRule
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish":
		return shellRule
	case "python", "python3", "perl", "ruby", "node", "php":
		return interpreterRule
	}
	return nil
}

// program inspects the command that is left once programs that run another one are taken off.
func (s *simple) program(words []shWord) string {
	words, reason := s.unwrap(words)
	if reason != "" || len(words) == 0 {
		return reason
	}
	name := programName(words[0])
	if reason := s.writes(name, words[1:]); reason != "" {
		return reason
	}
	if r := ruleOf(name); r != nil {
		return r(s, words[1:])
	}
	return ""
}

func rootRule(*simple, []shWord) string {
	return "becoming another user is not allowed; work without sudo"
}

// tilthRule refuses the harness itself: it would act on this run, or on another session of the user's.
func tilthRule(*simple, []shWord) string {
	return "git tilth is for the person who runs this session; nothing of it can be done from inside"
}

func fetchRule(s *simple, _ []shWord) string {
	s.fetches = true
	return ""
}

const pipedShell = "running a script straight from the network is not allowed; download it, read it, then run it"

// shellRule inspects what a shell is given to run: -c, standard input or a file.
func shellRule(s *simple, args []shWord) string {
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

// interpreterRule inspects an interpreter that runs what it is sent.
func interpreterRule(s *simple, args []shWord) string {
	if s.fetched && (len(args) == 0 || args[0].text == "-") {
		return pipedShell
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

func evalRule(s *simple, args []shWord) string {
	if slices.ContainsFunc(args, func(a shWord) bool { return a.fetches }) {
		return pipedShell
	}
	return s.script(strings.Join(texts(args), " "))
}

func texts(words []shWord) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

func sourceRule(_ *simple, args []shWord) string {
	if len(args) > 0 && args[0].fetches {
		return pipedShell
	}
	return ""
}

// findRule inspects what find runs.
func findRule(s *simple, args []shWord) string {
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

// cdRule follows a change of directory.
func cdRule(s *simple, args []shWord) string {
	for len(args) > 0 && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	target := "~"
	if len(args) > 0 {
		target = args[0].text
	}
	s.cwd, _ = s.locate(target, s.cwd)
	return ""
}

func unknownPlace(s *simple, _ []shWord) string {
	s.cwd = ""
	return ""
}

// rmRule refuses to remove, with all below it, what is not the worktree's.
func rmRule(s *simple, args []shWord) string {
	flags, operands := splitFlags(args, "")
	if !flags.has('r', "recursive") && !flags.has('R', "recursive") {
		return ""
	}
	for _, w := range operands {
		if s.tooMuch(w) {
			return "rm -r of " + text.Clip(w.text, 60) + " is not allowed; remove files inside the worktree only"
		}
	}
	return ""
}
