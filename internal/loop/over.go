package loop

import "github.com/git-tilth/git-tilth/internal/config"

// Over is a total of a session that has reached its cap: a resume with the same cap stops at once.
type Over struct {
	Reason      string  // TokenCap or CostCap
	Used, Limit float64 // tokens, or dollars
}

// OverCaps are the totals that have reached their caps. The wall clock has no total: it begins anew with each resume.
func OverCaps(c config.Caps, tokens int64, cost float64) []Over {
	var out []Over
	if c.Tokens > 0 && tokens >= c.Tokens {
		out = append(out, Over{TokenCap, float64(tokens), float64(c.Tokens)})
	}
	if c.Cost > 0 && cost >= c.Cost {
		out = append(out, Over{CostCap, cost, c.Cost})
	}
	return out
}
