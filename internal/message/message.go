// Package message writes and reads the messages of a session's commits.
package message

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The trailers by which a commit of a session is known.
const (
	trailerSession = "Tilth-Session"
	trailerTask    = "Tilth-Task"
	trailerFailed  = "Tilth-Failed"
	trailerRecord  = "Tilth-Record"
	trailerBy      = "Tilth-By" // person, where no evaluator was asked
)

// Quoted returns a worker's summary as the body of a commit message. A line that begins with "> " is no trailer and no
// command, however the summary is worded.
func Quoted(summary string) string {
	lines := strings.Split(text.Wrap(text.Inert(text.Visible(strings.TrimSpace(summary))), bodyWidth-len("> ")), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " \t")
	}
	return strings.Join(lines, "\n")
}

// Completed returns the summary of a first hand-in with a later one below it, or the one that contains the other.
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

// Task returns the commit message of an accepted task. person is set if the user marked it done.
func Task(sessionID, task, subject, body, mark string, person bool) string {
	by := ""
	if person {
		by = "person"
	}
	return message(subject, body, trailer(trailerSession, sessionID), trailer(trailerTask, task),
		trailer(trailerBy, by), trailer(trailerRecord, mark))
}

// Placeholder is the message of the commit that holds a failed task's partial work.
func Placeholder(sessionID string, t session.Task, reason, mark string) string {
	return message(fmt.Sprintf("FAILED (%s): %s %s", reason, t.ID, text.VisibleLine(text.OneLine(t.Title))),
		"Partial work. git tilth resume takes this commit back into the index.", trailer(trailerSession, sessionID),
		trailer(trailerTask, t.ID), trailer(trailerFailed, reason), trailer(trailerRecord, mark))
}

// SeedSubject is the subject of the commit that anchors a session.
func SeedSubject(tasks, tests int) string {
	return fmt.Sprintf("seed: %d task(s) + %d acceptance test(s)", tasks, tests)
}

// Seed is the message of the commit that anchors a session.
func Seed(sessionID string, tasks, tests int, mark string) string {
	return message(SeedSubject(tasks, tests), "", trailer(trailerSession, sessionID), trailer(trailerRecord, mark))
}

// SessionLine is the line by which a commit's message says that it is a session's.
func SessionLine(id string) string { return trailer(trailerSession, id) }

// trailer is a line of a message's last block, "" where there is no value.
func trailer(key, value string) string {
	if value == "" {
		return ""
	}
	return key + ": " + value
}

// bodyWidth is where the lines of a message's body are broken, as git's own manual asks for and hooks check.
const bodyWidth = 72

// Wrapped returns a text of the user's own as the body of a commit message.
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

// Author classifies commits for one session by their trailers: its own, another session's or the user's. A subject
// alone proves nothing: a worker or the user may begin a commit with "FAILED (".
type Author struct {
	SessionID string
	Tasks     map[string]string // the status of each, by prd.json
	Inherited map[string]bool   // commits of the session that this one was forked from
}

// owns reports whether a commit's trailer names this session, or the session it shares the commit with.
func (a Author) owns(c gitx.Commit, sig Signature) bool {
	return sig.Session != "" && (sig.Session == a.SessionID || a.Inherited[c.SHA])
}

// Placeholder reports the task of a placeholder of this session. The plan may not have the task any more.
func (a Author) Placeholder(c gitx.Commit) (task string, ok bool) {
	sig := SignatureOf(c)
	return sig.Task, a.owns(c, sig) && sig.Task != "" && sig.Failed != ""
}

// Done reports the task that a commit of this session finished.
func (a Author) Done(c gitx.Commit) (task string, ok bool) {
	sig := SignatureOf(c)
	_, known := a.Tasks[sig.Task]
	return sig.Task, a.owns(c, sig) && known && len(c.Trailers[trailerFailed]) == 0
}

// Signed reports whether a commit has this session's trailer. Anyone can forge it.
func (a Author) Signed(c gitx.Commit) bool { return one(c.Trailers[trailerSession]) == a.SessionID }

// Signature has the values of a commit's trailers. Anyone can forge them.
type Signature struct{ Session, Task, Failed, Record string }

// SignatureOf reads the trailers of a commit.
func SignatureOf(c gitx.Commit) Signature {
	return Signature{
		Session: one(c.Trailers[trailerSession]), Task: one(c.Trailers[trailerTask]),
		Failed: one(c.Trailers[trailerFailed]), Record: one(c.Trailers[trailerRecord]),
	}
}

// one returns the last value of a trailer. A case's summary may quote a trailer of its own; git
// reads only the last block of a message, and the harness writes its own block last.
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

// DoneAt are the tasks that have their commit at or below the one with an index, which is -1 for the seed. One that is
// done without a commit counts where it comes before the task of the point in the plan.
func (a Author) DoneAt(tasks []session.Task, commits []gitx.Commit, at, task int) (done []string) {
	for i, t := range tasks {
		c := slices.IndexFunc(commits, func(c gitx.Commit) bool { id, ok := a.Done(c); return ok && id == t.ID })
		if c >= 0 && at >= 0 && c >= at || c < 0 && i < task && t.Status == session.TaskDone {
			done = append(done, t.ID)
		}
	}
	return done
}

// BaseOf is the parent of the first commit that was made for a task, "" if there is none.
func (a Author) BaseOf(task string, commits []gitx.Commit) string {
	for _, c := range slices.Backward(commits) {
		id, ok := a.Done(c)
		if !ok {
			id, ok = a.Placeholder(c)
		}
		if ok && id == task && len(c.Parents) > 0 {
			return c.Parents[0]
		}
	}
	return ""
}
