//go:build linux && !amd64 && !arm64

package sandbox

import "syscall"

// sharing is nothing where the processor has no assembly of vfork's.
const sharing = 0

func vfork(trap, a1, a2 uintptr) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(trap, a1, a2, 0, 0, 0, 0)
	return pid, errno
}
