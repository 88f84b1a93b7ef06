package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/text"
)

// candidate is a completion of the word being typed, with its description.
type candidate struct{ Word, What string }

// completions returns the completions of the last word after `git tilth`. values returns the values of a flag or of an
// argument, by its name in ArgsUsage.
func completions(app *cli.App, words []string, values func(kind string) []candidate) []candidate {
	before, word := words[:len(words)-1], words[len(words)-1]
	list := candidates(app, before, strings.HasPrefix(word, "-"), values)
	return slices.DeleteFunc(list, func(c candidate) bool { return !strings.HasPrefix(c.Word, word) })
}

func candidates(app *cli.App, before []string, isFlag bool, values func(kind string) []candidate) (list []candidate) {
	cmds, flags, usage := app.Commands, app.Flags, ""
	skip, given := "", 0
	for i, w := range before {
		switch {
		case i == 0 && w == "help":
		case skip != "":
			skip = ""
		case strings.HasPrefix(w, "-"):
			if !strings.Contains(w, "=") && takesValue(flags, w) {
				skip = strings.TrimLeft(w, "-")
			}
		default:
			i := slices.IndexFunc(cmds, func(c *cli.Command) bool { return c.HasName(w) })
			if i < 0 {
				given++
				continue
			}
			flags, usage, cmds = cmds[i].Flags, cmds[i].ArgsUsage, cmds[i].Subcommands
		}
	}
	switch {
	case skip != "":
		return values(skip)
	case isFlag:
		for _, f := range visibleFlags(flags) {
			list = append(list, candidate{"--" + f.Names()[0], strings.ReplaceAll(f.GetUsage(), "`", "")})
		}
	case len(cmds) > 0:
		for _, c := range cmds {
			if !c.Hidden {
				list = append(list, candidate{c.Name, c.Usage})
			}
		}
	default:
		for i, kind := range strings.Fields(usage) {
			if i >= given || strings.Contains(kind, "...") {
				list = append(list, values(strings.Trim(kind, "[<>]."))...)
			}
		}
	}
	return list
}

// elsewhere maps the command names of other tools to ours.
var elsewhere = map[string]string{
	"status": "show", "info": "show", "ls": "list", "rm": "reset", "remove": "reset", "delete": "reset",
	"merge": "take", "continue": "resume", "start": "run", "init": "prep-feature", "rollback": "rewind",
}

// suggest returns a question that names the command most like a mistyped one, or a command that begins with name. It
// returns "" if there is none.
func suggest(name string, cmds []*cli.Command) string {
	var names []string
	for _, c := range cmds {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	near, _ := text.Nearest(name, names)
	for n := len(name); n >= 2 && near == ""; n-- {
		if i := slices.IndexFunc(names, func(c string) bool { return strings.HasPrefix(c, name[:n]) }); i >= 0 {
			near = names[i]
		}
	}
	if near = cmp.Or(elsewhere[name], near); near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}
