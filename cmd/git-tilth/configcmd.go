package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) configCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", rare: true, looks: true}, &cli.Command{
		Name:   "config",
		Usage:  "show every setting, its value and its origin",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print a JSON array"}},
		Action: p.in(func(ctx *cli.Context, w *repoContext) error { return w.showConfig(ctx.Bool("json")) }),
	})
}

// configRow is one setting in the output of `config --json`.
type configRow struct {
	Name   string `json:"name"`
	Value  any    `json:"value"` // a string; a list of strings for a repeatable setting
	Origin string `json:"origin"`
}

func (w *repoContext) showConfig(asJSON bool) error {
	var rows []configRow
	for _, v := range w.Config.All() {
		rows = append(rows, w.configRow(v))
	}
	agents := w.Config.Agents()
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		for _, key := range slices.Sorted(maps.Keys(agents[name])) {
			rows = append(rows, configRow{agent.Key(name, key), agents[name][key], "git config"})
		}
	}
	if dropped := agent.Dropped(w.p.environ, w.Config.List("tilth.sandboxEnv")); len(dropped) > 0 {
		rows = append(rows, configRow{"(not in a run)", dropped,
			"environment: they look like keys; keep them with tilth.sandboxEnv or tilth.agent.<name>.env"})
	}
	if w.Config.Text("tilth.sandbox") != "off" {
		for _, o := range w.Box().Open {
			rows = append(rows, configRow{"(open in a run)", o.Path, o.Why})
		}
	}
	if asJSON {
		return w.p.printJSON(rows)
	}
	// A long value widens only its own row.
	for _, r := range rows {
		value := fmt.Sprint(r.Value)
		if list, ok := r.Value.([]string); ok {
			value = strings.Join(list, "; ")
		}
		w.p.printf("%-30s  %-22s  %s\n", text.VisibleLine(r.Name), text.VisibleLine(value), text.VisibleLine(r.Origin))
	}
	return nil
}

// configRow fills in effective values for unset settings: the sessions root, and the agent with the reason.
func (w *repoContext) configRow(v config.Value) configRow {
	row := configRow{v.Name, v.Value, v.Origin}
	if v.Values != nil {
		row.Value = v.Values
	}
	switch v.Name {
	case "tilth.sessionsDir":
		row.Value = w.Store.Root
		if w.p.getenv("TILTH_SESSIONS_DIR") == "" && w.p.getenv("TILTH_HOME") != "" {
			row.Origin = "environment TILTH_HOME"
		}
	case "tilth.setup":
		if len(v.Values) == 0 {
			row.Value, row.Origin = w.DetectedSetup(), "detected"
		}
	case "tilth.validator":
		if len(v.Values) == 0 {
			row.Value, row.Origin = w.DetectedValidators(), "detected"
		}
	case "tilth.worker.agent", "tilth.evaluator.agent", "tilth.prep.agent":
		if v.Value != "" {
			break
		}
		role := config.Role(strings.Split(v.Name, ".")[1])
		c, err := w.ChooseAgent(role)
		switch {
		case err != nil:
			row.Value, row.Origin = "", "none: no endpoint is configured and no agent program is on PATH"
		case c.Program != nil:
			row.Value, row.Origin = c.Program.Name, c.Why
		default:
			row.Value, row.Origin = "builtin", c.Why
		}
	}
	return row
}
