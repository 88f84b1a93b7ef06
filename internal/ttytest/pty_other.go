//go:build !linux

package ttytest

import (
	"errors"
	"os"
	"os/exec"
)

// Run needs Linux.
func Run(*exec.Cmd, uint16, uint16) (*os.File, error) { return nil, errors.ErrUnsupported }
