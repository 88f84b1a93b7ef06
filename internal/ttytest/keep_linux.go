package ttytest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// keepOutput stops the terminal from throwing away what was written when Ctrl-C is typed: the kernel signals first and
// flushes then, which loses the words of a child that is quick to say goodbye.
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
