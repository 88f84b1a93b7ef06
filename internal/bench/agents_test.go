//go:build bench

package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// instantAgent answers at once: as worker it adds a line to a file, as evaluator it accepts.
const instantAgent = `{"steps": [
  {"when": "# The case for the change", "text": "{\"verdict\": \"accept\"}", "repeat": -1},
  {"run": ["echo line >> grown.txt"], "text": "{\"summary\": \"Add a line.\"}", "repeat": -1}
]}`

var builtAgent = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakeagent-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fakeagent")
	cmd := exec.Command("go", "build", "-o", path, "github.com/git-tilth/git-tilth/testdata/fakeagent")
	return path, cmd.Run()
})

// withAgent is the environment with an agent program that answers at once, as worker and as evaluator.
func (w *world) withAgent(name string) []string {
	w.t.Helper()
	built, err := builtAgent()
	must(w.t, err)
	bin := filepath.Join(w.dir, "agents")
	must(w.t, os.MkdirAll(bin, 0o755))
	_ = os.Remove(filepath.Join(bin, name))
	must(w.t, os.Symlink(built, filepath.Join(bin, name)))
	script := filepath.Join(w.dir, "state", "agent.json") // the program counts its answers next to it
	w.write(script, instantAgent)
	_ = os.Remove(script + ".used")
	env := []string{"FAKEAGENT_SCRIPT=" + script, "TILTH_WORKER_AGENT=" + name, "TILTH_EVALUATOR_AGENT=" + name}
	for _, line := range w.environ {
		switch {
		case strings.HasPrefix(line, "PATH="):
			line = "PATH=" + bin + ":" + strings.TrimPrefix(line, "PATH=")
		case strings.HasPrefix(line, "TILTH_WORKER_MODEL="):
			continue
		}
		env = append(env, line)
	}
	return env
}

// runAll runs n tasks of a session in an environment, and returns the start of each and the end of the run.
func (w *world) runAll(n int, env []string) []time.Time {
	w.t.Helper()
	must(w.t, os.RemoveAll(w.sessions))
	w.git(w.repo, "worktree", "prune")
	cmd := w.tilth("run", "--yes", "--from", w.tasks(n))
	cmd.Env = append(env[:len(env):len(env)], "TILTH_MAX_WALL_CLOCK_MINUTES=0", "TILTH_MAX_TOKENS=0")
	w.timed(0, cmd)
	begun := w.eventTimes("context_reset", "stop")
	if len(begun) != n+1 {
		w.t.Fatalf("%d tasks, want %d", len(begun)-1, n)
	}
	return begun
}

// eventTimes returns the times of the newest session's events of the given types.
func (w *world) eventTimes(types ...string) []time.Time {
	w.t.Helper()
	data, err := os.ReadFile(w.newest().Path(session.RecordFile))
	must(w.t, err)
	var out []time.Time
	for line := range strings.Lines(string(data)) {
		var ev struct {
			TS   time.Time
			Type string
		}
		must(w.t, json.Unmarshal([]byte(line), &ev))
		for _, is := range types {
			if ev.Type == is {
				out = append(out, ev.TS)
			}
		}
	}
	return out
}

// benchAgents counts the git processes of a task, including those started by git. In a worktree younger than a second
// git adds files again, which renews their pack, and a renewed pack is read again. So the first tasks do not count.
func benchAgents(t *testing.T, tb *table) {
	const tasks, first = 30, 20
	for _, agent := range []string{"claude", "codex"} {
		w := newWorld(t, 200)
		dir := t.TempDir()
		begun := w.runAll(tasks, append(w.withAgent(agent), "GIT_TRACE2_EVENT="+dir))
		entries, err := os.ReadDir(dir)
		must(t, err)
		n := 0
		for _, e := range entries {
			at, err := time.Parse("20060102T150405.999999Z", strings.SplitN(e.Name(), "-", 2)[0])
			must(t, err)
			if at.After(begun[first]) && at.Before(begun[tasks]) {
				n++
			}
		}
		if n == 0 {
			t.Fatal("no git process was counted")
		}
		tb.count("git processes a task, "+agent, float64(n)/(tasks-first), 11)
	}
}

// benchGrowth compares the first and the last of 200 tasks of one run.
func benchGrowth(t *testing.T, tb *table) {
	const tasks, edge, rounds = 200, 20, 3
	w := newWorld(t, 200)
	programs := map[string]func() []string{
		"builtin": func() []string {
			s := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}}
			for i := range tasks {
				s.Worker = append(s.Worker, writeStep(writtenName(i+1), "what the task asked for\n"), caseStep())
			}
			return w.at(w.serve(s).URL)
		},
		"claude": func() []string { return w.withAgent("claude") },
		"codex":  func() []string { return w.withAgent("codex") },
	}
	first, last := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range rounds {
		for name, environ := range programs {
			begun := w.runAll(tasks, environ())
			// The first task fills caches that the later tasks use.
			first[name] = append(first[name], begun[edge+1].Sub(begun[1]))
			last[name] = append(last[name], begun[tasks].Sub(begun[tasks-edge]))
		}
	}
	for _, name := range []string{"builtin", "claude", "codex"} {
		tb.ratio("the last 20 of 200 tasks, "+name, median(last[name]), median(first[name]), "the first 20", 1.1)
	}
}

// benchBigTree measures a task in 20,000 files, from its start to the next task's, against the necessary git commands
// over the same change.
func benchBigTree(t *testing.T, tb *table) {
	const tasks = 7
	w := newWorld(t, 20_000)
	floor := filepath.Join(w.dir, "floor")
	w.git(w.repo, "worktree", "add", "--quiet", "-b", "floor", floor)
	var whole, plain []time.Duration
	for range 3 {
		whole = append(whole, w.timesOf(tasks)...)
		for range tasks {
			plain = append(plain, w.plainTask(floor))
		}
	}
	tb.ratio("a task in 20,000 files", median(whole), median(plain), "git add -A, write-tree, commit, diff-tree", 2)
	memory, err := os.MkdirTemp("/dev/shm", "bench-")
	must(t, err)
	defer os.RemoveAll(memory)
	tb.ratio("a task in 20,000 files in memory", median(newWorldIn(t, memory, 20_000).timesOf(tasks)), median(whole),
		"on disk", 1.5)
}

// timesOf returns the durations of n tasks, without the first, which fills the caches.
func (w *world) timesOf(n int) (took []time.Duration) {
	begun := w.runAll(n, w.withAgent("claude"))
	for i := 1; i < n-1; i++ {
		took = append(took, begun[i+1].Sub(begun[i]))
	}
	return took
}

// plainTask adds a line like instantAgent, and returns the time in which git commits and shows the change.
func (w *world) plainTask(dir string) time.Duration {
	w.t.Helper()
	add := exec.Command("sh", "-c", "echo line >> grown.txt")
	add.Dir = dir
	start := time.Now()
	must(w.t, add.Run())
	for _, args := range [][]string{
		{"add", "-A"}, {"write-tree"}, {"commit", "-q", "-m", "Add a line."},
		{"diff-tree", "-r", "-p", "HEAD^", "HEAD"},
	} {
		cmd := exec.Command("git", args...)
		// Started as by git-tilth, because a scheduler may share the processors by sessions.
		cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, w.environ, &syscall.SysProcAttr{Setsid: true}
		w.timed(0, cmd)
	}
	return time.Since(start)
}
