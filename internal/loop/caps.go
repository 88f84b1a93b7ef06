package loop

import (
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
)

// Usage is what a session has used of its caps, by their names. The wall clock begins anew with each resume.
func Usage(tokens int64, cost float64, elapsed time.Duration) map[string]float64 {
	return map[string]float64{
		config.MaxMinutes: elapsed.Minutes(),
		config.MaxTokens:  float64(tokens),
		config.MaxCost:    cost,
	}
}

// capReached is the session's cap that ends the run. It is asked between tasks only, so that the task at hand finishes.
func (r *run) capReached() (reason, detail string) {
	used := Usage(r.Checkpoint.TokensUsed, r.Checkpoint.Usage.Cost(), r.Now().Sub(r.started))
	for _, c := range r.o.Caps.Reached(used) {
		return c.Stop, c.String()
	}
	return "", ""
}
