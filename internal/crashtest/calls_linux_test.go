//go:build amd64 || arm64

package crashtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	seccompAllow = 0x7fff0000
	seccompTrace = 0x7ff00000
)

// changesFilter is the filter as a BPF program. The number of the call is at offset 0 of its data, its arguments start
// at offset 16. An open that neither creates nor truncates changes nothing.
func changesFilter() []unix.SockFilter {
	const load, jumpEqual, jumpSet, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS,
		unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	var f []unix.SockFilter
	f = append(f, unix.SockFilter{Code: load, K: 0})
	for nr, c := range changes {
		if !c.open {
			f = append(f, unix.SockFilter{Code: jumpEqual, K: uint32(nr), Jt: 0, Jf: 1},
				unix.SockFilter{Code: ret, K: seccompTrace})
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

// change describes a system call that may change a file. The numbers are indices of arguments; dir and fd are -1 if
// the call has none.
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
		unix.SYS_OPENAT: opens("open", 0, 1, 2), unix.SYS_RENAMEAT: onPath("rename", 0, 1),
		unix.SYS_RENAMEAT2: onPath("rename", 0, 1),
		unix.SYS_UNLINKAT:  onPath("unlink", 0, 1), unix.SYS_MKDIRAT: onPath("mkdir", 0, 1),
		unix.SYS_LINKAT:    onPath("link", 2, 3),
		unix.SYS_SYMLINKAT: onPath("symlink", 1, 2), unix.SYS_TRUNCATE: onPath("truncate", -1, 0),
		unix.SYS_FTRUNCATE:       onFile("truncate", 0),
		unix.SYS_COPY_FILE_RANGE: onFile("copy", 2), unix.SYS_SENDFILE: onFile("copy", 0),
	}
	for nr, c := range oldChanges {
		m[nr] = c
	}
	return m
}()

// target returns the path of the file that a call will change, or "".
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

// idle reports whether a call changes nothing, by whether its file exists.
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

// syscallInfo returns the call at which a tracee has stopped (Linux 5.3).
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
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(tid), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return 0, args, errno
	}
	return info.nr, info.args, nil
}
