package message

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// DefaultSubject is the form of the subject of a task's commit, where none is set.
const DefaultSubject = "{id}: {title}"

// SubjectOf fills in the form of a subject. A scope in parentheses that the task does not have is left out with them.
func SubjectOf(form string, t session.Task) string {
	form = cmp.Or(form, DefaultSubject)
	if t.Scope == "" {
		form = strings.ReplaceAll(form, "({scope})", "")
	}
	filled := strings.NewReplacer("{id}", t.ID, "{title}", t.Title, "{title:lower}", lowered(t.Title), "{type}",
		cmp.Or(t.Type, "feat"), "{scope}", t.Scope).Replace(form)
	return text.VisibleLine(text.OneLine(filled))
}

// lowered is a title as it goes on behind a colon: its first word without a capital, no full stop at its end.
func lowered(title string) string {
	title = strings.TrimSuffix(strings.TrimSpace(title), ".")
	first, rest, _ := strings.Cut(title, " ")
	_, size := utf8.DecodeRuneInString(first)
	if second, _ := utf8.DecodeRuneInString(first[size:]); unicode.IsUpper(second) {
		size = len(first) // an abbreviation
	}
	return strings.TrimSpace(strings.ToLower(first[:size]) + first[size:] + " " + rest)
}
