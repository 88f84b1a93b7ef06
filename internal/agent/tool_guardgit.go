package agent

import (
	"slices"
	"strings"
)

// flagSet has the options of a command line that take no value.
type flagSet []string

// splitFlags separates options from operands. valued are options with a value, attached or as the next word.
func splitFlags(args []string, valued string) (flags flagSet, operands []string) {
	takesValue := func(option string) bool { return slices.Contains(strings.Fields(valued), option) }
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case word == "--":
			return flags, append(operands, args[i+1:]...)
		case len(word) < 2 || word[0] != '-':
			operands = append(operands, word)
		case takesValue(word):
			i++
		case word[1] == '-':
			word, _, _ = strings.Cut(word, "=")
			flags = append(flags, word)
		default:
			at := strings.IndexFunc(word, func(c rune) bool { return takesValue("-" + string(c)) })
			if at == len(word)-1 {
				i++
			}
			if at > 0 {
				word = word[:at]
			}
			flags = append(flags, word)
		}
	}
	return flags, operands
}

// has reports whether one of some options is given: a short one by its letter, a long one in full or, as git allows,
// cut short.
func (f flagSet) has(options string) bool {
	for _, option := range strings.Fields(options) {
		for _, given := range f {
			isLong := strings.HasPrefix(given, "--")
			if isLong && len(given) > 3 && strings.HasPrefix(option, given) ||
				!isLong && len(option) == 2 && strings.Contains(given[1:], option[1:]) {
				return true
			}
		}
	}
	return false
}

// git gives the reason for which a git command line is refused, or "".
func git(args []string) string {
	flags, operands := splitFlags(args, "-C -c --git-dir --work-tree --namespace --type --default")
	for _, d := range gitDenials {
		if len(operands) > 0 && d.applies(operands[0], flags, operands[1:]) {
			return d.reason
		}
	}
	return ""
}

// gitDenial is a row of the deny list of git's commands. It applies to a call with one of flags and with that number of
// operands, if the row has them, and without a harmless flag or operand.
type gitDenial struct {
	command, flags        string
	operands              int
	harmless, harmlessSub string
	reason                string
}

const (
	tilthReason = "git tilth is for the person who runs this session; it cannot be run from inside a session"
	refsStay    = "branches must not be moved, renamed or deleted; git commit adds to the one that is checked out"
	configWrite = "the configuration belongs to the repository's owner; use git -c name=value for one command"
)

var gitDenials = []gitDenial{
	{command: "tilth", reason: tilthReason},
	{command: "push", reason: "git push is not allowed; commit here, and the user decides what is published"},
	{command: "reset", flags: "--hard", reason: "git reset --hard is not allowed; undo single files with git restore"},
	{command: "clean", flags: "-f --force", harmless: "-n --dry-run",
		reason: "git clean with force is not allowed; remove single files with rm"},
	{command: "branch", flags: "-d -D -m -M -f --delete --move --force", reason: refsStay},
	{command: "update-ref", reason: refsStay},
	// `git config name` reads, `git config name value` writes; a file that is named (.gitmodules) is a file like
	// others.
	{command: "config", flags: "-e --edit --add --unset --unset-all --replace-all --rename-section --remove-section",
		harmless: "-f --file", reason: configWrite},
	{command: "config", operands: 2, harmlessSub: "list get",
		harmless: "-f --file -l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool",
		reason:   configWrite},
	{command: "stash", harmless: "-h --help", harmlessSub: "list show create apply",
		reason: "git stash is not allowed: the stash is shared with the user's checkout; commit instead"},
}

func (d gitDenial) applies(command string, flags flagSet, operands []string) bool {
	harmless := flags.has(d.harmless) || len(operands) > 0 &&
		slices.Contains(strings.Fields(d.harmlessSub), operands[0])
	return command == d.command && len(operands) >= d.operands && (d.flags == "" || flags.has(d.flags)) && !harmless
}
