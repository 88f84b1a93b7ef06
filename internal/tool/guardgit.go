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

// splitFlags tells options from operands. valued are short options that take a value, attached or as the next word.
func splitFlags(args []shWord, valued string) (flags flagSet, operands []shWord) {
	for i := 0; i < len(args); i++ {
		a := args[i].text
		switch {
		case a == "--":
			return flags, append(operands, args[i+1:]...)
		case strings.HasPrefix(a, "--"):
			name, _, _ := strings.Cut(a, "=")
			flags.long = append(flags.long, name)
		case len(a) > 1 && a[0] == '-':
			for k, c := range a[1:] {
				flags.short += string(c)
				if strings.ContainsRune(valued, c) {
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

// has reports whether an option is given, in full or, as git allows, with its long name cut short.
func (f flagSet) has(short rune, long string) bool {
	if short != 0 && strings.ContainsRune(f.short, short) {
		return true
	}
	return slices.ContainsFunc(f.long, func(l string) bool {
		return len(l) > 3 && strings.HasPrefix("--"+long, l)
	})
}

// gitGlobals are git's own options that take the next word as their value.
var gitGlobals = strings.Fields("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env " +
	"--attr-source")

// gitRule inspects a git command line.
func gitRule(s *simple, args []shWord) string {
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
	if r := gitRuleOf(sub); r != nil {
		return r(s, args[1:])
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

// gitRuleOf is the deny list, by git command.
func gitRuleOf(name string) rule {
	switch name {
	case "push":
		return gitPush
	case "reset":
		return gitReset
	case "clean":
		return gitClean
	case "worktree":
		return gitWorktree
	case "branch":
		return gitBranch
	case "checkout", "switch":
		return gitSwitch
	case "config":
		return gitConfig
	case "remote":
		return gitRemote
	case "stash":
		return gitStash
	case "update-ref":
		return gitUpdateRef
	case "reflog":
		return gitReflog
	case "tilth":
		return tilthRule
	}
	return nil
}

func gitPush(*simple, []shWord) string {
	return "git push is not allowed; commit here, and a person decides what is published"
}

func gitReset(_ *simple, args []shWord) string {
	if flags, _ := splitFlags(args, ""); flags.has(0, "hard") {
		return "git reset --hard is not allowed; undo single files with git restore"
	}
	return ""
}

func gitClean(_ *simple, args []shWord) string {
	flags, _ := splitFlags(args, "e")
	if flags.has('f', "force") && !flags.has('n', "dry-run") {
		return "git clean with force is not allowed; remove single files with rm"
	}
	return ""
}

func gitWorktree(_ *simple, args []shWord) string {
	if len(args) > 0 && (args[0].text == "remove" || args[0].text == "move") {
		return "removing or moving worktrees is not allowed"
	}
	return ""
}

const refsStay = "no branch is to be moved, renamed or deleted; git commit adds to the one that is checked out"

func gitBranch(_ *simple, args []shWord) string {
	flags, _ := splitFlags(args, "u")
	if flags.has('d', "delete") || flags.has('D', "delete") || flags.has('m', "move") || flags.has('f', "force") ||
		strings.ContainsAny(flags.short, "MC") {
		return refsStay
	}
	return ""
}

// gitSwitch refuses to check out a branch that is checked out elsewhere: a commit would move the user's own branch
// under their files.
func gitSwitch(_ *simple, args []shWord) string {
	if flags, _ := splitFlags(args, "bBcC"); flags.has(0, "ignore-other-worktrees") {
		return "a branch that another worktree has checked out is not to be checked out here"
	}
	return ""
}

func gitUpdateRef(*simple, []shWord) string { return refsStay }

func gitReflog(_ *simple, args []shWord) string {
	if len(args) > 0 && (args[0].text == "expire" || args[0].text == "delete") {
		return "removing reflogs is not allowed"
	}
	return ""
}

const configWrite = "the configuration belongs to the repository's owner; use git -c name=value for one command"

// gitConfig refuses writes: a linked worktree shares its repository's settings. A file of the worktree that is named
// (.gitmodules) is a file like others.
func gitConfig(s *simple, args []shWord) string {
	valued := []string{"--type", "--default", "--file", "--blob", "--value", "--url", "--comment"}
	flags, operands := splitFlags(joinValues(args, valued...), "f")
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
	writes := strings.Fields("--add --unset --unset-all --replace-all --rename-section --remove-section --edit")
	isWrite := func(l string) bool { return slices.Contains(writes, l) }
	if slices.ContainsFunc(flags.long, isWrite) || strings.ContainsRune(flags.short, 'e') {
		return true
	}
	// --get and the like take patterns as operands too, and only read.
	if slices.ContainsFunc(flags.long, func(l string) bool { return strings.HasPrefix(l, "--get") || l == "--list" }) ||
		strings.ContainsRune(flags.short, 'l') || len(operands) == 0 {
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

// joinValues drops the word after each of the long options names, whose value it is.
func joinValues(args []shWord, names ...string) []shWord {
	out := make([]shWord, 0, len(args))
	for i := 0; i < len(args); i++ {
		out = append(out, args[i])
		if slices.Contains(names, args[i].text) {
			i++
		}
	}
	return out
}

func gitRemote(_ *simple, args []shWord) string {
	_, operands := splitFlags(args, "")
	writes := strings.Fields("add rename remove rm set-head set-branches set-url")
	if len(operands) > 0 && slices.Contains(writes, operands[0].text) {
		return configWrite
	}
	return ""
}

// gitStash refuses to change the stash: the worktrees of a repository share one.
func gitStash(_ *simple, args []shWord) string {
	flags, operands := splitFlags(args, "m")
	if flags.has('h', "help") {
		return ""
	}
	if len(operands) > 0 && slices.Contains([]string{"list", "show", "create", "apply"}, operands[0].text) {
		return ""
	}
	return "git stash is not allowed: the stash is shared with the user's checkout; commit instead"
}
