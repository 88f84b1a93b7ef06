package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// architectures are how seccomp names the processors on which the network can be cut off.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Where seccomp's data has what.
const (
	dataNumber   = 0
	dataArch     = 4
	dataArgument = 16
)

// networkFilter keeps a thread and what it executes from making a socket of another family than Unix and netlink, also
// by io_uring, which seccomp does not see.
func networkFilter() (*unix.SockFprog, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil, unix.ENOSYS
	}
	const x32 = 0x40000000
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(op uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{
		load(dataArch),
		jump(unix.BPF_JEQ, arch, 0, 8),
		load(dataNumber),
		jump(unix.BPF_JGE, x32, 6, 0),
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 5, 0),
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 3),
		load(dataArgument),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)),
	}
	return &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}, nil
}
