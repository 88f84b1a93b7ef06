package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is one entry of /proc.
type process struct {
	pid, parent int
	started     uint64 // ticks since boot: with the pid it names a process for good
	zombie      bool   // all of its threads have ended
	name        string // name of the program, at most 15 bytes; a zombie keeps it
}

// processes lists all processes. A process that ends meanwhile may be missing.
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

// readStat reads /proc/<pid>/stat: pid (name) state ppid ..., with the number of threads as field 20, the start time as
// 22 and the bytes of memory as 23. The name may hold spaces and parentheses, so the fields are counted from the last
// one.
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
	started, err2 := strconv.ParseUint(f[19], 10, 64)
	if err1 != nil || err2 != nil {
		return process{}, false
	}
	// The first process of a pid namespace sleeps without memory until all others in there are reaped. A process with a
	// dead first thread reads as a zombie while its other threads run.
	threaded := f[17] != "0" && f[17] != "1"
	return process{
		pid: pid, parent: parent, started: started, name: string(data[open+1 : i]),
		zombie: !threaded && (f[0] == "Z" || f[0] == "X" || f[20] == "0"),
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

// signal sends sig to exactly the listed process, not to a later one with the same pid.
func (p process) signal(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return // it has ended, or the kernel is older than 5.3: the kill of the tree reaches it
	}
	defer unix.Close(fd)
	if p.same() && unix.PidfdSendSignal(fd, sig, nil, 0) == nil && sig == unix.SIGTERM {
		// A stopped process would not see the request.
		_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
	}
}

func (p process) same() bool {
	now, ok := readStat(p.pid)
	return ok && now.started == p.started
}

// Find returns a living process that matches the query and is neither this one nor above it, or 0. The error is
// ErrUnsupported if other processes cannot be inspected.
func Find(q Query) (pid int, err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return 0, fmt.Errorf("without /proc: %w", errors.ErrUnsupported)
	}
	spared := append(Above(), os.Getpid())
	for _, p := range processes() {
		if p.zombie || slices.Contains(spared, p.pid) || !q.Name(p.name) {
			continue
		}
		if q.matches("/proc/" + strconv.Itoa(p.pid)) {
			return p.pid, nil
		}
	}
	return 0, nil
}

func (q Query) matches(dir string) bool {
	cwd, err := os.Readlink(dir + "/cwd")
	if errors.Is(err, fs.ErrPermission) {
		var st unix.Stat_t
		return unix.Stat(dir, &st) == nil && st.Uid == q.Owner
	}
	return err == nil && (len(q.Places) == 0 || slices.ContainsFunc(q.Places, func(place string) bool {
		return cwd == place || strings.HasPrefix(cwd, strings.TrimSuffix(place, "/")+"/") || q.worksIn(dir, place)
	}))
}

// worksIn reports whether a process works in place by its arguments, not by its working directory.
func (q Query) worksIn(dir, place string) bool {
	for file, before := range map[string]string{"/cmdline": q.Argument, "/environ": q.Variable} {
		data, err := os.ReadFile(dir + file)
		if err == nil && before != "" && strings.Contains("\x00"+string(data), "\x00"+before+place+"/") {
			return true
		}
	}
	return false
}

// Above returns the ids of the processes above this one, its parent first. Processes of a run's command stay below that
// run while it lives: orphans become the run's children.
func Above() []int {
	var pids []int
	for pid := os.Getpid(); len(pids) < maxDepth; {
		p, ok := readStat(pid)
		if !ok || p.parent <= 0 {
			break
		}
		pid = p.parent
		pids = append(pids, pid)
	}
	return pids
}

// maxDepth limits the search, because a parent's id can be reused while the chain is read.
const maxDepth = 1000
