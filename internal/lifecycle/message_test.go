package lifecycle

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

func authorOf(foreign bool) author {
	return author{sessionID: testID, foreign: foreign, tasks: map[string]string{"T-001": "", "T-002": ""}}
}

func TestPlaceholderIsRecognised(t *testing.T) {
	twice := failedBy(testID, "T-002")
	twice.Trailers[trailerSession] = []string{otherID, testID} // the summary quoted another's trailer
	cases := []struct {
		name    string
		foreign bool
		commit  gitx.Commit
		task    string // "" for: is none
	}{
		{"own", false, failedBy(testID, "T-002"), "T-002"},
		{"own, in a session that Python Tilth began", true, failedBy(testID, "T-002"), "T-002"},
		{"own, a trailer quoted before the harness's", false, twice, "T-002"},
		{"another session's", false, failedBy(otherID, "T-002"), ""},
		{"another session's, in a foreign session", true, failedBy(otherID, "T-002"), ""},
		{"own, of a task that was taken out of the plan", false, failedBy(testID, "T-009"), "T-009"},
		{"a finished task", false, doneBy(testID, "T-002"), ""},
		{"the seed", false, by(testID, "seed: 2 task(s) + 0 acceptance test(s)"), ""},
		{"a person's", false, plain("FAILED (iter_cap): T-002 Title"), ""},
		{"a person's, Python Tilth's form", false, plain("T-002: FAILED (iter_cap): Title"), ""},
		{"Python Tilth's", true, plain("T-002: FAILED (iter_cap): Title"), "T-002"},
		{"Python Tilth's without a title", true, plain("T-002: FAILED (no_case)"), "T-002"},
		{"Python Tilth's other form", true, plain("FAILED (evaluator_cap): T-001 Title"), "T-001"},
		{"of no task of the plan", true, plain("T-009: FAILED (iter_cap): Title"), ""},
		{"no reason of a task", true, plain("T-002: FAILED (flaky): Title"), ""},
		{"a person's in a foreign session", true, plain("FAILED (badly): need to look at T-002"), ""},
		{"a person's with a longer id", true, plain("FAILED (iter_cap): T-0021 Title"), ""},
		{"in the middle of a subject", true, plain("Revert T-002: FAILED (iter_cap): Title"), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			task, ok := authorOf(c.foreign).placeholder(c.commit)
			if ok != (c.task != "") || ok && task != c.task {
				t.Errorf("%q %v, want %q", task, ok, c.task)
			}
		})
	}
}

func TestDoneCommitIsRecognised(t *testing.T) {
	cases := []struct {
		name    string
		foreign bool
		commit  gitx.Commit
		task    string
	}{
		{"own", false, doneBy(testID, "T-001"), "T-001"},
		{"a placeholder", false, failedBy(testID, "T-001"), ""},
		{"another session's", false, doneBy(otherID, "T-001"), ""},
		{"of no task of the plan", false, doneBy(testID, "T-009"), ""},
		{"the seed", false, by(testID, "seed: 2 task(s)"), ""},
		{"a person's with the same subject", false, plain("T-001: Title"), ""},
		{"Python Tilth's", true, plain("T-001: Title"), "T-001"},
		{"Python Tilth's placeholder", true, plain("T-001: FAILED (iter_cap): Title"), ""},
		{"Python Tilth's seed", true, plain("seed: 2 task(s) + 2 acceptance test(s)"), ""},
		{"a person's beside Python Tilth's", true, plain("T-009: Title"), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			task, ok := authorOf(c.foreign).done(c.commit)
			if ok != (c.task != "") || ok && task != c.task {
				t.Errorf("%q %v, want %q", task, ok, c.task)
			}
		})
	}
}

// A commit's body is the worker's, and git shows it in a terminal.
func TestTaskMessageShowsControlCharacters(t *testing.T) {
	task := session.Task{ID: "T-001", Title: "a\x1b[2J\nb"}
	got := taskMessage("id", task.ID, subjectOf("", task), "\x1b]0;title\x07 cut\roff a\u202eb\n\tkept",
		"Tilth-Record: 1 00", false)
	want := "T-001: a␛[2J b\n\n␛]0;title␇ cut␍off a<U+202E>b\n\tkept\n\nTilth-Session: id\nTilth-Task: T-001\n" +
		"Tilth-Record: 1 00\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A worker's summary closes, signs off and skips nothing, wherever its lines are broken.
func TestInertBody(t *testing.T) {
	const body = "It adds sixty characters and some more, so that the line breaks here. Signed-off-by: x\n" +
		"[skip ci] fixes #1"
	const want = "s\n\nIt adds sixty characters and some more, so that the line breaks here.\n- Signed-off-by: x\n" +
		"(skip ci) fixes # 1\n\nA: b\n"
	if got := message("s", inertBody(body), "A: b"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
