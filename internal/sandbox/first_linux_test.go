package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Whoever can signal the first process of the namespace fills no queue of signals that way.
func TestInitKeepsNoSignals(t *testing.T) {
	w := newWorld(t)
	w.sh(t, w.box, "true")
	_, init := sandbox.Inits()
	if init == 0 {
		t.Skip("needs a pid namespace")
	}
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != unix.SIGKILL && sig != unix.SIGSTOP {
			_ = unix.Kill(init, sig)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", init))
	if err != nil || !strings.Contains(string(status), "ShdPnd:\t0000000000000000\n") {
		t.Errorf("%v\n%s", err, status)
	}
	if out, ok := w.sh(t, w.box, "true"); !ok {
		t.Error(out)
	}
}
