package ttytest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// keepOutput stops the terminal from discarding output on Ctrl-C: the kernel sends the signal first and flushes then,
// which loses the last lines of a child that exits quickly.
func keepOutput(t testing.TB, tty *os.File) {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Lflag |= unix.NOFLSH
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
}
