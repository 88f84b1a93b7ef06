package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// completeCommand answers a shell. It reads the words after `git tilth` and prints the completions of the last one,
// one per line, with a description after a tab. They come from the same definitions as -h.
func (p *process) completeCommand() *cli.Command {
	return p.declare(traits{looks: true}, &cli.Command{
		Name: "complete", Hidden: true, SkipFlagParsing: true,
		Action: func(ctx *cli.Context) error {
			words := append([]string{}, ctx.Args().Slice()...)
			if len(words) == 0 {
				words = []string{""}
			}
			for _, c := range completions(ctx.App, words, p.valuesOf) {
				p.printf("%s\t%s\n", c.Word, text.VisibleLine(c.What))
			}
			return nil
		},
	})
}

// valuesOf returns the values of a flag or an argument. Without values the shell completes files. Errors are dropped,
// because a shell cannot show them.
func (p *process) valuesOf(kind string) (list []candidate) {
	if kind == "type" {
		for _, t := range record.Types() {
			list = append(list, candidate{Word: t, What: "event"})
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
				list = append(list, candidate{Word: b, What: "branch"})
			}
		}
		return list
	}
	if kind == "session" {
		all, _ := w.overviews(!w.inRepo)
		for _, o := range all {
			list = append(list,
				candidate{Word: o.ID, What: fmt.Sprintf("%s, %s", o.State(), text.OneLine(o.Label))})
		}
		return list
	}
	s, err := w.session("", false)
	if err != nil {
		return nil
	}
	if kind != "task" {
		list = append(list, candidate{Word: "seed", What: "before any work"})
	}
	tasks, _ := s.Tasks()
	for _, t := range tasks {
		list = append(list, candidate{Word: t.ID, What: t.Status + ": " + t.Title})
	}
	return list
}
