package held

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The trailers that mark a commit of a session.
const (
	trailerSession = "Tilth-Session"
	trailerTask    = "Tilth-Task"
	trailerFailed  = "Tilth-Failed"
	trailerRecord  = "Tilth-Record"
	trailerBy      = "Tilth-By" // "person" if the user marked the task done
)

// Quoted returns a worker's summary as the body of a commit message. Each line begins with "> ", so no line
// of the summary can act as a trailer or a command.
func Quoted(summary string) string {
	lines := strings.Split(text.Wrap(text.Inert(text.Visible(strings.TrimSpace(summary))), bodyWidth-len("> ")), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " \t")
	}
	return strings.Join(lines, "\n")
}

// Completed returns the summary of a first hand-in followed by a later one, or the summary that contains the other.
func Completed(summary, later string) string {
	later = strings.TrimSpace(later)
	switch {
	case strings.Contains(summary, later):
		return summary
	case strings.Contains(later, summary):
		return later
	}
	return strings.TrimSpace(summary + "\n\n" + later)
}

// TaskMessage returns the commit message of an accepted task, with additional lines at the end of its trailers. person
// is true if the user marked it done.
func TaskMessage(sessionID, task, subject, body, mark string, person bool, more ...string) string {
	by := ""
	if person {
		by = "person"
	}
	return message(subject, body, append([]string{trailer(trailerSession, sessionID), trailer(trailerTask, task),
		trailer(trailerBy, by), trailer(trailerRecord, mark)}, more...)...)
}

// SignedOff returns the user's sign-off line, or "" without tilth.signOff or without an identity.
func (d Deps) SignedOff(ctx context.Context, common string) string {
	if !d.SignOff {
		return ""
	}
	ident, err := d.Git.Line(ctx, gitx.InRepo(common, "var", "GIT_COMMITTER_IDENT"))
	end := strings.LastIndex(ident, ">")
	if err != nil || end < 0 {
		return ""
	}
	return trailer("Signed-off-by", ident[:end+1])
}

// PlaceholderMessage returns the message of the commit with a failed task's partial work.
func PlaceholderMessage(sessionID string, t session.Task, reason, mark string) string {
	return message(fmt.Sprintf("FAILED (%s): %s %s", reason, t.ID, text.VisibleLine(text.OneLine(t.Title))),
		"Partial work. git tilth resume takes this commit back into the index.", trailer(trailerSession, sessionID),
		trailer(trailerTask, t.ID), trailer(trailerFailed, reason), trailer(trailerRecord, mark))
}

// SeedSubject returns the subject of the commit that anchors a session.
func SeedSubject(tasks, tests int) string {
	return fmt.Sprintf("seed: %d task(s) + %d acceptance test(s)", tasks, tests)
}

// SeedMessage returns the message of the commit that anchors a session.
func SeedMessage(sessionID string, tasks, tests int, mark, signedOff string) string {
	return message(SeedSubject(tasks, tests), "", trailer(trailerSession, sessionID), trailer(trailerRecord, mark),
		signedOff)
}

// WithRecord replaces the mark of the record in the body of a message.
func WithRecord(body, mark string) string {
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, trailerRecord+": ") {
			lines[i] = trailer(trailerRecord, mark)
		}
	}
	return strings.Join(lines, "\n")
}

// SessionLine returns the line that marks a commit message as a session's.
func SessionLine(id string) string { return trailer(trailerSession, id) }

// trailer returns a line of a message's last block, "" without a value.
func trailer(key, value string) string {
	if value == "" {
		return ""
	}
	return key + ": " + value
}

// bodyWidth is the line width of a message's body, as git's manual asks and hooks check.
const bodyWidth = 72

// Wrapped returns a text of the user as the body of a commit message.
func Wrapped(body string) string { return text.Wrap(strings.TrimSpace(text.Visible(body)), bodyWidth) }

// message assembles subject, body and trailers. The blank line before the trailers keeps lines at the end of the body
// out of git's trailer block.
func message(subject, body string, trailers ...string) string {
	var b strings.Builder
	b.WriteString(subject + "\n\n")
	if body != "" {
		b.WriteString(body + "\n\n")
	}
	for _, t := range trailers {
		if t != "" {
			b.WriteString(t + "\n")
		}
	}
	return b.String()
}

