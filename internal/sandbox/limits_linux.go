package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits returns the largest number of processes and threads of a command in the box, and of bytes of memory; 0 is no
// limit.
func (b *Box) Limits() (processes, memory int64) {
	if b == nil || b.MaxProcesses == 0 {
		return 0, 0
	}
	var info unix.Sysinfo_t
	if memory = b.MaxMemory; memory == 0 && unix.Sysinfo(&info) == nil {
		memory = int64(uint64(info.Totalram) * uint64(info.Unit) / 10 * 9)
	}
	return b.MaxProcesses, memory
}

// Tasks returns the number of all processes and threads, 0 if it is unknown.
func Tasks() int64 {
	data, _ := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206
	f := bytes.Fields(data)
	if len(f) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(string(f[3]), "/")
	n, _ := strconv.ParseInt(all, 10, 64)
	return n
}

// Used returns the memory in use on the machine, in bytes, 0 if it is unknown.
func Used() int64 {
	data, _ := os.ReadFile("/proc/meminfo")
	size := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			size[name], _ = strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		}
	}
	return (size["MemTotal"] - size["MemAvailable"]) << 10
}

// flags writes the network and the limit of processes of a command as flags. The kernel counts all processes of the
// user, and none of root's. Memory has no such limit, because the shadow memory of a race detector would exceed it.
func (b *Box) flags() (flags string) {
	if b.NoNetwork {
		flags = "n"
	}
	if processes, _ := b.Limits(); processes > 0 {
		flags += fmt.Sprintf(",%d", processes+Tasks())
	}
	return flags
}

// readLimits reads the limit from the flags. The limit is never raised.
func (e *entry) readLimits(flags string) {
	_, number, _ := strings.Cut(flags, ",")
	n, err := strconv.ParseUint(number, 10, 64)
	var was unix.Rlimit
	if err == nil && unix.Getrlimit(unix.RLIMIT_NPROC, &was) == nil {
		e.processes = unix.Rlimit{Cur: min(n, was.Cur), Max: min(n, was.Max)}
	}
}

// preferOOM makes the kernel kill this process and its children first when memory runs out.
func preferOOM() {
	_ = os.WriteFile("/proc/self/oom_score_adj", strconv.AppendInt(nil, 500, 10), 0)
}
