//go:build bench

package bench

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tracedCall is one system call of any process of a run, from strace.
type tracedCall struct {
	pid  string
	at   time.Time
	name string
	rest string // its arguments and result
}

var traceLine = regexp.MustCompile(`^(\d+)\s+(\d+)\.(\d+) (\w+)\((.*)$`)

// traced runs git-tilth and returns the calls of it, and of all that it starts, that begin a program, look at a file or
// wait for the disk.
func (w *world) traced(cmd *exec.Cmd) []tracedCall {
	w.t.Helper()
	out := filepath.Join(w.t.TempDir(), "trace")
	strace, err := exec.LookPath("strace")
	must(w.t, err)
	cmd.Path, cmd.Args = strace, append([]string{"strace", "-f", "-qq", "-ttt", "-s", "300", "-o", out, "--seccomp-bpf",
		"-e", "trace=execve,fsync,fdatasync,syncfs,sync,newfstatat,statx"}, cmd.Args...)
	w.timed(0, cmd)
	f, err := os.Open(out)
	must(w.t, err)
	defer f.Close()
	var calls []tracedCall
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := traceLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue // a signal, or the end of a call that was started before
		}
		sec, _ := strconv.ParseInt(m[2], 10, 64)
		micro, _ := strconv.ParseInt(m[3], 10, 64)
		calls = append(calls, tracedCall{m[1], time.Unix(sec, micro*1000), m[4], m[5]})
	}
	must(w.t, lines.Err())
	return calls
}

// program returns the name of the program that a call starts, or "".
func (c tracedCall) program() string {
	if c.name != "execve" || strings.Contains(c.rest, "= -1 ") {
		return ""
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(c.rest, `"`), `"`)
	return filepath.Base(path)
}

// programs counts the processes that calls start. A process that enters the sandbox calls exec twice and counts once.
func programs(calls []tracedCall) (all, git int) {
	last := map[string]string{}
	for _, c := range calls {
		if p := c.program(); p != "" {
			last[c.pid] = p
		}
	}
	for _, p := range last {
		all++
		if p == "git" {
			git++
		}
	}
	return all, git
}

var treeFile = regexp.MustCompile(`\bf\d{5}\.txt"`) // names of newWorld

// benchCounts counts a run's operations instead of timing it: programs started before the first turn of an agent
// program, and operations of each later task.
func benchCounts(t *testing.T, tb *table) {
	const tasks, first, files = 8, 3, 200
	w := newWorld(t, files)
	cmd := w.tilth("run", "--yes", "--no-preflight", "--from", w.tasks(tasks))
	cmd.Env = append(w.withAgent("claude"), "TILTH_MAX_WALL_CLOCK_MINUTES=0", "TILTH_MAX_TOKENS=0")
	calls := w.traced(cmd)
	begun := w.eventTimes("context_reset", "stop")
	agent := slices.IndexFunc(calls, func(c tracedCall) bool { return c.program() == "claude" })
	if agent < 0 || len(begun) != tasks+1 {
		t.Fatalf("%d tasks; the agent program is call %d", len(begun)-1, agent)
	}
	before, _ := programs(calls[:agent])
	before-- // the agent's own process is running by then
	in := slices.DeleteFunc(calls, func(c tracedCall) bool {
		return !c.at.After(begun[first]) || !c.at.Before(begun[tasks])
	})
	all, git := programs(in)
	var looks, syncs float64
	for _, c := range in {
		switch {
		case strings.Contains(c.name, "sync"):
			syncs++
		case strings.Contains(c.name, "stat") && treeFile.MatchString(c.rest):
			looks++
		}
	}
	const each = tasks - first
	tb.count("programs before the first agent", float64(before), 14)
	tb.count("programs a task", float64(all)/each, 14)
	tb.count("git processes a task", float64(git)/each, 10)
	tb.count("looks at each file, a task", looks/each/files, 2.2)
	tb.count("syncs a task", syncs/each, 6)
}
