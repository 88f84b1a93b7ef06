package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/text"
)

func FuzzFit(f *testing.F) {
	f.Add("\x1b]0;title\x07 \u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got, w := Fit(text.VisibleLine(s), 12), 12; Width(got) > w {
			t.Fatalf("Fit(%q) is %d columns wide", got, Width(got))
		}
	})
}

func TestHuman(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 12345: "12.3k", 99_949: "99.9k",
		99_950: "100k", 412_873: "413k", 999_499: "999k", 999_500: "1M", 1_240_000: "1.24M"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	for v, want := range map[float64]string{0: "$0.00", 0.0031: "$0.0031", 0.42: "$0.42", 12.345: "$12.35"} {
		if got := Money(v); got != want {
			t.Errorf("Money(%v) = %s, want %s", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0s", 42 * time.Second: "42s", 12 * time.Minute: "12m",
		3*time.Hour + 5*time.Minute: "3h 5m", 48 * time.Hour: "2d", 52 * time.Hour: "2d 4h"} {
		if got := Span(d); got != want {
			t.Errorf("Span(%s) = %s, want %s", d, got, want)
		}
	}
	for used, want := range map[float64]string{0: "0%", 99.6: "99%", 100: "100%", 130: "130%"} {
		if got := percent(used, 100); got != want {
			t.Errorf("percent(%v) = %s, want %s", used, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	fill := func(term Terminal) string {
		tab := table{term: term, columns: []column{{name: "NAME"}, {name: "N", right: true}, {name: "NONE"},
			{name: "TEXT", grow: true}}}
		tab.add(cell{"a", bold}, cell{"1", plain}, cell{"", plain}, cell{"日本語 is wide, and this line is long", plain})
		tab.add(cell{"long name", plain}, cell{"1000", plain}, cell{"", plain}, cell{"with\ttab and \x1b[2J", plain})
		tab.add(cell{"b", plain}, cell{"", plain}, cell{"", plain}, cell{"", plain})
		var b bytes.Buffer
		if err := tab.write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := "a\t1\t\t日本語 is wide, and this line is long\nlong name\t1000\t\twith tab and ␛[2J\nb\t\t\t\n"
	if got := fill(Terminal{}); got != want {
		t.Errorf("in a pipe:\n%s\nwant\n%s", got, want)
	}
	want = "NAME          N  TEXT\na             1  日本語 is wide, an…\nlong name  1000  with tab and ␛[2J\nb\n"
	if got := fill(Terminal{TTY: true, Width: 36}); got != want {
		t.Errorf("on a terminal:\n%s\nwant\n%s", got, want)
	}
	if got := fill(Terminal{TTY: true, Color: true}); !strings.Contains(got, "\x1b[1ma\x1b[0m") ||
		strings.Contains(got, "\x1b[2J") {
		t.Errorf("in colour: %q", got)
	}
}
