package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one entry of /proc.
type process struct {
	pid, parent, session int
	started              uint64 // ticks since boot: with the pid it names a process for good
	zombie               bool   // nothing of it runs any more
	name                 string // of the program, cut at 15 bytes; a zombie keeps it
}

// processes lists all processes. One that ends meanwhile may be missing.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	out := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readStat(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

// readStat reads /proc/<pid>/stat: pid (name) state ppid pgrp session ..., with the number of threads as field 20, the
// start time as 22 and the bytes of memory as 23. The name may hold spaces and parentheses, so the fields are counted
// from the last one.
func readStat(pid int) (process, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, data)
}

func parseStat(pid int, data []byte) (process, bool) {
	open, i := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || i < open {
		return process{}, false
	}
	f := strings.Fields(string(data[i+1:]))
	if len(f) < 21 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(f[1])
	session, err2 := strconv.Atoi(f[3])
	started, err3 := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return process{}, false
	}
	// The first process of a pid namespace sleeps without memory until all others in there are reaped. A process with a
	// dead first thread reads as a zombie while its other threads run.
	threaded := f[17] != "0" && f[17] != "1"
	return process{
		pid: pid, parent: parent, session: session, started: started,
		zombie: !threaded && (f[0] == "Z" || f[0] == "X" || f[20] == "0"), name: string(data[open+1 : i]),
	}, true
}

// memory returns the bytes of memory that the process alone has.
func (p process) memory() int64 {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/statm") // size resident shared ..., in pages
	f := strings.Fields(string(data))
	if len(f) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(f[1], 10, 64)
	shared, _ := strconv.ParseInt(f[2], 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}

func startTime(pid int) uint64 {
	p, _ := readStat(pid)
	return p.started
}

// descendants returns every process below root, parents before their children.
func descendants(root int) []process {
	children := map[int][]process{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p)
	}
	var out []process
	queue := []int{root}
	for len(queue) > 0 {
		next := children[queue[0]]
		delete(children, queue[0])
		queue = queue[1:]
		for _, p := range next {
			out = append(out, p)
			queue = append(queue, p.pid)
		}
	}
	return out
}

// readMarks returns the marks in a process's environment as it was at its exec; false if it has none or they cannot
// be read.
func readMarks(pid int) ([]string, bool) {
	data := environOf(pid)
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		if val, ok := bytes.CutPrefix(kv, []byte(Mark+"=")); ok {
			return strings.Split(string(val), ":"), true
		}
	}
	return nil, false
}

// environOf reads a process's environment. In the middle of an exec the kernel shows neither environment nor
// arguments; a process that just has no environment does show its arguments.
func environOf(pid int) []byte {
	dir := "/proc/" + strconv.Itoa(pid)
	for try := 0; ; try++ {
		data, err := os.ReadFile(dir + "/environ")
		if err != nil || len(data) > 0 || try == 100 {
			return data
		}
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil || len(args) > 0 && try > 0 {
			return nil
		}
		if p, ok := readStat(pid); !ok || p.zombie {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// signal sends sig to exactly the listed process, not to a later one with the same pid.
func (p process) signal(sig syscall.Signal) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		// Kernels before 5.3 have no pidfd.
		return errors.Is(err, unix.ENOSYS) && p.same() && unix.Kill(p.pid, sig) == nil
	}
	defer unix.Close(fd)
	if !p.same() || unix.PidfdSendSignal(fd, sig, nil, 0) != nil {
		return false
	}
	if sig == unix.SIGTERM {
		// A stopped process would not see the request.
		_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
	}
	return true
}

func (p process) same() bool {
	now, ok := readStat(p.pid)
	return ok && now.started == p.started
}
