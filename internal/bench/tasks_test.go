//go:build bench

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

const taskCount = 20

// benchTasks runs 20 tasks of three iterations, with a validator that does nothing, against the git commands of that
// run.
func benchTasks(t *testing.T, tb *table) {
	w := newWorld(t, 200)
	from := w.tasks(taskCount)
	before := take(t, nil, w.repo)
	clean := func() {
		before.restore()
		must(t, os.RemoveAll(w.sessions))
	}
	run := func(environ func([]string) []string) time.Duration {
		server := w.serve(taskScript())
		defer server.Close()
		cmd := w.tilth("run", "--yes", "--from", from)
		cmd.Env = environ(w.at(server.URL))
		return w.timed(0, cmd)
	}
	rec := w.newRecorder(filepath.Join(w.sessions, "*", "workspace", "written-*"),
		filepath.Join(w.repo, ".git", "worktrees", "*", "tilth-*"))
	run(rec.environ)
	calls := rec.calls()
	t.Log(subcommands(calls))
	took := alternate(5,
		func() time.Duration {
			clean()
			return run(func(env []string) []string { return env })
		},
		func() time.Duration {
			clean()
			return replayOver(t, w, calls)
		})
	tb.ratio("20 tasks of 3 iterations", took[0], took[1], "its git commands", 2)
}

func taskScript() *scripted.Script {
	s := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}}
	for i := range taskCount {
		s.Worker = append(s.Worker, readStep(fileName(i)), writeStep(writtenName(i+1), "what the task asked for\n"),
			caseStep())
	}
	return s
}

// replayOver replays calls that start without a session. The only file a command expects is the directory of its
// worktree.
func replayOver(t testing.TB, w *world, calls []call) time.Duration {
	t.Helper()
	for _, c := range calls {
		if subcommand(c.Args) == "worktree" {
			for _, a := range c.Args {
				if filepath.Base(a) == "workspace" {
					must(t, os.MkdirAll(filepath.Dir(a), 0o700))
				}
			}
		}
	}
	took := replay(t, calls)
	// The replay did the same if its branch has as many commits.
	out, err := exec.Command("git", "-C", w.repo, "log", "--branches=session/*", "--format=%H").Output()
	must(t, err)
	if len(out) == 0 {
		t.Fatal("the replay left no commits")
	}
	return took
}
