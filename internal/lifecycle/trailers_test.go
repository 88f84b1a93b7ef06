package lifecycle

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// TestCommitsOfTheSession: trailers say which task a commit of the session is of, and whether it is a placeholder.
func TestCommitsOfTheSession(t *testing.T) {
	const other = "20260601-130000-def456"
	quoted := failedBy(testID, "T-002")
	quoted.Trailers["Tilth-Session"] = []string{other, testID} // the summary quoted another's trailer
	s := State{SessionID: testID, Tasks: tasks("", "")}
	for name, c := range map[string]struct {
		commit                gitx.Commit
		placeholder, finished string
	}{
		"a finished task":                  {doneBy(testID, "T-001"), "", "T-001"},
		"one that is not in the plan":      {doneBy(testID, "T-009"), "", ""},
		"a placeholder":                    {failedBy(testID, "T-002"), "T-002", ""},
		"one of a task not in the plan":    {failedBy(testID, "T-009"), "T-009", ""},
		"one that quotes another session":  {quoted, "T-002", ""},
		"another session's":                {doneBy(other, "T-001"), "", ""},
		"another session's placeholder":    {failedBy(other, "T-001"), "", ""},
		"the seed":                         {by(testID, "seed: 2 task(s)"), "", ""},
		"a person's with a task's subject": {gitx.Commit{Subject: "T-001: Title"}, "", ""},
		"a person's that says it failed":   {gitx.Commit{Subject: "FAILED (iter_cap): T-002 Title"}, "", ""},
	} {
		if p, f := s.placeholder(c.commit), s.finished(c.commit); p != c.placeholder || f != c.finished {
			t.Errorf("%s: placeholder of %q, finished %q", name, p, f)
		}
	}
}
