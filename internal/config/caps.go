package config

import (
	"fmt"
	"slices"
)

// Names of the caps, in the table, in Caps and in the limits that session_start records.
const (
	MaxIterations     = "max_iterations_per_task"
	MaxEvaluatorCalls = "max_evaluator_calls_per_task"
	MaxMinutes        = "max_wall_clock_minutes"
	MaxTokens         = "max_tokens"
	MaxCost           = "max_cost"
)

// Cap is a row of the table of caps. To add a cap, add a row and enforce it in package loop: a session's cap with a
// meter (loop.Usage), a task's cap in the code that counts.
type Cap struct {
	Name    string
	Setting Setting
	Stop    string // the reason of the stop, or of the task's failure (record.Reasons)
	PerTask bool   // this cap fails a task; the others stop the run
	Label   string // the counted thing, for display
	Detail  string // the stop's detail, a format for the usage and the cap
}

// caps is the table.
var caps = []Cap{
	{
		Name: MaxIterations, Stop: "iter_cap", PerTask: true, Label: "last task's iterations",
		Setting: Setting{Name: "tilth.maxIterationsPerTask", Flag: "max-iterations", Default: "32", kind: kindPositive,
			Help: "model calls, or turns of an agent program, per task"},
	},
	{
		Name: MaxEvaluatorCalls, Stop: "evaluator_cap", PerTask: true,
		Setting: Setting{Name: "tilth.maxEvaluatorCallsPerTask", Flag: "max-evaluator-calls", Default: "0",
			kind: kindCount, Help: "reviews per task; 0 is no limit"},
	},
	{
		Name: MaxMinutes, Stop: "wall_clock", Label: "time", Detail: "%.1f of %g minutes",
		Setting: Setting{Name: "tilth.maxWallClockMinutes", Flag: "max-minutes", Default: "480", kind: kindNumber,
			Help: "minutes per run or resume (1.5 is valid), not counting waits for usage limits; 0 is no limit"},
	},
	{
		Name: MaxTokens, Stop: "token_cap", Label: "tokens", Detail: "%.0f of %.0f tokens",
		Setting: Setting{Name: "tilth.maxTokens", Flag: "max-tokens", Default: "10000000", kind: kindCount,
			Help: "tokens per session, not counting cached input; 0 is no limit"},
	},
	{
		Name: MaxCost, Stop: "cost_cap", Label: "cost", Detail: "$%.4f of $%g",
		Setting: Setting{Name: "tilth.maxCost", Flag: "max-cost", Default: "0", kind: kindNumber,
			Help: "dollars per session; 0 is no limit"},
	},
}

func capSettings() []Setting {
	var rows []Setting
	for _, c := range caps {
		c.Setting.judges = true
		rows = append(rows, c.Setting)
	}
	return rows
}

// Caps are the limits of a run by their names. 0 is no limit, except for MaxIterations.
type Caps map[string]float64

// Caps returns the limits as configured.
func (c *Config) Caps() Caps {
	limits := Caps{}
	for _, row := range caps {
		if row.Setting.kind == kindNumber {
			limits[row.Name] = c.Number(row.Setting.Name)
		} else {
			limits[row.Name] = float64(c.Count(row.Setting.Name))
		}
	}
	return limits
}

// Reached is a cap that is used up.
type Reached struct {
	Cap
	Used, Limit float64
}

// String returns the limit with its numbers.
func (r Reached) String() string { return fmt.Sprintf(r.Detail, r.Used, r.Limit) }

// Reached returns the session's caps that are used up, in the table's order. used has the amounts by cap name.
func (c Caps) Reached(used map[string]float64) []Reached {
	var out []Reached
	for _, row := range caps {
		if n, ok := used[row.Name]; ok && !row.PerTask && c[row.Name] > 0 && n >= c[row.Name] {
			out = append(out, Reached{row, n, c[row.Name]})
		}
	}
	return out
}

// AllCaps returns the table of caps.
func AllCaps() []Cap { return slices.Clone(caps) }
