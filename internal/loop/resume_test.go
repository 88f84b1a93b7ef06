package loop

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/config"
)

func TestResumeCommand(t *testing.T) {
	for _, c := range []struct {
		caps   config.Caps
		tokens int64
		cost   float64
		want   string
	}{
		{config.Caps{}, 5, 5, "git tilth resume ID"},
		{config.Caps{config.MaxTokens: 2_000_000, config.MaxCost: 10}, 1_999_999, 9.99, "git tilth resume ID"},
		{config.Caps{config.MaxTokens: 2_000_000}, 2_000_000, 0, "git tilth resume --max-tokens 4000000 ID"},
		{config.Caps{config.MaxTokens: 2_000_000}, 2_900_000, 0, "git tilth resume --max-tokens 4000000 ID"},
		{config.Caps{config.MaxTokens: 2_000_000}, 3_900_000, 0, "git tilth resume --max-tokens 6000000 ID"},
		{config.Caps{config.MaxTokens: 3}, 1 << 40, 0, "git tilth resume --max-tokens 1099511627778 ID"},
		{config.Caps{config.MaxTokens: 100, config.MaxCost: 0.1}, 120, 0.2,
			"git tilth resume --max-tokens 200 --max-cost 0.3 ID"},
	} {
		if got := Resume("ID", c.caps.Reached(Usage(c.tokens, c.cost, 0))); got != c.want {
			t.Errorf("%v %d %g: %s, want %s", c.caps, c.tokens, c.cost, got, c.want)
		}
	}
}
