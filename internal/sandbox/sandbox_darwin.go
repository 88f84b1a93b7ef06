package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// seatbelt is macOS's program to run another program in a sandbox. It is deprecated, but has no successor.
const seatbelt = "/usr/bin/sandbox-exec"

// Probe checks for the system's sandbox program.
func Probe() System {
	if _, err := os.Stat(seatbelt); err != nil {
		return System{Err: fmt.Errorf("this system has no sandbox-exec: %w", err)}
	}
	return System{Kind: "sandbox-exec"}
}

// Start starts a command inside the box.
func (b *Box) Start(cmd *exec.Cmd) (*Tree, error) {
	if b != nil {
		cmd.Args = append([]string{Name, "-p", b.placed(false).profile(), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = seatbelt
	}
	return nil, cmd.Start()
}

// Spaces are namespaces, which only Linux has.
func Spaces() (has []string, err error) { return nil, errors.New("this system has none") }

// Layered returns false: macOS has no layers.
func Layered(string) bool { return false }

// Close does nothing: macOS has no namespaces to end.
func Close() {}

// Limits are not set here.
func (b *Box) Limits() (processes, memory int64) { return 0, 0 }
