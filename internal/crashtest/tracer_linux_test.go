//go:build amd64 || arm64

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launchVariable makes the test binary the first stage of a traced program, see launch.
const launchVariable = "CRASHTEST_LAUNCH"

func init() {
	if program := os.Getenv(launchVariable); program != "" {
		runtime.LockOSThread()
		fmt.Fprintln(os.Stderr, launch(program))
		os.Exit(126)
	}
}

// launch becomes the program to trace, with a filter that stops it and its descendants at each call that may change a
// file, and at no other. The filter is kept across exec, fork and clone.
func launch(program string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := changesFilter()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0,
		0); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, launchVariable+"=") })
	return syscall.Exec(program, os.Args, env)
}

// op is one change to a file, or the start of a program (call "exec").
type op struct {
	harness bool   // by git-tilth itself
	program string // the command line
	call    string
	path    string // relative to the root of the trace
	size    int    // of a write
}

func (o op) String() string {
	who := "git-tilth"
	if !o.harness {
		who = "child"
	}
	if o.call == "exec" {
		return "start of " + o.program
	}
	if o.size > 0 {
		return fmt.Sprintf("%s of %d bytes to %s by %s (%s)", o.call, o.size, o.path, who, o.program)
	}
	return fmt.Sprintf("%s %s by %s (%s)", o.call, o.path, who, o.program)
}

// way is how processes die at a point.
type way string

const (
	live    way = ""
	power   way = "power"
	torn    way = "torn"
	harness way = "harness"
	child   way = "child"
)

// traced is a program to trace.
type traced struct {
	argv, env []string
	dir, root string // working directory; only changes below root count
	log       string // file for its output, outside root
	// decide chooses the kill at the nth op, from 0.
	decide func(n int, o op) way
}

// outcome is the end of a traced program.
type outcome struct {
	ops      []op
	killed   bool // a point was met
	exitCode int  // -1 for a signal
	output   string
}

const traceOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// patience limits a traced program.
const patience = 2 * time.Minute

// tracing runs functions on the thread that is reserved for tracing.
var tracing = make(chan func())

// startTracing starts threads for tracing. A thread waits for all of its children, so it must not have started other
// processes. Call this before any process starts.
func startTracing(threads int) {
	ready := make(chan bool)
	for range threads {
		go func() {
			runtime.LockOSThread()
			ready <- true
			for job := range tracing {
				job()
			}
		}()
	}
	for range threads {
		<-ready
	}
}

// run runs a program to its end, and with it every process that it started.
func (t traced) run() (outcome, error) {
	type result struct {
		out outcome
		err error
	}
	done := make(chan result)
	tracing <- func() {
		out, err := t.onThread()
		done <- result{out, err}
	}
	r := <-done
	data, err := os.ReadFile(t.log)
	r.out.output = string(data)
	return r.out, errors.Join(r.err, err)
}

