// Package keeper waits in a process named Name for the end of its parent. It imports almost nothing, so that it waits
// before the rest of the program is initialised, which takes longer than git's first commands.
package keeper

import (
	"os"
	"syscall"
)

// Name is the name of the process.
const Name = "git-tilth-keeper"

// Is reports whether this process is one.
func Is() bool { return len(os.Args) == 2 && os.Args[0] == Name }

// init returns where standard input, a pipe, has ended without a byte: nobody said that all is well.
func init() {
	if !Is() {
		return
	}
	if n, _ := syscall.Read(0, make([]byte, 1)); n != 0 {
		os.Exit(0)
	}
}
