//go:build amd64 || arm64

package crashtest

import (
	"bytes"
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

// launchVariable makes the test binary the first stage of a traced program: see launch.
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
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, launchVariable+"=") })
	return syscall.Exec(program, os.Args, env)
}

const (
	seccompAllow = 0x7fff0000
	seccompTrace = 0x7ff00000
)

// changesFilter is the filter in the kernel's own language: the number of the call lies at offset 0 of its data, its
// arguments from offset 16 on. An open that neither creates nor truncates changes nothing.
func changesFilter() []unix.SockFilter {
	const load, jumpEqual, jumpSet, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	var f []unix.SockFilter
	f = append(f, unix.SockFilter{Code: load, K: 0})
	for nr, c := range changes {
		if !c.open {
			f = append(f, unix.SockFilter{Code: jumpEqual, K: uint32(nr), Jt: 0, Jf: 1}, unix.SockFilter{Code: ret, K: seccompTrace})
			continue
		}
		f = append(f,
			unix.SockFilter{Code: jumpEqual, K: uint32(nr), Jt: 0, Jf: 4},
			unix.SockFilter{Code: load, K: uint32(16 + 8*c.flags)}, // little-endian, as both machines are
			unix.SockFilter{Code: jumpSet, K: unix.O_CREAT | unix.O_TRUNC, Jt: 0, Jf: 1},
			unix.SockFilter{Code: ret, K: seccompTrace},
			unix.SockFilter{Code: ret, K: seccompAllow},
		)
	}
	return append(f, unix.SockFilter{Code: ret, K: seccompAllow})
}

// change describes a system call that may change a file. The numbers are indices of arguments; dir and fd are -1
// where the call has none.
type change struct {
	name     string
	fd       int // descriptor of the file that is changed
	dir, at  int // descriptor of a directory, address of a path
	open     bool
	flags    int
	write    bool
	buf, len int
}

func onFile(name string, fd int) change { return change{name: name, fd: fd, dir: -1} }
func onPath(name string, dir, at int) change {
	return change{name: name, fd: -1, dir: dir, at: at}
}
func writes(name string) change { return change{name: name, dir: -1, write: true, buf: 1, len: 2} }
func opens(name string, dir, at, flags int) change {
	return change{name: name, fd: -1, dir: dir, at: at, open: true, flags: flags}
}

var changes = func() map[uint64]change {
	m := map[uint64]change{
		unix.SYS_WRITE: writes("write"), unix.SYS_PWRITE64: onFile("pwrite", 0), unix.SYS_WRITEV: onFile("writev", 0),
		unix.SYS_OPENAT: opens("open", 0, 1, 2), unix.SYS_RENAMEAT: onPath("rename", 0, 1), unix.SYS_RENAMEAT2: onPath("rename", 0, 1),
		unix.SYS_UNLINKAT: onPath("unlink", 0, 1), unix.SYS_MKDIRAT: onPath("mkdir", 0, 1), unix.SYS_LINKAT: onPath("link", 2, 3),
		unix.SYS_SYMLINKAT: onPath("symlink", 1, 2), unix.SYS_TRUNCATE: onPath("truncate", -1, 0), unix.SYS_FTRUNCATE: onFile("truncate", 0),
		unix.SYS_COPY_FILE_RANGE: onFile("copy", 2), unix.SYS_SENDFILE: onFile("copy", 0),
	}
	for nr, c := range oldChanges {
		m[nr] = c
	}
	return m
}()

// op is one change to a file, or the start of a program (call "exec").
type op struct {
	harness bool   // by git-tilth itself
	program string // whose it is: the command line
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
	// decide says what happens at the nth op, from 0.
	decide func(n int, o op) way
}

// outcome is how a traced program ended.
type outcome struct {
	ops      []op
	killed   bool // a point was met
	exitCode int  // -1 for a signal
	output   string
}

const traceOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// patience bounds a traced program.
const patience = 2 * time.Minute

// tracing takes what has to run on a thread that is for tracing alone.
var tracing = make(chan func())

// startTracing makes threads for tracing. Tracees belong to a thread, which waits for all of its children: one on which anything
// else had started a process would take that away from whoever waits for it. So call this before any process is started.
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

// wait waits for a tracee of this thread alone; other goroutines have children of their own.
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

// stopped deals with a stop and returns the signal to go on with.
func (t *tracer) stopped(tid int, ws unix.WaitStatus) int {
	_, known := t.groups[tid]
	if !known {
		t.groups[tid] = groupOf(tid)
	}
	if ws.StopSignal() != unix.SIGTRAP {
		if ws.StopSignal() == unix.SIGSTOP && !known {
			return 0 // how a new tracee begins
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

// called looks at a system call that is about to be made.
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

// meet counts an op and lets die who dies there.
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

// target is the path of the file that a call is about to change, "" if it has none.
func (c change) target(tid int, args [6]uint64) string {
	proc := fmt.Sprintf("/proc/%d/", tid)
	if c.fd >= 0 {
		path, _ := os.Readlink(proc + "fd/" + strconv.Itoa(int(int32(args[c.fd]))))
		return path
	}
	path := readString(tid, args[c.at])
	if filepath.IsAbs(path) || path == "" {
		return filepath.Clean(path)
	}
	base := proc + "cwd"
	if c.dir >= 0 && int32(args[c.dir]) != unix.AT_FDCWD {
		base = proc + "fd/" + strconv.Itoa(int(int32(args[c.dir])))
	}
	dir, err := os.Readlink(base)
	if err != nil {
		return ""
	}
	return filepath.Join(dir, path)
}

// idle tells whether a call changes nothing, by whether its file exists.
func (c change) idle(exists bool, args [6]uint64) bool {
	switch {
	case c.open:
		return exists && args[c.flags]&unix.O_TRUNC == 0
	case c.name == "mkdir", c.name == "link", c.name == "symlink":
		return exists
	case c.name == "unlink", c.name == "rename":
		return !exists
	}
	return false
}

// tear does half of a write.
func (c change) tear(tid int, args [6]uint64) {
	fd := strconv.Itoa(int(int32(args[c.fd])))
	half := make([]byte, args[c.len]/2)
	if _, err := readMemory(tid, args[c.buf], half); err != nil {
		return
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", tid, fd))
	if err != nil {
		return
	}
	var pos int64
	var flags int
	for line := range strings.Lines(string(info)) {
		_, _ = fmt.Sscanf(line, "pos: %d", &pos)
		_, _ = fmt.Sscanf(line, "flags: %o", &flags)
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%s", tid, fd), os.O_WRONLY|flags&os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if flags&os.O_APPEND != 0 {
		_, _ = f.Write(half)
	} else {
		_, _ = f.WriteAt(half, pos)
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

func readMemory(tid int, addr uint64, buf []byte) (int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(buf, int64(addr))
}

func readString(tid int, addr uint64) string {
	buf := make([]byte, 4096)
	n, _ := readMemory(tid, addr, buf) // short at the end of a mapping
	s, _, _ := bytes.Cut(buf[:n], []byte{0})
	return string(s)
}

// syscallInfo asks for the call at which a tracee has stopped (Linux 5.3).
func syscallInfo(tid int) (nr uint64, args [6]uint64, err error) {
	var info struct {
		op     uint8
		_      [3]uint8
		arch   uint32
		ip, sp uint64
		nr     uint64
		args   [6]uint64
		_      [2]uint64
	}
	const getSyscallInfo = 0x420e
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return 0, args, errno
	}
	return info.nr, info.args, nil
}
