package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

const defaultSubject = "{id}: {title}"

// usualSubjects are the forms of subjects that commit-msg hooks are written for.
var usualSubjects = []string{defaultSubject, "{type}: {title:lower}", "{type}({scope}): {title:lower}",
	"{type}: {title}", "{title}", "{id} {title}", "[{id}] {title}"}

// subjectOf fills in the form of a subject. A scope in parentheses that the task does not have is left out with them.
func subjectOf(form string, t session.Task) string {
	form = cmp.Or(form, defaultSubject)
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

// SubjectSetting is the command that sets a form of subjects.
func SubjectSetting(form string) string {
	return "git config tilth.commitSubject " + text.ShellQuote(form)
}

// TrySubjects shows the message that a task's commit would have to the repository's commit-msg hook. refused is what it
// says against the set form, nil where it takes it; passes is then a usual form that it takes, "" for none.
func (h *Handle) TrySubjects(ctx context.Context, wt gitx.Worktree, t session.Task, summary string) (
	refused *HookRefusedError, passes string, err error,
) {
	_, has, err := h.Git.Hooks(ctx, wt)
	if err != nil || !has("commit-msg") {
		return nil, "", err
	}
	set := cmp.Or(h.CommitSubject, defaultSubject)
	forms := append([]string{set}, slices.DeleteFunc(slices.Clone(usualSubjects), func(f string) bool {
		return f == set || t.Scope == "" && strings.Contains(f, "{scope}")
	})...)
	for i, form := range forms {
		mark := trailer(trailerRecord, "1000000 "+strings.Repeat("0", 64))
		msg := taskMessage(h.S.ID, t.ID, subjectOf(form, t), h.Redact.String(summary), mark, false)
		says, err := h.showMessage(ctx, wt, msg)
		switch {
		case err != nil || says == nil && i == 0:
			return nil, "", err
		case says == nil:
			return refused, form, nil
		case i == 0:
			refused = says
		}
	}
	return refused, "", nil
}

// showMessage runs the commit-msg hook over a message; what it makes of it is thrown away.
func (h *Handle) showMessage(ctx context.Context, wt gitx.Worktree, message string) (*HookRefusedError, error) {
	try := h.Git.TryMessage
	if wt.Branch == "" { // the user's checkout
		try = h.Git.TryMessageOver
	}
	p, err := try(ctx, wt, message, CommittingVar+"="+h.S.Branch())
	if ctx.Err() == nil && gitx.ExitCode(err) > 0 {
		return &HookRefusedError{p.Said}, nil
	}
	return nil, err
}
