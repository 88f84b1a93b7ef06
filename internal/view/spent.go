package view

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
)

// Spent returns the cost, the tokens and the time in a line.
func (r *Report) Spent() string {
	cost, tokens := r.costWords()
	if tokens == notKnown {
		return joined(", ", "cost and tokens not known", r.span())
	}
	cached := ""
	if r.TokensCached > 0 {
		cached = "and " + Count(r.TokensCached) + " read from the provider's cache"
	}
	return joined(", ", "cost "+cost, tokens+" tokens", cached, r.span())
}

const notKnown = "not known"

// costWords returns cost and tokens. An agent program may report neither.
func (r *Report) costWords() (cost, tokens string) {
	cost, tokens = Money(r.Cost), Count(r.TokensUsed)
	if r.Cost == 0 && r.TokensUsed > 0 {
		return notKnown, tokens
	}
	worked := func(t ReportTask) bool { return t.Iterations > 0 }
	if r.TokensUsed == 0 && r.Cost == 0 && slices.ContainsFunc(r.Tasks, worked) {
		return notKnown, notKnown
	}
	return cost, tokens
}

// span returns the start and the end of the run, in local time.
func (r *Report) span() string {
	from, to := record.ParseTime(r.Begun), record.ParseTime(r.Ended)
	if from.IsZero() || to.IsZero() {
		return ""
	}
	clock := func(t time.Time) string { return t.Local().Format("Jan 2 15:04") }
	when, until := clock(from), clock(to)
	if day := from.Local().Format("Jan 2 "); when != until {
		when += " to " + strings.TrimPrefix(until, day)
	}
	return when + " (" + Span(to.Sub(from)) + ")"
}

// waited returns the time of waits of a minute and more in a line, "" for none.
func (r *Report) waited() string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(r.Waited)) {
		if d := time.Duration(r.Waited[reason] * float64(time.Second)); d >= time.Minute {
			parts = append(parts, Span(d)+" for "+waits[reason])
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "waited " + strings.Join(parts, ", ")
}

// waits are the reasons of waits in words.
var waits = map[string]string{record.Outage: "an endpoint or agent program", record.UsageLimit: "a usage limit"}
