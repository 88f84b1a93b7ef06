package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/cmdline"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// completeCommand answers a shell: given the words after `git tilth`, the last of which is being typed, it prints what
// that one may be, a line each, with what it is after a tab. The definitions are those of -h.
func (p *process) completeCommand() *cli.Command {
	return p.declare(traits{looks: true}, &cli.Command{
		Name: "complete", Hidden: true, SkipFlagParsing: true,
		Action: func(ctx *cli.Context) error {
			words := append([]string{}, ctx.Args().Slice()...)
			if len(words) == 0 {
				words = []string{""}
			}
			for _, c := range p.candidates(ctx.App, words[:len(words)-1], words[len(words)-1]) {
				if strings.HasPrefix(c.word, words[len(words)-1]) {
					p.printf("%s\t%s\n", c.word, text.VisibleLine(c.what))
				}
			}
			return nil
		},
	})
}

type candidate struct{ word, what string }

func (p *process) candidates(app *cli.App, before []string, word string) (list []candidate) {
	cmds, flags, usage := app.Commands, app.Flags, ""
	skip, given := "", 0
	for i, w := range before {
		switch {
		case i == 0 && w == "help":
		case skip != "":
			skip = ""
		case strings.HasPrefix(w, "-"):
			if !strings.Contains(w, "=") && cmdline.TakesValue(flags, w) {
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
		return p.valuesOf(skip)
	case strings.HasPrefix(word, "-"):
		for _, f := range cmdline.Visible(flags) {
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
				list = append(list, p.valuesOf(strings.Trim(kind, "[<>]."))...)
			}
		}
	}
	return list
}

// valuesOf are the values that a flag or an argument may have; a shell completes files where there are none. What
// cannot be read is left out: a shell has no place for errors.
func (p *process) valuesOf(kind string) (list []candidate) {
	if kind == "type" {
		for _, t := range record.Types() {
			list = append(list, candidate{t, "event"})
		}
	}
	if !slices.Contains([]string{"session", "task", "point", "at", "onto", "base"}, kind) {
		return list
	}
	w, err := p.enter("", nil)
	if err != nil {
		return nil
	}
	if kind == "onto" || kind == "base" {
		branches, _ := w.Git.List(p.ctx, gitx.InRepo(w.Loc.CommonDir, "for-each-ref", "--format=%(refname:lstrip=2)%00",
			"refs/heads/"))
		for _, b := range branches {
			if b = strings.TrimSpace(b); !strings.HasPrefix(b, "session/") {
				list = append(list, candidate{b, "branch"})
			}
		}
		return list
	}
	if kind == "session" {
		all, _ := w.overviews(!w.inRepo)
		for _, o := range all {
			list = append(list, candidate{o.ID, fmt.Sprintf("%s, %s", o.State(), text.OneLine(o.Label))})
		}
		return list
	}
	s, err := w.session("", false)
	if err != nil {
		return nil
	}
	if kind != "task" {
		list = append(list, candidate{"seed", "before any work"})
	}
	tasks, _ := s.Tasks()
	for _, t := range tasks {
		list = append(list, candidate{t.ID, t.Status + ": " + t.Title})
	}
	return list
}
