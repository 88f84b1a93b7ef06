package tool

import (
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// flagSet are the options of a command line.
type flagSet struct {
	short string   // every letter of the short ones
	long  []string // the long ones, without a value
}

// splitFlags tells options from operands. valued are options that take a value: a short one attached or as the next
// word, a long one as the next word unless it has a `=`.
func splitFlags(args []shWord, valued string) (flags flagSet, operands []shWord) {
	takesValue := func(option string) bool { return slices.Contains(strings.Fields(valued), option) }
	for i := 0; i < len(args); i++ {
		a := args[i].text
		switch {
		case a == "--":
			return flags, append(operands, args[i+1:]...)
		case strings.HasPrefix(a, "--"):
			name, _, _ := strings.Cut(a, "=")
			flags.long = append(flags.long, name)
			if takesValue(a) {
				i++
			}
		case len(a) > 1 && a[0] == '-':
			for k, c := range a[1:] {
				flags.short += string(c)
				if takesValue("-" + string(c)) {
					if k == len(a)-2 {
						i++
					}
					break
				}
			}
		default:
			operands = append(operands, args[i])
		}
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

// gitGlobals are git's own options that take the next word as their value.
var gitGlobals = strings.Fields("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env " +
	"--attr-source")

// git inspects a git command line.
func (s *simple) git(args []shWord) string {
	aliases := map[string]string{}
	place := s.cwd
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		opt := args[0].text
		args = args[1:]
		if !slices.Contains(gitGlobals, opt) || len(args) == 0 {
			continue
		}
		switch opt {
		case "-C", "--git-dir", "--work-tree":
			place, _ = s.locate(args[0].text, place)
		case "-c":
			key, val, _ := strings.Cut(args[0].text, "=")
			if name, ok := strings.CutPrefix(strings.ToLower(key), "alias."); ok {
				aliases[name] = val
			}
			if strings.EqualFold(key, "clean.requireForce") {
				aliases["clean"] = "clean -f"
			}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	sub := args[0].text
	if def, ok := aliases[strings.ToLower(sub)]; ok {
		return s.gitAlias(def, args[1:])
	}
	if slices.Contains(gitWriters, sub) && !s.isOwn(place) {
		return "git " + sub + " in another repository is not allowed; work inside the worktree only"
	}
	if sub == "config" {
		return s.gitConfig(args[1:])
	}
	for _, d := range gitDenials {
		if slices.Contains(strings.Fields(d.commands), sub) && d.applies(args[1:]) {
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

// gitDenial is a row of the deny list of git's commands. It applies to a call with one of flags and one of subs as its
// first operand, as far as the row has them, and with neither of those that are harmless.
type gitDenial struct {
	commands, flags, subs string
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
	{commands: "reflog", subs: "expire delete", reason: "removing reflogs is not allowed"},
	{commands: "remote", subs: "add rename remove rm set-head set-branches set-url", reason: configWrite},
	{commands: "stash", harmless: "-h --help", harmlessSub: "list show create apply", valued: "-m",
		reason: "git stash is not allowed: the stash is shared with the user's checkout; commit instead"},
}

func (d gitDenial) applies(args []shWord) bool {
	flags, operands := splitFlags(args, d.valued)
	sub := ""
	if len(operands) > 0 {
		sub = operands[0].text
	}
	return (d.flags == "" || flags.has(d.flags)) && !flags.has(d.harmless) &&
		(d.subs == "" || slices.Contains(strings.Fields(d.subs), sub)) &&
		!slices.Contains(strings.Fields(d.harmlessSub), sub)
}

// gitConfig refuses writes: a linked worktree shares its repository's settings. A file of the worktree that is named
// (.gitmodules) is a file like others.
func (s *simple) gitConfig(args []shWord) string {
	flags, operands := splitFlags(args, "-f --type --default --file --blob --value --url --comment")
	if !configWrites(flags, operands) {
		return ""
	}
	for i, a := range args {
		file, named := strings.CutPrefix(a.text, "--file=")
		if i+1 < len(args) && (a.text == "-f" || a.text == "--file") {
			file, named = args[i+1].text, true
		}
		if !named {
			continue
		}
		if place, ok := s.locate(file, s.cwd); ok && s.isOwn(place) {
			return s.writesTo(shWord{text: file})
		}
	}
	return configWrite
}

func configWrites(flags flagSet, operands []shWord) bool {
	switch {
	case flags.has("-e --edit --add --unset --unset-all --replace-all --rename-section --remove-section"):
		return true
	case flags.has("-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool"):
		return false // the patterns that some of these take are operands too
	case len(operands) == 0:
		return false
	}
	switch operands[0].text {
	case "list", "get":
		return false
	case "set", "unset", "edit", "rename-section", "remove-section":
		return true
	}
	return len(operands) > 1 // `git config name` reads, `git config name value` writes
}
