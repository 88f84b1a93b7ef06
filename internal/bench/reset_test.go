//go:build bench

package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// resetCase is one session that is torn down again and again.
type resetCase struct {
	w      *world
	s      *session.Session
	before *snapshot
}

const resetFloor = "git worktree remove, branch -D, rm -rf"

// benchReset measures `reset` against the equivalent plain commands, next to 1 and to 500 old sessions.
func benchReset(t *testing.T, tb *table) {
	one, many := newResetCase(t, 1), newResetCase(t, 500)
	took := alternate(3, one.reset, one.floor, many.reset, many.floor)
	tb.ratio("reset, 5,000 files, 1 old session", took[0], took[1], resetFloor, 1.3)
	tb.ratio("reset, 5,000 files, 500 old sessions", took[2], took[3], resetFloor, 1.3)
}

func newResetCase(t *testing.T, old int) *resetCase {
	t.Helper()
	w := newWorld(t, 5_000)
	c := &resetCase{w: w, s: w.failedSession()}
	w.oldSessions(c.s, old)
	c.before = take(t, nil, filepath.Join(w.repo, ".git"), c.s.Dir)
	return c
}

func (c *resetCase) restore() {
	c.before.restore()
	c.w.git(c.s.Workspace(), "update-index", "-q", "--refresh")
	settle(c.w.t)
}

func (c *resetCase) reset() time.Duration {
	c.restore()
	return c.w.timed(0, c.w.tilth("reset", "-y"))
}

func (c *resetCase) floor() time.Duration {
	c.restore()
	w := c.w
	took := w.timed(0, w.plainGit(w.repo, "worktree", "remove", "--force", "--force", c.s.Workspace()))
	took += w.timed(0, w.plainGit(w.repo, "branch", "-q", "-D", c.s.Branch()))
	return took + w.timed(0, exec.Command("rm", "-rf", c.s.Dir))
}

// plainGit prepares a git command as a user would type it.
func (w *world) plainGit(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.environ
	return cmd
}

// rewindCase is one session that is rewound again and again.
type rewindCase struct {
	w      *world
	s      *session.Session
	before *snapshot // of the session's files
	tip    string
	seed   string
}

// benchRewind is `reset --to-seed` with 2,000 of 20,000 files changed.
func benchRewind(t *testing.T, tb *table) {
	one, many := newRewindCase(t, 1), newRewindCase(t, 500)
	took := alternate(5, one.rewind, one.floor, many.rewind, many.floor)
	what := "git reset --hard, git clean -fd"
	tb.ratio("reset --to-seed, 2,000 of 20,000 files, 1 old session", took[0], took[1], what, 1.15)
	tb.ratio("reset --to-seed, 2,000 of 20,000 files, 500 old sessions", took[2], took[3], what, 1.15)
}

func newRewindCase(t *testing.T, old int) *rewindCase {
	t.Helper()
	w := newWorld(t, 20_000)
	c := &rewindCase{w: w, s: w.failedSession()}
	w.oldSessions(c.s, old)
	c.tip = w.git(c.s.Workspace(), "rev-parse", "HEAD")
	begun, err := c.s.State()
	if err != nil || begun.Seed == nil {
		t.Fatal("the record has no seed_committed: ", err)
	}
	c.seed = begun.Seed.SHA
	c.before = take(t, nil, append(ownFiles(t, c.s), c.s.Path(session.RecordFile))...)
	return c
}

// restore restores the session's state after its run, and changes 1,800 files and adds 200.
func (c *rewindCase) restore() {
	c.before.restore()
	wt := c.s.Workspace()
	c.w.git(wt, "reset", "-q", "--hard", c.tip)
	c.w.git(wt, "clean", "-fdq")
	for i := range 1_800 {
		c.w.write(filepath.Join(wt, fileName(i*11)), fmt.Sprintf("changed %d\n", i))
	}
	for i := range 200 {
		c.w.write(filepath.Join(wt, fmt.Sprintf("d%03d/new/n%d.txt", i, i)), "new\n")
	}
	settle(c.w.t)
}

func (c *rewindCase) rewind() time.Duration {
	c.restore()
	return c.w.timed(0, c.w.tilth("reset", "--to-seed", "-y"))
}

func (c *rewindCase) floor() time.Duration {
	c.restore()
	took := c.w.timed(0, c.w.plainGit(c.s.Workspace(), "reset", "-q", "--hard", c.seed))
	return took + c.w.timed(0, c.w.plainGit(c.s.Workspace(), "clean", "-fdq"))
}
