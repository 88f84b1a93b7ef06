package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) doctorCommand() *cli.Command {
	return p.declare(traits{wish: "begin", rare: true}, &cli.Command{
		Name:  "doctor",
		Usage: "check your setup and print a fix for each problem",
		Description: "Checks settings, git, sandbox, endpoint or agent programs, disk, and the sessions of " +
			"this repository, and runs every check that a run makes before its first model call. --fix " +
			"applies the fixes that cannot lose anything: it finishes interrupted resets and forks, " +
			"and removes git's worktree entries and the merged branches of deleted sessions.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "fix", Usage: "apply the safe fixes"},
			&cli.BoolFlag{Name: "all", Usage: "check the sessions of all repositories"},
			&cli.StringFlag{Name: "flaky", Usage: "run the test `TEST` alone 20 times and print how often it failed"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object"},
		},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error {
			d := checkup{repoContext: w, all: ctx.Bool("all"), json: ctx.Bool("json")}
			if test := ctx.String("flaky"); test != "" {
				return d.reportFlaky(test)
			}
			rows := w.settingRows()
			set := found("settings", record.CheckOK, "", "%d of %d are set", len(rows), len(w.Config.All()))
			checks, err := loop.RunChecks(p.ctx, d.checks(), nil)
			if err != nil {
				return err // a signal interrupted the check
			}
			if ctx.Bool("fix") && !p.dryRun {
				applyFixes(p.ctx, checks)
			}
			return p.reportChecks(append([]record.Check{set}, checks...), rows, d.json)
		}),
	})
}

// applyFixes applies the safe fixes.
func applyFixes(ctx context.Context, checks []record.Check) {
	for i, c := range checks {
		if !c.Safe {
			continue
		}
		if err := c.Fix(ctx); err != nil {
			checks[i].Detail += "; the fix failed: " + err.Error()
		} else {
			checks[i].Status = record.CheckMended
		}
	}
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
func (p *process) reportChecks(checks []record.Check, settings []configRow, asJSON bool) error {
	findings, safe := 0, 0
	for _, c := range checks {
		if c.Status == record.CheckFinding {
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

// printChecks prints the checks, with the settings that are set.
func (p *process) printChecks(checks []record.Check, settings []configRow) {
	term := p.terminal(false)
	for i, c := range checks {
		about := strings.TrimSpace(strings.Join(append([]string{c.Name}, c.Also...), ", ") + " " + c.Session)
		command := c.Command
		if i+1 < len(checks) && checks[i+1].Command == c.Command || c.Status != record.CheckFinding {
			command = "" // the same command fixes the next finding
		}
		p.printf("%s", term.Finding(fmt.Sprintf("%-7s  ", c.Status), about+": "+c.Detail, command))
		if c.Name == "settings" {
			for _, r := range settings {
				p.printf("%s", term.Finding("         ", fmt.Sprintf("%s = %v (%s)", r.Name, r.Value, r.Origin), ""))
			}
		}
	}
}
