// Command lines are parsed as git parses them.

package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/text"
)

// commandLine sorts a command line into flags and arguments, and keeps the flags and paths for git.
type commandLine struct {
	ForGit   string   // git command that gets all other flags
	GitFlags []string // flags for git, unchanged
	GitPaths []string // arguments after --, for git
}

// Arrange sorts a command line into the order that the library reads: the command, its flags, --, its arguments. As in
// git, the user may type flags anywhere before --.
func (w *commandLine) Arrange(app *cli.App, args []string) ([]string, error) {
	var global, names []string
	rest := args[1:]
	for len(rest) > 0 && isFlag(rest[0]) && rest[0] != "--" {
		if !hasFlag(app.Flags, rest[0]) {
			return nil, unknownFlag("git tilth", app.Flags, rest[0])
		}
		global, rest = append(global, rest[0]), rest[1:]
	}
	var leaf *cli.Command
	for cmds := app.Commands; len(cmds) > 0; cmds = leaf.Subcommands {
		at := slices.IndexFunc(rest, func(word string) bool { return !isFlag(word) })
		if at < 0 || leaf == nil && at > 0 {
			break
		}
		i := slices.IndexFunc(cmds, func(c *cli.Command) bool { return c.HasName(rest[at]) })
		if i < 0 {
			break
		}
		leaf, names = cmds[i], append(names, rest[at])
		rest = slices.Delete(slices.Clone(rest), at, at+1)
	}
	if leaf == nil || leaf.Action == nil || leaf.SkipFlagParsing {
		return slices.Concat(args[:1], global, names, rest), nil
	}
	flags, given, err := w.sort(leaf, "git tilth "+strings.Join(names, " "), rest)
	if err != nil {
		return nil, err
	}
	if len(given) > 0 {
		given = append([]string{"--"}, given...)
	}
	return slices.Concat(args[:1], global, names, flags, given), nil
}

// sort separates a command's flags, with their values, from its arguments. It collects git's flags.
func (w *commandLine) sort(c *cli.Command, name string, given []string) (flags, args []string, err error) {
	for i := 0; i < len(given); i++ {
		word := given[i]
		switch {
		case word == "--" && c.Name == w.ForGit:
			w.GitPaths = given[i+1:]
			return flags, args, nil
		case word == "--":
			return flags, append(args, given[i+1:]...), nil
		case !isFlag(word):
			args = append(args, word)
			continue
		}
		split := shortFlags(c.Flags, word)
		switch {
		case split == nil && c.Name == w.ForGit:
			w.GitFlags = append(w.GitFlags, word)
			if i+1 < len(given) && ofGitFlag(word, given[i+1]) {
				i++
				w.GitFlags = append(w.GitFlags, given[i])
			}
			continue
		case split == nil:
			return nil, nil, unknownFlag(name, c.Flags, word)
		}
		flags = append(flags, split...)
		last := split[len(split)-1]
		if takesValue(c.Flags, last) && !strings.Contains(word, "=") && len(split) == 1 {
			if i++; i == len(given) {
				return nil, nil, held.Refuse(name+" -h", "%s needs a value", word)
			}
			flags = append(flags, given[i])
		}
	}
	return flags, args, nil
}

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// flagName returns a flag without its dashes and value.
func flagName(word string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name
}

// hasFlag reports whether a word is a flag of the command or a global flag.
func hasFlag(flags []cli.Flag, word string) bool {
	name := flagName(word)
	has := func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }
	return name == "h" || name == "help" || name == "version" || slices.ContainsFunc(flags, has)
}

// shortFlags splits a word such as -kn or -j4 into flags for the library; the last one may have a value. It returns
// nil for an unknown flag.
func shortFlags(flags []cli.Flag, word string) (split []string) {
	if hasFlag(flags, word) {
		return []string{word}
	}
	if strings.HasPrefix(word, "--") {
		return nil
	}
	for i, r := range word[1:] {
		one := "-" + string(r)
		if !hasFlag(flags, one) {
			return nil
		}
		split = append(split, one)
		if takesValue(flags, one) {
			return append(split, word[1+i+len(string(r)):])
		}
	}
	return split
}

// ofGitFlag reports whether a word is the value of the git diff flag before it. It is if the flag takes a separate
// value, or if the word can be neither a task nor a session.
func ofGitFlag(flag, word string) bool {
	if isFlag(word) || strings.Contains(flag, "=") {
		return false
	}
	if slices.Contains([]string{"-S", "-G", "-O", "-l", "--inter-hunk-context"}, flag) {
		return true
	}
	return taskNumber(word) == "" && strings.Trim(word, "0123456789abcdef-") != ""
}

// unknownFlag returns an error that suggests the flag nearest to a mistyped one.
func unknownFlag(command string, flags []cli.Flag, word string) error {
	known := []string{"help"}
	for _, f := range visibleFlags(flags) {
		known = append(known, f.Names()...)
	}
	known = slices.DeleteFunc(known, func(name string) bool { return len(name) == 1 })
	near, _ := text.Nearest(flagName(word), known)
	if near != "" {
		near = "; did you mean --" + near + "?"
	}
	shown, _, _ := strings.Cut(word, "=")
	return held.Refuse(command+" -h", "unknown flag %s%s", shown, near)
}

// taskNumber returns the task number in a word, without leading zeros: 4 for T-004, t4 and 4. It returns "" for any
// other word.
func taskNumber(word string) string {
	digits := word
	if word != "" && word[0]|0x20 == 't' {
		digits = strings.TrimPrefix(word[1:], "-")
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

// takesValue reports whether a flag takes a value.
func takesValue(flags []cli.Flag, word string) bool {
	return slices.ContainsFunc(flags, func(f cli.Flag) bool {
		doc, ok := f.(cli.DocGenerationFlag)
		return ok && slices.Contains(f.Names(), strings.TrimLeft(word, "-")) && doc.TakesValue()
	})
}

// visibleFlags returns the flags that -h shows.
func visibleFlags(flags []cli.Flag) (list []cli.DocGenerationFlag) {
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if hidden, can := f.(cli.VisibleFlag); ok && (!can || hidden.IsVisible()) {
			list = append(list, doc)
		}
	}
	return list
}