// Signature has the values of a commit's trailers. Anyone can forge them. A subject proves nothing either: a worker or
// the user may begin a commit with "FAILED (".
type Signature struct{ Session, Task, Failed, Record string }

// SignatureOf reads the trailers of a commit.
func SignatureOf(c gitx.Commit) Signature {
	return Signature{
		Session: one(c.Trailers[trailerSession]), Task: one(c.Trailers[trailerTask]),
		Failed: one(c.Trailers[trailerFailed]), Record: one(c.Trailers[trailerRecord]),
	}
}

// one returns the last value of a trailer. A case's summary may quote a trailer, but git reads only the last block of a
// message.
func one(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// DefaultSubject is the default form of a task commit's subject. The id is in the trailer.
const DefaultSubject = "{title}"

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

// lowered returns a title for use after a colon: without a capital in its first word and a full stop at its end.
func lowered(title string) string {
	title = strings.TrimSuffix(strings.TrimSpace(title), ".")
	first, rest, _ := strings.Cut(title, " ")
	_, size := utf8.DecodeRuneInString(first)
	if second, _ := utf8.DecodeRuneInString(first[size:]); unicode.IsUpper(second) {
		size = len(first) // an abbreviation
	}
	return strings.TrimSpace(strings.ToLower(first[:size]) + first[size:] + " " + rest)
}

// maxTaskCommits limits the examined commits of tasks, newest first.
const maxTaskCommits = 10_000

// DoneIn finds the tasks of a list that commits below base have done, in any session. Each list has new ids, so a
// commit must have a task's trailer and its title. Reverted tasks are not done. planOf returns the tasks of a session
// by its id. If they are unknown, the title alone decides.
func DoneIn(ctx context.Context, g *gitx.Git, common, base string, tasks []session.Task,
	planOf func(id string) []session.Task) (map[string]string, error) {
	agrees := func(c gitx.Commit, t session.Task) bool {
		var plan []session.Task
		for _, id := range c.Trailers[trailerSession] {
			plan = append(plan, planOf(id)...)
		}
		return len(plan) == 0 || slices.ContainsFunc(plan, func(o session.Task) bool { return SameTask(o, t) })
	}
	const reverts = "This reverts commit "
	commits, err := g.Log(ctx, common, base, "", maxTaskCommits, trailerTask+": ", reverts)
	if err != nil {
		return nil, err
	}
	reverted, done := map[string]bool{}, map[string]string{}
	for _, c := range commits {
		if reverted[c.SHA] || len(c.Trailers[trailerFailed]) > 0 {
			continue
		}
		for line := range strings.Lines(bodyOf(c)) {
			if sha, ok := strings.CutPrefix(line, reverts); ok {
				reverted[strings.Trim(sha, ". \r\n")] = true
			}
		}
		for _, t := range tasks {
			if done[t.ID] == "" && doesTask(c, t) && agrees(c, t) {
				done[t.ID] = c.SHA
			}
		}
	}
	return done, nil
}

// SameTask reports whether tasks of two lists are the same, by id or title and by criteria.
func SameTask(a, b session.Task) bool {
	return (a.ID == b.ID || text.OneLine(a.Title) == text.OneLine(b.Title)) &&
		slices.EqualFunc(a.AcceptanceCriteria, b.AcceptanceCriteria,
			func(x, y string) bool { return text.OneLine(x) == text.OneLine(y) })
}

// bodyOf returns the body of a commit without the worker's summary.
func bodyOf(c gitx.Commit) string {
	if len(c.Trailers[trailerRecord]) > 0 {
		return ""
	}
	return c.Body + "\n"
}

// doesTask reports whether a commit names a task in its subject, or in a line of a squashed commit's body.
func doesTask(c gitx.Commit, t session.Task) bool {
	title, ids := text.VisibleLine(text.OneLine(t.Title)), c.Trailers[trailerTask]
	body := "\n" + bodyOf(c)
	for _, id := range ids {
		named := id + ": " + title
		if c.Subject == named ||
			strings.Contains(body, "\n- "+named+"\n") || strings.Contains(body, "\n- "+title+"\n") ||
			len(ids) == 1 && id == t.ID && strings.Contains(c.Subject, title) {
			return true
		}
	}
	return false
}
