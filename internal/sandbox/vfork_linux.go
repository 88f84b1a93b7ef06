//go:build amd64 || arm64

package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sharing lets a fork use the memory of this process until it executes the command, while the forking thread waits.
// Copying a Go program's mappings, and each page written afterwards, takes longer than most commands.
const sharing = unix.CLONE_VM | unix.CLONE_VFORK

// vfork makes a fork by clone or clone3. It is in assembly because the child goes on with the stack on which the parent
// waits: where the call returns to is kept in a register, as package syscall does where it starts a program.
func vfork(trap, a1, a2 uintptr) (pid uintptr, errno syscall.Errno)
