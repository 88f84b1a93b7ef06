package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// The help of each command fits 80 columns, breaks between words and has two examples that its options accept.
func TestHelp(t *testing.T) {
	p := newProcess()
	var each func(parents string, cmds []*cli.Command)
	each = func(parents string, cmds []*cli.Command) {
		for _, c := range cmds {
			if c.Hidden {
				continue
			}
			name := parents + " " + c.Name
			each(name, c.Subcommands)
			text := helpText(c, name, p.examples(c), 80)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%s: a line of %d columns: %s", name, n, line)
				}
			}
			words := strings.Fields(c.Usage + " " + c.Description)
			for _, f := range visibleFlags(c.Flags) {
				words = append(words, strings.Fields(strings.ReplaceAll(f.GetUsage(), "`", ""))...)
			}
			shown := strings.Fields(text)
			for _, w := range words {
				if !slices.Contains(shown, w) {
					t.Errorf("%s: %q is broken or missing", name, w)
				}
			}
			if strings.HasSuffix(c.Usage, ".") || len(c.Usage) > 80 {
				t.Errorf("%s: usage is a phrase of at most 80 columns without a full stop: %s", name, c.Usage)
			}
			if len(p.examples(c)) < 2 {
				t.Errorf("%s has fewer than two examples", name)
			}
			for _, e := range p.examples(c) {
				if !strings.Contains(e, c.Name) {
					t.Errorf("%s: example %q is of another command", name, e)
				}
				for _, w := range strings.Fields(e) {
					if strings.HasPrefix(w, "-") && w != "--" && !knowsFlag(c, w) && c.Name != diffName {
						t.Errorf("%s: example %q has an unknown flag %s", name, e, w)
					}
				}
			}
		}
	}
	each("git tilth", p.app().Commands)
}

func knowsFlag(c *cli.Command, arg string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
		return slices.Contains(f.Names(), strings.TrimLeft(arg, "-"))
	})
}
