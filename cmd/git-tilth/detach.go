package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// detach starts this program in the background, with its output in the session's directory, and returns when the child
// has locked the session. If the child ends before that, detach prints its log.
func (w *repoContext) detach(s *session.Session, r runRequest) error {
	self, err := os.Executable()
	if err != nil {
		return fail("", err)
	}
	out, log, which := w.p.humanOut(r.json), s.Path(lifecycle.RunLog), s.ID
	if r.verb == "run" {
		which = "--session=" + s.ID
	}
	argv := append(append([]string{self, fmt.Sprintf("--verbose=%t", w.p.verbose), r.verb}, r.flags...), which)
	child, err := proc.Detach(argv, w.p.dir, w.p.environ, log)
	if err != nil {
		return fail("", err)
	}
	for {
		if holder, busy := s.Holder(); busy && holder.PID == child.PID {
			fmt.Fprintf(out,
				"session %s runs in the background (pid %d), its output is in %s\n"+
					"next: git tilth log -f %s, git tilth stop %s\n", s.ID, child.PID, log, s.ID, s.ID)
			return nil
		}
		select {
		case code := <-child.Ended:
			return w.childEnded(out, s, log, code)
		case <-w.p.ctx.Done():
			return w.p.ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// childEnded returns the result of a child that ended before detach saw its run: a short or refused run.
func (w *repoContext) childEnded(out io.Writer, s *session.Session, log string, code int) error {
	text, _ := os.ReadFile(log)
	w.p.stderr.Write(text)
	if code == exitOK {
		fmt.Fprintf(out, "session %s ran in the background and has ended; its output is in %s\n", s.ID, log)
		return nil
	}
	return &exitError{code: code}
}
