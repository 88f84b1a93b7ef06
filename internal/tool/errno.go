package tool

import (
	"errors"
	"syscall"
)

// crossDevice reports whether a rename failed because its ends are on two file systems.
func crossDevice(err error) bool { return errors.Is(err, syscall.EXDEV) }
