package tool

import (
	"slices"
	"strings"
)

// flagSet are the options of a command line.
type flagSet struct {
	short string   // every letter of the short ones
	long  []string // the long ones, without a value
}

// splitFlags tells options from operands. valued are short options that take a
// value, attached or as the next word.
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

// has reports whether an option is given, in full or, as git allows, with its
// long name cut short.
func (f flagSet) has(short rune, long string) bool {
	if short != 0 && strings.ContainsRune(f.short, short) {
		return true
	}
	return slices.ContainsFunc(f.long, func(l string) bool {
		return len(l) > 3 && strings.HasPrefix("--"+long, l)
	})
}

// gitGlobals are git's own options that take the next word as their value.
var gitGlobals = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--attr-source"}

// gitRule judges a git command line.
func gitRule(s *simple, args []shWord) string {
	aliases := map[string]string{}
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		opt := args[0].text
		args = args[1:]
		if !slices.Contains(gitGlobals, opt) || len(args) == 0 {
			continue
		}
		if opt == "-c" {
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
	if r := gitRules[sub]; r != nil {
		return r(s, args[1:])
	}
	return ""
}

// gitAlias judges an alias that the command line itself defines.
func (s *simple) gitAlias(def string, args []shWord) string {
	if shell, ok := strings.CutPrefix(def, "!"); ok {
		return s.nested(shell)
	}
	cmds, _ := parseShell(def)
	if len(cmds) == 0 || len(cmds[0].words) == 0 {
		return ""
	}
	words := append(slices.Clone(cmds[0].words), args...)
	if r := gitRules[words[0].text]; r != nil {
		return r(s, words[1:])
	}
	return ""
}

// gitRules is the deny list, by git command.
var gitRules = map[string]rule{
	"push":       gitPush,
	"reset":      gitReset,
	"clean":      gitClean,
	"worktree":   gitWorktree,
	"branch":     gitBranch,
	"checkout":   gitSwitch,
	"switch":     gitSwitch,
	"config":     gitConfig,
	"remote":     gitRemote,
	"stash":      gitStash,
	"update-ref": gitUpdateRef,
	"reflog":     gitReflog,
}

func gitPush(_ *simple, args []shWord) string {
	flags, operands := splitFlags(args, "o")
	if flags.has('f', "force") || flags.has(0, "force-with-lease") || flags.has(0, "mirror") {
		return "git push with force is not allowed"
	}
	if flags.has('d', "delete") {
		return "deleting branches of a remote is not allowed"
	}
	for _, w := range operands {
		switch {
		case strings.HasPrefix(w.text, "+"):
			return "git push with force (a refspec with +) is not allowed"
		case strings.HasPrefix(w.text, ":") && len(w.text) > 1:
			return "deleting branches of a remote is not allowed"
		}
	}
	return ""
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

const sessionRef = "session/"

func gitBranch(_ *simple, args []shWord) string {
	flags, operands := splitFlags(args, "u")
	changes := flags.has('d', "delete") || flags.has('D', "delete") || flags.has('m', "move") ||
		strings.ContainsAny(flags.short, "MC") || flags.has('f', "force")
	if !changes {
		return ""
	}
	// With one name, -m renames the branch that is checked out.
	renamesThis := (flags.has('m', "move") || strings.ContainsRune(flags.short, 'M')) && len(operands) < 2
	if renamesThis || slices.ContainsFunc(operands, func(w shWord) bool { return strings.Contains(w.text, sessionRef) }) {
		return "the session's branch is not to be changed; git commit adds to it"
	}
	return ""
}

// gitSwitch refuses to check out a branch that is checked out elsewhere: a commit would move the user's own branch under their files.
func gitSwitch(_ *simple, args []shWord) string {
	if flags, _ := splitFlags(args, "bBcC"); flags.has(0, "ignore-other-worktrees") {
		return "a branch that another worktree has checked out is not to be checked out here"
	}
	return ""
}

func gitUpdateRef(_ *simple, args []shWord) string {
	for _, w := range args {
		if w.text == "-d" || w.text == "--stdin" || strings.Contains(w.text, sessionRef) {
			return "changing refs directly is not allowed"
		}
	}
	return ""
}

func gitReflog(_ *simple, args []shWord) string {
	if len(args) > 0 && (args[0].text == "expire" || args[0].text == "delete") {
		return "removing reflogs is not allowed"
	}
	return ""
}

const configWrite = "the configuration belongs to the repository's owner; use git -c name=value for one command"

// gitConfig refuses writes: a linked worktree shares its repository's settings. A
// file that is named (.gitmodules) is a file like others.
func gitConfig(_ *simple, args []shWord) string {
	flags, operands := splitFlags(joinValues(args, "--type", "--default", "--file", "--blob", "--value", "--url", "--comment"), "f")
	if flags.has('f', "file") || flags.has(0, "blob") {
		return ""
	}
	for _, write := range []string{"add", "unset", "unset-all", "replace-all", "rename-section", "remove-section", "edit"} {
		if slices.Contains(flags.long, "--"+write) {
			return configWrite
		}
	}
	if strings.ContainsRune(flags.short, 'e') {
		return configWrite
	}
	// --get and the like take patterns as operands too, and only read.
	if slices.ContainsFunc(flags.long, func(l string) bool { return strings.HasPrefix(l, "--get") || l == "--list" }) ||
		strings.ContainsRune(flags.short, 'l') || len(operands) == 0 {
		return ""
	}
	switch operands[0].text {
	case "list", "get":
		return ""
	case "set", "unset", "edit", "rename-section", "remove-section":
		return configWrite
	}
	// `git config name` reads, `git config name value` writes.
	if len(operands) > 1 {
		return configWrite
	}
	return ""
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
	if len(operands) > 0 && slices.Contains([]string{"add", "rename", "remove", "rm", "set-head", "set-branches", "set-url"}, operands[0].text) {
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
