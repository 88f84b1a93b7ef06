//go:build !linux && !darwin

package sandbox

import (
	"errors"
	"os/exec"
)

// Probe knows no sandbox here.
func Probe() System { return System{Err: errors.New("git-tilth knows no sandbox on this system")} }

// Start refuses to run a command without the box that it was given.
func (b *Box) Start(cmd *exec.Cmd) (*Tree, error) {
	if b != nil {
		return nil, Probe().Err
	}
	return nil, cmd.Start()
}

// Spaces are namespaces, which only Linux has.
func Spaces() (has []string, err error) { return nil, errors.New("this system has none") }

// Layered is never so: there are no layers.
func Layered(string) bool { return false }

// Close has none to end.
func Close() {}

// Limits are not set here.
func (b *Box) Limits() (processes, memory int64) { return 0, 0 }
