package lifecycle

import (
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

func TestSameRefusal(t *testing.T) {
	long := strings.Repeat("line of a linter\n", 200)
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"subject must begin with feat", "subject must begin with feat\n", true},
		{"done in 0.31s, 12 files", "done in 4.12s, 9 files", true},
		{"a.go is not formatted", "b.go is not formatted", false},
		{long + "and more", long + "\n[... 40 more characters]", true},
		{"short", "short, and more", false},
	} {
		if got := SameRefusal(c.a, c.b); got != c.same {
			t.Errorf("%.40q, %.40q: %v", c.a, c.b, got)
		}
	}
}

func TestSubject(t *testing.T) {
	plain := session.Task{ID: "T-007", Title: "Add a\nfield"}
	full := session.Task{ID: "T-007", Title: "Add {id}", Type: "fix", Scope: "core"}
	for _, c := range []struct {
		form string
		task session.Task
		want string
	}{
		{"", plain, "T-007: Add a field"},
		{"{type}({scope}): {title}", plain, "feat: Add a field"},
		{"{type}({scope}): {title}", full, "fix(core): Add {id}"},
	} {
		if got := subjectOf(c.form, c.task); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
