package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// CheckLogFilter refuses an unknown type and a task that the plan lacks. Its error names the existing values.
func CheckLogFilter(s *session.Session, o LogOptions) error {
	if types := record.Types(); o.Type != "" && !slices.Contains(types, o.Type) {
		return fmt.Errorf("unknown event type %q; the types are %s", o.Type, strings.Join(types, ", "))
	}
	tasks, err := s.Tasks()
	if o.Task == "" || err != nil || session.IndexOf(tasks, o.Task) >= 0 {
		return nil
	}
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return fmt.Errorf("the session has no task %q; its tasks are %s", o.Task, strings.Join(ids, ", "))
}
