package held

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// A commit's body is the worker's, and git shows it in a terminal.
func TestTaskMessageShowsControlCharacters(t *testing.T) {
	task := session.Task{ID: "T-001", Title: "a\x1b[2J\nb"}
	const body = "\x1b]0;title\x07 cut\roff a\u202eb\n\tkept"
	got := TaskMessage("id", task.ID, SubjectOf("", task), Wrapped(body), "1 00", false)
	want := "a␛[2J b\n\n␛]0;title␇ cut␍off a<U+202E>b\n\tkept\n\nTilth-Session: id\nTilth-Task: T-001\n" +
		"Tilth-Record: 1 00\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A worker's summary closes, signs off and skips nothing, and is otherwise as the worker wrote it.
func TestQuoted(t *testing.T) {
	const body = "Ran pytest: 2 passed. It adds sixty characters and more, so that the line breaks here. " +
		"Signed-off-by: x\n\nBREAKING CHANGE: none\n/merge\n[skip ci] fixes #1\n\nRefs #7\n" +
		"https://example.org/an-address/that-is-much-longer/than-any-line-of-a/message-is?and=more"
	const want = "s\n\n> Ran pytest: 2 passed. It adds sixty characters and more, so that the\n" +
		"> line breaks here. Signed-off-by: x\n>\n> BREAKING CHANGE: none\n> /merge\n> [ skip ci] fixes # 1\n>\n" +
		"> Refs #7\n> https://example.org/an-address/that-is-much-longer/than-any-line-of-a/message-is?and=more\n\n" +
		"A: b\n"
	if got := message("s", Quoted(body), "A: b"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCompleted(t *testing.T) {
	summary := ""
	for _, later := range []string{"Adds a", "Adds a parser.\n", "Fixes the tests.", "Adds a parser.", " "} {
		summary = Completed(summary, later)
	}
	if want := "Adds a parser.\n\nFixes the tests."; summary != want {
		t.Errorf("%q, want %q", summary, want)
	}
}
