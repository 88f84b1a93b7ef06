package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// architectures are seccomp's names of the processors on which the network can be cut off.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Offsets of fields in seccomp's data.
const (
	dataNumber   = 0
	dataArch     = 4
	dataArgument = 16
	argumentSize = 8
)

// The steps of a filter.
func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func answer(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func program(filter ...unix.SockFilter) *unix.SockFprog {
	return &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
}

const x32 = 0x40000000

// networkFilter keeps a thread and its program from making a socket of another family than Unix and netlink. It also
// denies io_uring, because seccomp does not see its operations.
func networkFilter() (*unix.SockFprog, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil, unix.ENOSYS
	}
	return program(
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
		answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EACCES)),
	), nil
}

// limitsFilter keeps a thread and its program from setting the limits of another process by its id. Landlock does not
// cover that, and a limit of no processor time kills. It is nil on an unknown processor.
func limitsFilter() *unix.SockFprog {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil
	}
	// The filter also covers prlimit64 of 32-bit programs, which has another number.
	small, number := uint32(unix.AUDIT_ARCH_I386), uint32(340)
	if runtime.GOARCH == "arm64" {
		small, number = unix.AUDIT_ARCH_ARM, 369
	}
	return program(
		load(dataArch),
		jump(unix.BPF_JEQ, arch, 3, 0),
		jump(unix.BPF_JEQ, small, 0, 11),
		load(dataNumber),
		jump(unix.BPF_JEQ, number, 3, 9),
		load(dataNumber),
		jump(unix.BPF_JEQ, unix.SYS_PRLIMIT64, 1, 0),
		jump(unix.BPF_JEQ, x32|unix.SYS_PRLIMIT64, 0, 6),
		load(dataArgument), // the process: 0 is the caller
		jump(unix.BPF_JEQ, 0, 4, 0),
		load(dataArgument+2*argumentSize), // the new limits; nil only reads
		jump(unix.BPF_JEQ, 0, 0, 3),
		load(dataArgument+2*argumentSize+argumentSize/2),
		jump(unix.BPF_JEQ, 0, 0, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
	)
}
