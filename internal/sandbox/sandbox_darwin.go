package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// seatbelt is the program of macOS that runs another one in a sandbox. It is deprecated, and there is no other.
const seatbelt = "/usr/bin/sandbox-exec"

// Probe looks for the system's program.
func Probe() System {
	if _, err := os.Stat(seatbelt); err != nil {
		return System{Err: fmt.Errorf("this system has no sandbox-exec: %w", err)}
	}
	return System{Kind: "sandbox-exec"}
}

// Start starts a command inside the box.
func (b *Box) Start(cmd *exec.Cmd) error {
	if b != nil {
		cmd.Args = append([]string{Name, "-p", b.profile(), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = seatbelt
	}
	return cmd.Start()
}

// Spaces are namespaces, which only Linux has.
func Spaces() (has []string, err error) { return nil, errors.New("this system has none") }

// Layered is never so: there are no layers.
func Layered(string) bool { return false }

// Close has none to end.
func Close() {}
