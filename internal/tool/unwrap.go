package tool

import (
	"path"
	"strings"
)

// wrapper is a program that runs the command after its own arguments.
type wrapper struct {
	valued   string // short options that take a value
	long     string // long options whose value is the next word, each with a space after it
	operands int    // words of its own before the command
	assigns  bool   // NAME=value words may come first
	queries  string // short options with which it runs nothing
}

// wrappers is the table of such programs.
var wrappers = map[string]wrapper{
	"command": {queries: "vV"},
	"builtin": {},
	"exec":    {valued: "a"},
	"nohup":   {},
	"setsid":  {},
	"time":    {valued: "of"},
	"env":     {valued: "uCS", long: "--unset --chdir --split-string ", assigns: true},
	"nice":    {valued: "n", long: "--adjustment "},
	"ionice":  {valued: "cnp"},
	"stdbuf":  {valued: "ioe", long: "--input --output --error "},
	"timeout": {valued: "sk", long: "--signal --kill-after ", operands: 1},
	"flock":   {valued: "wE", operands: 1},
	"xargs":   {valued: "IELnPsda", long: "--arg-file --delimiter --max-args --max-procs --max-lines --replace "},
	"busybox": {},
	"chronic": {},
	"noglob":  {},
}

// unwrap takes off what stands before the command proper.
func (s *simple) unwrap(words []shWord) (rest []shWord, reason string) {
	for len(words) > 0 {
		wrap, isWrapper := wrappers[path.Base(words[0].text)]
		switch {
		case isAssignment(words[0]):
			words = words[1:]
		case isWrapper:
			if words, reason = s.unwrapOne(wrap, words[1:]); reason != "" {
				return nil, reason
			}
		default:
			return words, ""
		}
	}
	return nil, ""
}

// unwrapOne takes a wrapper's own arguments off.
func (s *simple) unwrapOne(wrap wrapper, args []shWord) (rest []shWord, reason string) {
	operands := wrap.operands
	for len(args) > 0 {
		a := args[0].text
		switch {
		case a == "--":
			args = args[1:]
			return args[min(operands, len(args)):], ""
		case strings.HasPrefix(a, "--"):
			if strings.Contains(wrap.long, a+" ") && len(args) > 1 {
				args = args[1:]
			}
			if text, ok := strings.CutPrefix(a, "--split-string="); ok {
				if reason := s.script(text); reason != "" {
					return nil, reason
				}
			}
		case len(a) > 1 && a[0] == '-':
			if strings.ContainsAny(a[1:], wrap.queries) && wrap.queries != "" {
				return nil, ""
			}
			// The value follows unless it is attached: -n5 or -n 5.
			if i := strings.IndexAny(a[1:], wrap.valued); wrap.valued != "" && i >= 0 {
				value := a[i+2:]
				if value == "" && len(args) > 1 {
					value, args = args[1].text, args[1:]
				}
				if wrap.assigns && a[i+1] == 'S' {
					if reason := s.script(value); reason != "" {
						return nil, reason
					}
				}
			}
		case wrap.assigns && isAssignment(args[0]):
		case operands > 0:
			operands--
		default:
			return args, ""
		}
		args = args[1:]
	}
	return nil, ""
}

// isAssignment reports whether a word sets a variable.
func isAssignment(w shWord) bool {
	name, _, ok := strings.Cut(w.text, "=")
	name = strings.TrimSuffix(name, "+")
	return ok && name != "" && strings.Trim(name, nameChars) == "" && (name[0] < '0' || name[0] > '9')
}
