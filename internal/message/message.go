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

// InertBody is a worker's summary as a message's body. Servers act on how its lines begin, so that is looked at when
// they are broken.
func InertBody(summary string) string {
	return text.Inert(text.Wrap(text.Inert(text.Visible(summary)), bodyWidth-len("- ")))
}

// Task is the commit message of an accepted task. person says that a person's word made it done.
func Task(sessionID, task, subject, summary, mark string, person bool) string {
	by := ""
	if person {
		by = "person"
	}
	return message(subject, summary, trailer(trailerSession, sessionID), trailer(trailerTask, task),
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

// message assembles subject, body and a trailer block that git recognises. A body that ends in
// lines that look like trailers is kept apart from them by the blank line before the block.
// Whoever reads the body reads it in a terminal.
func message(subject, body string, trailers ...string) string {
	var b strings.Builder
	b.WriteString(subject + "\n\n")
	if body = strings.TrimSpace(text.Visible(body)); body != "" {
		b.WriteString(text.Wrap(body, bodyWidth) + "\n\n")
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
