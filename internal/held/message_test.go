package held

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

const (
	ownID   = "20260601-120000-abc123"
	theirID = "20260601-130000-def456"
)

func saying(sessionID, subject string, trailers ...string) gitx.Commit {
	c := gitx.Commit{Subject: subject, Trailers: map[string][]string{trailerSession: {sessionID}}}
	for i := 0; i+1 < len(trailers); i += 2 {
		c.Trailers[trailers[i]] = []string{trailers[i+1]}
	}
	return c
}

func doing(sessionID, task string) gitx.Commit {
	return saying(sessionID, task+": Title of "+task, trailerTask, task)
}

func failing(sessionID, task string) gitx.Commit {
	return saying(sessionID, "FAILED (iter_cap): "+task+" Title", trailerTask, task, trailerFailed, "iter_cap")
}

var author = Author{SessionID: ownID, Tasks: map[string]string{"T-001": "", "T-002": ""}}

func TestPlaceholderIsRecognised(t *testing.T) {
	twice := failing(ownID, "T-002")
	twice.Trailers[trailerSession] = []string{theirID, ownID} // the summary quoted another's trailer
	cases := []authored{
		{"own", failing(ownID, "T-002"), "T-002"},
		{"own, a trailer quoted before the harness's", twice, "T-002"},
		{"another session's", failing(theirID, "T-002"), ""},
		{"own, of a task that was taken out of the plan", failing(ownID, "T-009"), "T-009"},
		{"a finished task", doing(ownID, "T-002"), ""},
		{"the seed", saying(ownID, "seed: 2 task(s) + 0 acceptance test(s)"), ""},
		{"a person's", gitx.Commit{Subject: "FAILED (iter_cap): T-002 Title"}, ""},
	}
	recognise(t, author.Placeholder, cases)
}

func TestDoneCommitIsRecognised(t *testing.T) {
	cases := []authored{
		{"own", doing(ownID, "T-001"), "T-001"},
		{"a placeholder", failing(ownID, "T-001"), ""},
		{"another session's", doing(theirID, "T-001"), ""},
		{"of no task of the plan", doing(ownID, "T-009"), ""},
		{"the seed", saying(ownID, "seed: 2 task(s)"), ""},
		{"a person's with the same subject", gitx.Commit{Subject: "T-001: Title"}, ""},
	}
	recognise(t, author.Done, cases)
}

// authored is a commit with the task that it is recognised as, "" for none.
type authored struct {
	name   string
	commit gitx.Commit
	task   string
}

func recognise(t *testing.T, as func(gitx.Commit) (string, bool), cases []authored) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			task, ok := as(c.commit)
			if ok != (c.task != "") || ok && task != c.task {
				t.Errorf("%q %v, want %q", task, ok, c.task)
			}
		})
	}
}

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
