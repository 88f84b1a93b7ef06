// Package keeper is where a process waits that is started as Name, for the end of the one that started it. It depends
// on next to nothing: it waits before the rest of the program is set up, which takes longer than git's first commands.
package keeper

import (
	"os"
	"syscall"
)

// Name is what the process is called.
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
