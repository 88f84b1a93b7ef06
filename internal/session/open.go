package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// LockFileError says that a session's lock file cannot be used.
type LockFileError struct {
	Path, Why string
	Hint      string // a command that puts it right
}

func (e *LockFileError) Error() string { return fmt.Sprintf("the session's lock %s %s", e.Path, e.Why) }

// lockFileError explains why the lock file could not be opened. What else lies there holds nothing of the session.
func lockFileError(path string, err error) error {
	remove := "rm -rf '" + path + "'"
	switch {
	case errors.Is(err, syscall.ELOOP):
		return &LockFileError{Path: path, Why: "is a symbolic link", Hint: remove}
	case errors.Is(err, jsonl.ErrIrregular):
		return &LockFileError{Path: path, Why: jsonl.ErrIrregular.Error(), Hint: remove}
	case errors.Is(err, os.ErrPermission):
		why := "cannot be opened: " + syscall.EACCES.Error()
		return &LockFileError{Path: path, Why: why, Hint: "chmod u+rwX '" + path + "'"}
	}
	return fmt.Errorf("lock the session: %w", err)
}
