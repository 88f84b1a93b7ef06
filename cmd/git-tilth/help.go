package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) helpCommand() *cli.Command {
	return p.declare(traits{looks: true}, &cli.Command{
		Name: "help", Hidden: true, Usage: "show help for a command", ArgsUsage: "[<command>]",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list the rare commands too"}},
		Action: func(ctx *cli.Context) error {
			name := ctx.Args().First()
			switch {
			case name == "":
				of := usual
				if ctx.Bool("all") {
					of = whole
				}
				return p.printHelp(p.stdout, ctx.App.Commands, of)
			case ctx.App.Command(name) != nil:
				return cli.ShowCommandHelp(ctx, name)
			}
			return unknownCommand(name, ctx.App.Commands)
		},
	})
}

func unknownCommand(name string, cmds []*cli.Command) error {
	return refuse("git tilth -h", "unknown command %q%s", name, suggest(name, cmds))
}

// helpSize is the length of the printed help.
type helpSize int

const (
	brief helpSize = iota // with the repository's state, on one screen
	usual                 // one screen
	whole
)

// printHelp lists the commands: some of them, or all.
func (p *process) printHelp(out io.Writer, cmds []*cli.Command, of helpSize) error {
	var b strings.Builder
	if of != brief {
		b.WriteString("git tilth: run a coding agent unattended over a list of tasks\n" +
			"usage: git tilth [-v] [-n] <command> [<options>] [<arguments>]\n")
	}
	b.WriteString("\n")
	var rare []string
	wish := ""
	for _, c := range cmds {
		is := p.traits[c]
		if is.rare {
			rare = append(rare, c.Name)
		}
		if is.wish == "" || is.rare && of != whole {
			continue
		}
		head := ""
		if is.wish != wish {
			wish, head = is.wish, is.wish
		}
		fmt.Fprintf(&b, "%-12s %-13s %s\n", head, c.Name, c.Usage)
	}
	switch of {
	case brief:
		b.WriteString("\ngit tilth help --all lists all commands, git tilth help <command> shows one.\n")
	case usual:
		fmt.Fprintf(&b, "\ngit tilth help --all: %s\n", strings.Join(rare, ", "))
		fallthrough
	default:
		b.WriteString("\ngit tilth help <command> shows its options. -v prints each git command; -n\n" +
			"prints the plan and changes nothing.\n")
	}
	columns := p.helpColumns()
	for line := range strings.Lines(b.String()) {
		margin := ""
		if len(line) > usageColumn && line[usageColumn-1] == ' ' && columns > 2*usageColumn {
			margin = strings.Repeat(" ", usageColumn)
		}
		if _, err := fmt.Fprintln(out, text.Hang(strings.TrimSuffix(line, "\n"), columns, margin)); err != nil {
			return err
		}
	}
	return nil
}

// helpColumns returns the width of help: of the terminal up to 100 columns, else 80.
func (p *process) helpColumns() int { return min(cmp.Or(p.terminal(false).Width, 80), 100) }

// usageColumn is the column of a command's description in the help.
const usageColumn = 27

// sayState prints the state of the repository and the next command in at most five lines.
func (p *process) sayState() {
	say := func(format string, args ...any) { p.printf(format+"\n", args...) }
	w, err := p.enter("", nil)
	if err != nil {
		_, msg, hint := p.exitFor(err)
		say("%s", text.OneLine(msg))
		if hint = cmp.Or(hint, worldHint(err)); hint != "" {
			say("next: %s", strings.ReplaceAll(hint, "\n", "\n      "))
		}
		return
	}
	if !w.inRepo {
		say("This directory is not in a git repository, and every session belongs to one.\n" +
			"next: git init, or cd into a repository")
		return
	}
	all, err := w.overviews(false)
	_, none := w.Git.RevParse(p.ctx, w.Loc.GitDir, "HEAD^{commit}")
	if len(all) == 0 && errors.Is(none, gitx.ErrNotFound) {
		say("This repository has no commit yet, and a session starts from a commit.\nnext: %s", w.FirstCommit())
		return
	}
	if err != nil || len(all) == 0 {
		worker, unset := w.ChooseAgent(config.Worker)
		var refused *held.RefusedError
		switch {
		case errors.As(unset, &refused):
			say("%s (git tilth doctor)", text.OneLine(refused.Why))
		case unset == nil && worker.Program != nil:
			say("The worker is %s: %s", worker.Program.Name, worker.Why)
		}
		say("No session of this repository yet.\nnext: git tilth run tasks.md, or git tilth run 'describe one task'")
		return
	}
	s, err := w.Store.Find(all[0].ID)
	if err != nil {
		say("%s", err)
		return
	}
	r := w.report(s)
	say("%s", text.Clip(text.VisibleLine(s.ID+"  "+r.Label), 79))
	for _, line := range r.Standing() {
		say("%s", line)
	}
	say("next: %s", r.Next)
	if n := len(all) - 1; n > 0 {
		say("%s of this repository: git tilth list", text.Plural(n, "more session"))
	}
}
