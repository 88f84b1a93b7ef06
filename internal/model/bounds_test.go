package model

import (
	"strconv"
	"strings"
	"testing"
)

// An answer with too many tool calls or nested too deeply is an empty one.
func TestAnswersAreBounded(t *testing.T) {
	deep := strings.Repeat("[", 20<<20)
	calls := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,{"index":` + strconv.Itoa(i) + `,"id":"c` + strconv.Itoa(i) +
				`","function":{"name":"f","arguments":"{}"}}`)
		}
		return `{"role":"assistant","tool_calls":[` + b.String()[1:] + `]}`
	}
	arguments := func(args string) string {
		return `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"` + args + `"}}]}`
	}
	for _, c := range []struct {
		name, message string
		refused       bool
	}{
		{"1,000 calls", calls(1000), false},
		{"1,001 calls", calls(1001), true},
		{"200,000 calls", calls(200_000), true},
		{"nested arguments", arguments(deep), true},
		{"brackets in a text of the arguments", arguments(`{\"a\":\"` + deep[:2000] + `\"}`), false},
		{"nested message", `{"role":"assistant","content":"a","x":` + deep[:2000] + strings.Repeat("]", 2000) + `}`, true},
		{"nested without an end", `{"role":"assistant","content":"a","x":` + deep, true},
	} {
		_, failure := parseReply([]byte(answerWith(c.message, "stop")))
		if (failure != nil) != c.refused || c.refused && failure.Kind != Empty {
			t.Errorf("%s: %+v", c.name, failure)
		}
	}
	list := []byte(strings.Repeat("[", 60<<20))
	if models, said := readModels(list), errorIn(list); models != nil || said != nil {
		t.Errorf("nested list: %v, %v", models, said)
	}
}
