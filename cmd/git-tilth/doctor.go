package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/doctor"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) doctorCommand() *cli.Command {
	return p.declare(traits{wish: "begin", rare: true}, &cli.Command{
		Name:  "doctor",
		Usage: "check your setup and print a fix for each problem",
		Description: "Checks settings, git, sandbox, endpoint or agent programs, disk, and the sessions of " +
			"this repository, and tries everything that a run tries before a model is paid. --fix " +
			"applies the fixes that cannot lose anything: it finishes interrupted resets and forks, " +
			"and removes leftover entries and merged branches of deleted sessions.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "fix", Usage: "apply the safe fixes"},
			&cli.BoolFlag{Name: "all", Usage: "check the sessions of all repositories"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			d := &doctor.Doctor{Kit: w.Kit, Dry: p.dryRun, Hint: func(err error) (msg, hint string) {
				_, msg, hint = p.exitFor(err)
				return msg, hint
			}}
			if w.inRepo && !ctx.Bool("all") {
				d.Of = w.belongs
			}
			if isTerminal(p.stderr) && !ctx.Bool("json") {
				d.Trying = func(what string) { w.Tell("trying " + what) }
			}
			rows := w.settingRows()
			d.Check(len(rows))
			if err := p.ctx.Err(); err != nil {
				return err // what a signal kept from being read is no finding
			}
			if ctx.Bool("fix") {
				d.Fix()
			}
			return p.reportChecks(d.Checks, rows, ctx.Bool("json"))
		}),
	})
}

// settingRows returns the settings that differ from their defaults, and effective values of some unset ones.
func (w *repoContext) settingRows() (rows []configRow) {
	for _, v := range w.Config.All() {
		if v.Origin != "default" {
			rows = append(rows, w.configRow(v))
		}
	}
	return rows
}

// reportChecks prints the findings, with the settings that are set.
func (p *process) reportChecks(checks []equip.Check, settings []configRow, asJSON bool) error {
	findings, safe := 0, 0
	for _, c := range checks {
		if c.Status == equip.Finding {
			findings++
			if c.Safe {
				safe++
			}
		}
	}
	if asJSON {
		all := map[string]any{"ok": findings == 0, "checks": checks, "settings": settings}
		if err := p.printJSON(all); err != nil {
			return err
		}
	} else {
		p.printChecks(checks, settings)
	}
	if findings == 0 {
		return nil
	}
	err := &exitError{code: exitNo, msg: text.Plural(findings, "finding")}
	if safe > 0 {
		err.hint = fmt.Sprintf("git tilth doctor --fix fixes %d of them", safe)
	}
	return err
}

func (p *process) printChecks(checks []equip.Check, settings []configRow) {
	for i, c := range checks {
		about := strings.TrimSpace(strings.Join(append([]string{c.Name}, c.Also...), ", ") + " " + c.Session)
		p.printf("%-7s  %s: %s\n", c.Status, about, text.Visible(text.OneLine(c.Detail)))
		again := i+1 < len(checks) && checks[i+1].Command == c.Command // the next one is mended by the same
		if c.Status == equip.Finding && !again {
			for line := range strings.SplitSeq(c.Command, "\n") {
				p.printf("         %s\n", text.Visible(line))
			}
		}
		if c.Name == "settings" {
			for _, r := range settings {
				p.printf("         %s = %s (%s)\n", r.Name, text.Visible(text.OneLine(fmt.Sprint(r.Value))), r.Origin)
			}
		}
	}
}
