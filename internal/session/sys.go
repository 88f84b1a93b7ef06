package session

import (
	"errors"
	"syscall"
)

// isInvalid tells EINVAL, the answer of file systems that cannot fsync a directory.
func isInvalid(err error) bool { return errors.Is(err, syscall.EINVAL) }
