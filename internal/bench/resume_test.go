//go:build bench

package bench

import (
	"os"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// resumeCase is one failed session that is resumed again and again.
type resumeCase struct {
	w      *world
	s      *session.Session
	before *snapshot // of the session's files
	tip    string
	calls  []call
}

// benchResume measures `resume` of a failed session up to its first model call, against the git commands until then and
// one start of the program: with a small record, with one of 1 GB, and with 500 old sessions.
func benchResume(t *testing.T, tb *table) {
	small, big, many := newResumeCase(t, 0, 0), newResumeCase(t, 1, 1<<30), newResumeCase(t, 500, 0)
	took := alternate(11, small.resume, small.floor, big.resume, big.floor, many.resume, many.floor)
	what := "its git commands and process start"
	tb.ratio("resume to first model call, small record, no old session", took[0], took[1], what, 2.5)
	tb.ratio("resume to first model call, 1 GB record", took[2], took[3], what, 2.5)
	tb.ratio("resume to first model call, 500 old sessions", took[4], took[5], what, 2.5)
	tb.ratio("resume, 1 GB record", took[2], took[0], "resume, small record", 1.1)
	tb.ratio("resume beside 500 old sessions", took[4], took[0], "resume beside none", 1.2)
}

func newResumeCase(t *testing.T, old int, size int64) *resumeCase {
	t.Helper()
	w := newWorld(t, 200)
	c := &resumeCase{w: w, s: w.failedSession()}
	w.oldSessions(c.s, old)
	if size > 0 {
		lengthen(t, c.s, size)
	}
	c.tip = w.git(w.repo, "rev-parse", c.s.Branch())
	c.before = take(t, []string{c.s.Path(session.RecordFile)}, ownFiles(t, c.s)...)
	c.restore()
	rec := w.newRecorder()
	c.untilCall(rec.environ)
	c.calls = rec.calls()
	t.Log(subcommands(c.calls))
	return c
}

// restore undoes the resume. In git the resume changed only the branch, because the index has the partial work before
// and after. It also removes the lock file of a killed process, or the next resume would look for leftover processes.
func (c *resumeCase) restore() {
	c.before.restore()
	_ = os.Remove(c.s.Path(session.LockFile))
	c.w.git(c.s.Workspace(), "reset", "-q", "--soft", c.tip)
}

func (c *resumeCase) resume() time.Duration {
	c.restore()
	return c.untilCall(func(env []string) []string { return env })
}

func (c *resumeCase) floor() time.Duration {
	c.restore()
	return replay(c.w.t, c.calls) + c.w.timed(0, c.w.tilth("--version"))
}

// untilCall resumes and ends the process at its first model call; it returns the time until then.
func (c *resumeCase) untilCall(environ func([]string) []string) time.Duration {
	c.w.t.Helper()
	asked := make(chan time.Time, 1)
	server := c.w.serve(&scripted.Script{Lenient: true, Worker: []scripted.Step{{Hang: true, Repeat: -1}}},
		scripted.OnRequest(func(scripted.Request) {
			select {
			case asked <- time.Now():
			default: // only the first counts
			}
		}))
	defer server.Close()
	cmd := c.w.tilth("resume")
	cmd.Env = environ(c.w.at(server.URL))
	begin := time.Now()
	must(c.w.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case at := <-asked:
		must(c.w.t, cmd.Process.Kill())
		<-ended
		return at.Sub(begin)
	case err := <-ended:
		c.w.t.Fatal("resume ended before its first model call: ", err)
		return 0
	}
}
