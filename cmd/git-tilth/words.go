package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/text"
)

// arrange puts a command line into the order in which the library reads it: the command, its flags, --, its arguments.
// On the command line flags may stand anywhere, as in git; -- ends them.
func (p *process) arrange(app *cli.App, args []string) ([]string, error) {
	var global, words []string
	rest := args[1:]
	for len(rest) > 0 && isFlag(rest[0]) && rest[0] != "--" {
		if !hasFlag(app.Flags, rest[0]) {
			return nil, unknownFlag("git tilth", app.Flags, rest[0])
		}
		global, rest = append(global, rest[0]), rest[1:]
	}
	var leaf *cli.Command
	for cmds := app.Commands; len(cmds) > 0; cmds = leaf.Subcommands {
		at := slices.IndexFunc(rest, func(w string) bool { return !isFlag(w) })
		if at < 0 || leaf == nil && at > 0 {
			break
		}
		i := slices.IndexFunc(cmds, func(c *cli.Command) bool { return c.HasName(rest[at]) })
		if i < 0 {
			break
		}
		leaf, words = cmds[i], append(words, rest[at])
		rest = slices.Delete(slices.Clone(rest), at, at+1)
	}
	if leaf == nil || leaf.Action == nil || leaf.SkipFlagParsing {
		return slices.Concat(args[:1], global, words, rest), nil
	}
	flags, given, err := p.sortWords(leaf, "git tilth "+strings.Join(words, " "), rest)
	if err != nil {
		return nil, err
	}
	if len(given) > 0 {
		given = append([]string{"--"}, given...)
	}
	return slices.Concat(args[:1], global, words, flags, given), nil
}

// sortWords tells a command's flags, with their values, from its arguments. What belongs to git is put by.
func (p *process) sortWords(c *cli.Command, name string, words []string) (flags, args []string, err error) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--" && c.Name == diffName:
			p.gitPaths = words[i+1:]
			return flags, args, nil
		case word == "--":
			return flags, append(args, words[i+1:]...), nil
		case !isFlag(word):
			args = append(args, word)
			continue
		}
		split := shortFlags(c.Flags, word)
		switch {
		case split == nil && c.Name == diffName:
			p.gitFlags = append(p.gitFlags, word)
			if i+1 < len(words) && ofGitFlag(word, words[i+1]) {
				i++
				p.gitFlags = append(p.gitFlags, words[i])
			}
			continue
		case split == nil:
			return nil, nil, unknownFlag(name, c.Flags, word)
		}
		flags = append(flags, split...)
		last := split[len(split)-1]
		if takesValue(c.Flags, last) && !strings.Contains(word, "=") && len(split) == 1 && i+1 < len(words) {
			i++
			flags = append(flags, words[i])
		}
	}
	return flags, args, nil
}

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// flagName is a flag without its dashes and value.
func flagName(word string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name
}

func hasFlag(flags []cli.Flag, word string) bool {
	name := flagName(word)
	has := func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }
	return name == "h" || name == "help" || name == "version" || slices.ContainsFunc(flags, has)
}

// shortFlags is a flag as the library takes it, or several of one letter behind one dash, the last of which may have
// its value behind it: -kn, -j4. It is nil for a flag that is not known.
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

// ofGitFlag reports whether a word is the value of the flag of git diff before it: that takes one in a word of its own,
// or it can be neither a task nor a session.
func ofGitFlag(flag, word string) bool {
	if isFlag(word) || strings.Contains(flag, "=") {
		return false
	}
	if slices.Contains([]string{"-S", "-G", "-O", "-l", "--inter-hunk-context"}, flag) {
		return true
	}
	return taskNumber(word) == "" && strings.Trim(word, "0123456789abcdef-") != ""
}

// unknownFlag names the flag that a mistyped one is nearest to.
func unknownFlag(command string, flags []cli.Flag, word string) error {
	known := []string{"help"}
	for _, f := range visible(flags) {
		known = append(known, f.Names()...)
	}
	known = slices.DeleteFunc(known, func(name string) bool { return len(name) == 1 })
	near, _ := text.Nearest(flagName(word), known)
	if near != "" {
		near = "; did you mean --" + near + "?"
	}
	shown, _, _ := strings.Cut(word, "=")
	return refuse(command+" -h", "unknown flag %s%s", shown, near)
}

// taskNumber is the number by which a word names a task, without leading zeros: T-004, t4 and 4 are 4. It is "" for a
// word that names none.
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
