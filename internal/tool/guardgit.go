package tool

import (
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// flagSet are the options of a command line.
type flagSet struct {
	short  string              // every letter of the short ones
	long   []string            // the long ones, without a value
	values map[string][]shWord // those of options that take one
}

// splitFlags tells options from operands. valued are options that take a value, attached or as the next word. With
// leading, everything from the first operand on is one.
func splitFlags(args []shWord, valued string, leading bool) (flags flagSet, operands []shWord) {
	flags.values = map[string][]shWord{}
	takesValue := func(option string) bool { return slices.Contains(strings.Fields(valued), option) }
	for len(args) > 0 {
		word := args[0]
		option, value, attached := "", "", false
		switch {
		case word.text == "--":
			return flags, append(operands, args[1:]...)
		case strings.HasPrefix(word.text, "--"):
			option, value, attached = strings.Cut(word.text, "=")
			flags.long = append(flags.long, option)
		case len(word.text) > 1 && word.text[0] == '-':
			letters := word.text[1:]
			if i := strings.IndexFunc(letters, func(c rune) bool { return takesValue("-" + string(c)) }); i >= 0 {
				option, value, letters = "-"+letters[i:i+1], letters[i+1:], letters[:i+1]
				attached = value != ""
			}
			flags.short += letters
		case leading:
			return flags, args
		default:
			operands = append(operands, word)
		}
		args = args[1:]
		if !takesValue(option) {
			continue
		}
		given := shWord{text: value}
		if !attached && len(args) > 0 {
			given, args = args[0], args[1:]
		}
		flags.values[option] = append(flags.values[option], given)
	}
	return flags, operands
}

// has reports whether one of some options is given: a short one by its letter, a long one in full or, as git allows,
// cut short.
func (f flagSet) has(options string) bool {
	for _, option := range strings.Fields(options) {
		given := func(l string) bool { return len(l) > 3 && strings.HasPrefix(option, l) }
		if len(option) == 2 && strings.Contains(f.short, option[1:]) || slices.ContainsFunc(f.long, given) {
			return true
		}
	}
	return false
}

// gitGlobals are git's own options that take a value.
const gitGlobals = "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source"

// git inspects a git command line.
func (s *simple) git(args []shWord) string {
	flags, args := splitFlags(args, gitGlobals, true)
	if len(args) == 0 {
		return ""
	}
	sub, args := args[0].text, args[1:]
	for _, c := range flags.values["-c"] {
		key, value, _ := strings.Cut(c.text, "=")
		switch name, isAlias := strings.CutPrefix(strings.ToLower(key), "alias."); {
		case isAlias && name == strings.ToLower(sub):
			return s.gitAlias(value, args)
		case sub == "clean" && strings.EqualFold(key, "clean.requireForce"):
			args = append(args, shWord{text: "-f"})
		}
	}
	place := s.cwd
	for _, dir := range slices.Concat(flags.values["-C"], flags.values["--git-dir"], flags.values["--work-tree"]) {
		place, _ = s.locate(dir.text, place)
	}
	if slices.Contains(gitWriters, sub) && !s.isOwn(place) {
		return "git " + sub + " in another repository is not allowed; work inside the worktree only"
	}
	for _, d := range gitDenials {
		if slices.Contains(strings.Fields(d.commands), sub) && d.applies(args) {
			if sub == "config" {
				return s.gitConfig(args)
			}
			return d.reason
		}
	}
	return ""
}

// gitWriters are the commands that change a repository or its files.
var gitWriters = strings.Fields("add am apply checkout cherry-pick commit merge mv pull rebase reset " +
	"restore revert rm switch tag")

// isOwn reports whether a repository may be changed: the worktree's, or one that a test has made for itself. An unknown
// place is taken for one of these.
func (in *inspector) isOwn(place string) bool {
	return place == "" || in.inTops(place) || within(os.TempDir(), place) && !in.isProtected(place)
}

// gitAlias inspects an alias that the command line itself defines.
func (s *simple) gitAlias(def string, args []shWord) string {
	if shell, ok := strings.CutPrefix(def, "!"); ok {
		return s.script(shell)
	}
	return s.script("git " + def + " " + text.ShellQuote(texts(args)...))
}

// gitDenial is a row of the deny list of git's commands. It applies to a call with one of flags, one of subs as its first
// operand and so many operands, as far as the row has them, and with neither of those that are harmless.
type gitDenial struct {
	commands, flags, subs string
	operands              int
	harmless, harmlessSub string
	valued                string // options that take a value
	reason                string
}

const (
	tilthReason = "git tilth is for the person who runs this session; nothing of it can be done from inside"
	refsStay    = "no branch is to be moved, renamed or deleted; git commit adds to the one that is checked out"
	configWrite = "the configuration belongs to the repository's owner; use git -c name=value for one command"
)

var gitDenials = []gitDenial{
	{commands: "tilth", reason: tilthReason},
	{commands: "push", reason: "git push is not allowed; commit here, and a person decides what is published"},
	{commands: "reset", flags: "--hard", reason: "git reset --hard is not allowed; undo single files with git restore"},
	{commands: "clean", flags: "-f --force", harmless: "-n --dry-run", valued: "-e",
		reason: "git clean with force is not allowed; remove single files with rm"},
	{commands: "worktree", subs: "remove move", reason: "removing or moving worktrees is not allowed"},
	{commands: "branch", flags: "-d -D -m -M -C -f --delete --move --force", valued: "-u", reason: refsStay},
	{commands: "update-ref", reason: refsStay},
	// A commit there would move the user's own branch under their files.
	{commands: "checkout switch", flags: "--ignore-other-worktrees", valued: "-b -B -c -C",
		reason: "a branch that another worktree has checked out is not to be checked out here"},
	{commands: "config", flags: "-e --edit --add --unset --unset-all --replace-all --rename-section --remove-section",
		valued: configValued},
	{commands: "config", subs: "set unset edit rename-section remove-section", valued: configValued},
	// `git config name` reads, `git config name value` writes; the patterns that some readers take are operands too.
	{commands: "config", operands: 2, harmlessSub: "list get", valued: configValued,
		harmless: "-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool"},
	{commands: "reflog", subs: "expire delete", reason: "removing reflogs is not allowed"},
	{commands: "remote", subs: "add rename remove rm set-head set-branches set-url", reason: configWrite},
	{commands: "stash", harmless: "-h --help", harmlessSub: "list show create apply", valued: "-m",
		reason: "git stash is not allowed: the stash is shared with the user's checkout; commit instead"},
}

func (d gitDenial) applies(args []shWord) bool {
	flags, operands := splitFlags(args, d.valued, false)
	sub := ""
	if len(operands) > 0 {
		sub = operands[0].text
	}
	return (d.flags == "" || flags.has(d.flags)) && !flags.has(d.harmless) && len(operands) >= d.operands &&
		(d.subs == "" || slices.Contains(strings.Fields(d.subs), sub)) &&
		!slices.Contains(strings.Fields(d.harmlessSub), sub)
}

const configValued = "-f --type --default --file --blob --value --url --comment"

// gitConfig refuses writes: a linked worktree shares its repository's settings. A file of the worktree that is named
// (.gitmodules) is a file like others.
func (s *simple) gitConfig(args []shWord) string {
	flags, _ := splitFlags(args, configValued, false)
	for _, file := range slices.Concat(flags.values["-f"], flags.values["--file"]) {
		if place, ok := s.locate(file.text, s.cwd); ok && s.isOwn(place) {
			return s.writesTo(file)
		}
	}
	return configWrite
}
