package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ForgetEnv blanks the values of the variables, as NAME=value, that are secret where /proc/<pid>/environ shows them,
// and keeps other processes of this user from reading this one's memory. The values that os.Environ returned stay what
// they are. It reports whether there was one and none is left to be seen.
func ForgetEnv(secret func(entry string) bool) bool {
	block, err := os.ReadFile("/proc/self/environ")
	at, ok := environStart()
	if err != nil || !ok {
		return false
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer mem.Close()
	found, failed := false, false
	for line := range bytes.SplitAfterSeq(block, []byte{0}) {
		entry := bytes.TrimSuffix(line, []byte{0})
		name, value, _ := bytes.Cut(entry, []byte("="))
		if len(value) > 0 && secret(string(entry)) {
			found = true
			_, err := mem.WriteAt(bytes.Repeat([]byte{'*'}, len(value)), at+int64(len(name))+1)
			failed = failed || err != nil
		}
		at += int64(len(line))
	}
	if found {
		// The memory and the environment of a process that cannot be dumped are root's to read; a child that is
		// another program can be dumped again.
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	return found && !failed
}

// environStart is where the kernel has this process's environment: field 50 of /proc/self/stat.
func environStart() (at int64, ok bool) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 48 {
		return 0, false
	}
	at, err = strconv.ParseInt(f[47], 10, 64)
	return at, err == nil && at > 0
}
