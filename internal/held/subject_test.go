package held

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

func TestSubject(t *testing.T) {
	plain := session.Task{ID: "T-007", Title: "Add a\nfield"}
	full := session.Task{ID: "T-007", Title: "Add {id}", Type: "fix", Scope: "core"}
	for _, c := range []struct {
		form string
		task session.Task
		want string
	}{
		{"", plain, "Add a field"},
		{"{id}: {title}", plain, "T-007: Add a field"},
		{"{type}({scope}): {title}", plain, "feat: Add a field"},
		{"{type}({scope}): {title}", full, "fix(core): Add {id}"},
		{"{type}: {title:lower}", plain, "feat: add a field"},
		{"{title:lower}", session.Task{Title: "HTTP is spoken."}, "http is spoken"},
		{"{title:lower}", session.Task{}, ""},
	} {
		if got := SubjectOf(c.form, c.task); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
