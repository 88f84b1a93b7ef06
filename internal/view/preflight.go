package view

import (
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
)

// Preflight says which validators were found, where from, and which of them can run.
func Preflight(e *record.Preflight) string {
	var able, others []string
	for _, c := range e.Checks {
		switch {
		case c.Unable != "":
			others = append(others, fmt.Sprintf("%s (%s) cannot start: %s", c.Name, c.From, c.Unable))
		case c.Skipped != "":
			others = append(others, fmt.Sprintf("%s is not run: %s", c.Name, c.Skipped))
		default:
			able = append(able, fmt.Sprintf("%s (%s)", c.Name, c.From))
		}
	}
	if len(able) > 0 {
		others = append([]string{strings.Join(able, ", ") + " can run"}, others...)
	}
	if len(others) == 0 {
		others = []string{"no validators: tilth.validator names none, and none was detected"}
	}
	return strings.Join(others, "; ")
}
