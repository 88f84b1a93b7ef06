//go:build amd64 || arm64

package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sharing lets a fork use the memory of this process until it executes the command, while the thread that made it
// waits. To copy what a Go program has mapped, and each page to which either writes then, takes longer than most
// commands do.
const sharing = unix.CLONE_VM | unix.CLONE_VFORK

// vfork makes a fork by clone or clone3. It is in assembly because the child goes on with the stack on which the parent
// waits: where the call returns to is kept in a register, as package syscall does where it starts a program.
func vfork(trap, a1, a2 uintptr) (pid uintptr, errno syscall.Errno)
