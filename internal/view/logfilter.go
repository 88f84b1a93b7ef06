package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// CheckLogFilter refuses a filter that can never match; its error names the existing values. Values in the record are
// always accepted.
func CheckLogFilter(s *session.Session, o LogOptions) error {
	types := record.Types()
	if o.Type != "" && !slices.Contains(types, o.Type) && !recordHas(s, LogOptions{Type: o.Type}) {
		return fmt.Errorf("unknown event type %q; the types are %s",
			o.Type, strings.Join(types, ", "))
	}
	if o.Task == "" {
		return nil
	}
	tasks, err := s.Tasks()
	if err != nil {
		return nil // which tasks it has, or will have, is not known
	}
	var ids []string
	for _, t := range tasks {
		if t.ID == o.Task {
			return nil
		}
		ids = append(ids, t.ID)
	}
	if recordHas(s, LogOptions{Task: o.Task}) {
		return nil
	}
	return fmt.Errorf("the session has no task %q; its tasks are %s", o.Task, strings.Join(ids, ", "))
}

// recordHas reports whether an event passes a filter. Without such an event it reads the whole record.
func recordHas(s *session.Session, o LogOptions) bool {
	var found strings.Builder
	o.Tail = 1
	_, _ = Log(context.Background(), &found, s, o) // an unreadable part of a record has no event
	return found.Len() > 0
}
