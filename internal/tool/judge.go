package tool

import (
	"path"
	"slices"
	"strings"
)

// judge goes through one command line and everything nested in it.
type judge struct {
	g    guard
	left *int // bytes that may still be read: nested text is read once per level, and more
}

// script judges a command line that runs in cwd.
func (j judge) script(src, cwd string, nesting int) (reason string) {
	*j.left -= len(src) + 1
	if nesting > maxNesting || *j.left < 0 {
		return "commands are nested too deeply to be checked"
	}
	cmds, subs := parseShell(src)
	for _, sub := range subs {
		if reason := j.script(sub, cwd, nesting+1); reason != "" {
			return reason
		}
	}
	places := []string{cwd} // working directory per depth of parentheses
	fetched := false        // something earlier in this pipe comes from the network
	for _, c := range cmds {
		for len(places) <= c.depth {
			places = append(places, places[len(places)-1])
		}
		places = places[:c.depth+1]
		s := simple{judge: j, cmd: c, cwd: places[c.depth], nesting: nesting, fetched: fetched}
		if reason := s.verdict(); reason != "" {
			return reason
		}
		places[c.depth] = s.cwd
		fetched = c.piped && (fetched || s.fetches)
	}
	return ""
}

// simple is one simple command as it is being judged.
type simple struct {
	judge
	cmd     shCommand
	cwd     string // where it runs; after a cd, where the next one does; "" if unknown
	nesting int
	fetched bool // its input comes from the network
	fetches bool // it fetches something from the network
}

// rule judges the arguments of one program.
type rule func(s *simple, args []shWord) string

// rules is the deny list, by program.
var rules map[string]rule

func init() {
	rules = map[string]rule{
		"git": gitRule, "rm": rmRule, "eval": evalRule, "source": sourceRule, ".": sourceRule,
		"cd": cdRule, "pushd": cdRule, "popd": unknownPlace, "find": findRule,
		"sudo": rootRule, "doas": rootRule, "pkexec": rootRule, "su": rootRule,
		"curl": fetchRule, "wget": fetchRule,
	}
	for _, name := range shells {
		rules[name] = shellRule
	}
	for _, name := range []string{"python", "python3", "perl", "ruby", "node", "php"} {
		rules[name] = interpreterRule
	}
}

var shells = []string{"sh", "bash", "zsh", "dash", "ksh", "ash", "fish"}

// verdict judges one simple command and what is nested in it.
func (s *simple) verdict() string {
	words := slices.Clone(s.cmd.words)
	for _, r := range s.cmd.redirs {
		words = append(words, r.target)
	}
	for _, w := range words {
		for _, sub := range w.subs {
			if reason := s.script(sub, s.cwd, s.nesting+1); reason != "" {
				return reason
			}
		}
	}
	if reason := s.reaches(words); reason != "" {
		return reason
	}
	return s.program(s.cmd.words)
}

// program judges the command that is left once keywords, assignments and
// programs that run another one are taken off.
func (s *simple) program(words []shWord) string {
	words, reason := s.unwrap(words)
	if reason != "" || len(words) == 0 {
		return reason
	}
	name := path.Base(words[0].text)
	if reason := s.writes(name, words[1:]); reason != "" {
		return reason
	}
	if r := rules[name]; r != nil {
		return r(s, words[1:])
	}
	return ""
}

// nested judges a text that the command hands to a shell.
func (s *simple) nested(text string) string { return s.script(text, s.cwd, s.nesting+1) }

func rootRule(*simple, []shWord) string {
	return "becoming another user is not allowed; work without sudo"
}

func fetchRule(s *simple, _ []shWord) string {
	s.fetches = true
	return ""
}

const pipedShell = "running a script straight from the network is not allowed; download it, read it, then run it"

// shellRule judges what a shell is given to run: -c, standard input or a file.
func shellRule(s *simple, args []shWord) string {
	script, operand, stdin := shellArgs(args)
	switch {
	case script != nil:
		if s.fetchesIn(script.subs) {
			return pipedShell
		}
		return s.nested(script.text)
	case operand != nil && !stdin:
		if s.fetchesIn(operand.subs) {
			return pipedShell
		}
		return ""
	case s.fetched:
		return pipedShell
	}
	for _, r := range s.cmd.redirs {
		switch {
		case s.fetchesIn(r.target.subs):
			return pipedShell
		case r.op == "<<<":
			if reason := s.nested(r.target.text); reason != "" {
				return reason
			}
		case strings.HasPrefix(r.op, "<<"):
			if reason := s.nested(r.body); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// interpreterRule judges an interpreter that runs what it is sent.
func interpreterRule(s *simple, args []shWord) string {
	if s.fetched && (len(args) == 0 || args[0].text == "-") {
		return pipedShell
	}
	return ""
}

// shellArgs tells a shell's -c script from a script file, and whether -s makes it
// read standard input.
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

// fetchesIn reports whether one of the commands nested in a word uses the network.
func (s *simple) fetchesIn(subs []string) bool {
	for _, sub := range subs {
		cmds, _ := parseShell(sub)
		for _, c := range cmds {
			inner := simple{judge: s.judge, cmd: c, nesting: s.nesting + 1}
			words, _ := inner.unwrap(c.words)
			if len(words) > 0 && slices.Contains([]string{"curl", "wget"}, path.Base(words[0].text)) {
				return true
			}
		}
	}
	return false
}

func evalRule(s *simple, args []shWord) string {
	parts := make([]string, len(args))
	for i, a := range args {
		if s.fetchesIn(a.subs) {
			return pipedShell
		}
		parts[i] = a.text
	}
	return s.nested(strings.Join(parts, " "))
}

func sourceRule(s *simple, args []shWord) string {
	if len(args) > 0 && s.fetchesIn(args[0].subs) {
		return pipedShell
	}
	return ""
}

// findRule judges what find runs.
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
