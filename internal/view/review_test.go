package view

import (
	"strings"
	"testing"
)

// What to run next is whole however narrow the terminal is.
func TestReviewInANarrowTerminal(t *testing.T) {
	const line = "git tilth resume 20260101-000000-abcdef"
	r := &Review{SessionID: "20260101-000000-abcdef", Commands: []Command{{Line: line, Why: "goes on"}}}
	var out strings.Builder
	if err := r.Write(&out, Terminal{Width: 40}, "", false); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "next  "+line+"\n") {
		t.Errorf("%s", out.String())
	}
}
