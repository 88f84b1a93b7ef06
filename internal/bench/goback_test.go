//go:build bench

package bench

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// benchGoBack is `rewind` and `undo` with 2,000 of 20,000 files changed, against the git commands that each runs, and
// `fork` against the worktree that it adds.
func benchGoBack(t *testing.T, tb *table) {
	c := newRewindCase(t, 0)
	w := c.w
	c.restore()
	var inRewind, inUndo []time.Duration
	rewind := func() time.Duration { return w.besideGit(&inRewind, "rewind", "-y", "seed", c.s.ID) }
	undo := func() time.Duration { return w.besideGit(&inUndo, "undo", "-y", c.s.ID) }
	took := alternate(5, rewind, undo)
	tb.ratio("rewind, 2,000 of 20,000 files", took[0], median(inRewind[1:]), "in its git commands", 1.5)
	tb.ratio("undo, 2,000 of 20,000 files", took[1], median(inUndo[1:]), "in its git commands", 1.5)

	w.git(c.s.Workspace(), "reset", "-q", "--hard", c.tip)
	fork := func() time.Duration {
		took := w.timed(0, w.tilth("fork", c.s.ID))
		w.run(0, "reset", "-y", w.newest().ID)
		settle(t)
		return took
	}
	floor := func() time.Duration {
		at := filepath.Join(w.dir, "added")
		took := w.timed(0, w.plainGit(w.repo, "worktree", "add", "-q", "-b", "added", at, c.seed))
		took += w.timed(0, w.tilth("--version"))
		w.git(w.repo, "worktree", "remove", "--force", at)
		w.git(w.repo, "branch", "-q", "-D", "added")
		settle(t)
		return took
	}
	took = alternate(5, fork, floor)
	tb.ratio("fork, 20,000 files", took[0], took[1], "git worktree add and process start", 1.2)
}

var gitTime = regexp.MustCompile(`(?m)^\+ git .*\(([0-9.]+[mµ]?s)\)$`)

// besideGit runs git-tilth, adds the duration of its git commands to inGit, and returns the whole duration.
func (w *world) besideGit(inGit *[]time.Duration, args ...string) time.Duration {
	w.t.Helper()
	settle(w.t)
	cmd := w.tilth(append([]string{"-v"}, args...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	start := time.Now()
	if out, err := cmd.Output(); err != nil {
		w.t.Fatalf("%s: %v\n%s%s", cmd, err, out, log.Bytes())
	}
	took := time.Since(start)
	var sum time.Duration
	for _, m := range gitTime.FindAllSubmatch(log.Bytes(), -1) {
		d, err := time.ParseDuration(string(m[1]))
		must(w.t, err)
		sum += d
	}
	if sum == 0 {
		w.t.Fatalf("no git command is timed in\n%s", log.Bytes())
	}
	*inGit = append(*inGit, sum)
	return took
}