func (t traced) onThread() (outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	log, err := os.Create(t.log)
	if err != nil {
		return outcome{}, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return outcome{}, err
	}
	defer null.Close()
	root, err := syscall.ForkExec(self, t.argv, &syscall.ProcAttr{
		Dir: t.dir, Env: append(slices.Clone(t.env), launchVariable+"="+t.argv[0]),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return outcome{}, err
	}
	tr := &tracer{traced: t, rootPID: root, groups: map[int]int{root: root}, programs: map[int]string{}}
	var ws unix.WaitStatus
	if _, err := wait(root, &ws); err != nil || !ws.Stopped() {
		return outcome{}, fmt.Errorf("the traced program did not start: %v %v", ws, err)
	}
	if err := unix.PtraceSetOptions(root, traceOptions); err != nil {
		_ = unix.Kill(root, unix.SIGKILL)
		return outcome{}, fmt.Errorf("ptrace: %w", err)
	}
	var hung atomic.Bool
	timer := time.AfterFunc(patience, func() {
		hung.Store(true)
		_ = unix.Kill(root, unix.SIGKILL)
	})
	defer timer.Stop()
	if err := unix.PtraceCont(root, 0); err != nil {
		return outcome{}, err
	}
	err = tr.loop()
	if hung.Load() {
		err = fmt.Errorf("it did not end within %s", patience)
	}
	return tr.outcome, err
}

// wait waits for a tracee of this thread only; other goroutines have other children.
func wait(pid int, ws *unix.WaitStatus) (int, error) {
	for {
		got, err := unix.Wait4(pid, ws, unix.WALL|unix.WNOTHREAD, nil)
		if err != unix.EINTR {
			return got, err
		}
	}
}

type tracer struct {
	traced
	outcome
	rootPID  int
	started  bool           // the launcher has become the program
	groups   map[int]int    // thread to process
	programs map[int]string // process to command line
}

func (t *tracer) loop() error {
	for {
		var ws unix.WaitStatus
		tid, err := wait(-1, &ws)
		if err == unix.ECHILD {
			return nil
		}
		if err != nil {
			return err
		}
		if ws.Exited() || ws.Signaled() {
			if tid == t.rootPID {
				t.exitCode = ws.ExitStatus() // -1 for a signal
			}
			delete(t.groups, tid)
			continue
		}
		// ESRCH: it was killed in the meantime.
		if err := unix.PtraceCont(tid, t.stopped(tid, ws)); err != nil && err != unix.ESRCH {
			return err
		}
	}
}

// stopped handles a stop and returns the signal to deliver.
func (t *tracer) stopped(tid int, ws unix.WaitStatus) int {
	_, known := t.groups[tid]
	if !known {
		t.groups[tid] = groupOf(tid)
	}
	if ws.StopSignal() != unix.SIGTRAP {
		if ws.StopSignal() == unix.SIGSTOP && !known {
			return 0 // first stop of a new tracee
		}
		return int(ws.StopSignal())
	}
	switch ws.TrapCause() {
	case unix.PTRACE_EVENT_EXEC:
		if tid == t.rootPID {
			t.started = true
			t.programs[tid] = commandLine(tid)
			return 0
		}
		group := t.groups[tid]
		t.programs[group] = commandLine(tid)
		if t.started {
			t.meet(tid, op{call: "exec", program: t.programs[group]}, nil)
		}
	case unix.PTRACE_EVENT_SECCOMP:
		t.called(tid)
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
	}
	return 0
}

// called handles a system call that is about to run.
func (t *tracer) called(tid int) {
	nr, args, err := syscallInfo(tid)
	c, known := changes[nr]
	if err != nil || !known || !t.started {
		return
	}
	path := c.target(tid, args)
	rel, err := filepath.Rel(t.root, path)
	if err != nil || !filepath.IsAbs(path) || rel == ".." || strings.HasPrefix(rel, "../") {
		return
	}
	if _, err := os.Lstat(path); c.idle(err == nil, args) {
		return
	}
	o := op{harness: t.groups[tid] == t.rootPID, program: t.programs[t.groups[tid]], call: c.name, path: rel}
	if c.write {
		o.size = int(args[c.len])
	}
	t.meet(tid, o, func() { c.tear(tid, args) })
}

// meet counts an op and kills the processes that die there.
func (t *tracer) meet(tid int, o op, tear func()) {
	n := len(t.ops)
	t.ops = append(t.ops, o)
	if t.killed || t.decide == nil {
		return
	}
	how := t.decide(n, o)
	if how == live {
		return
	}
	t.killed = true
	switch how {
	case torn:
		tear()
		fallthrough
	case power:
		for _, pid := range t.groups {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	case harness:
		_ = unix.Kill(t.rootPID, unix.SIGKILL)
	case child:
		_ = unix.Kill(t.groups[tid], unix.SIGKILL)
	}
}

func groupOf(tid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return tid
	}
	return pid
}

func commandLine(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
}
