package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// lockError says that a session's lock file cannot be used.
type lockError struct{ path, why, remedy string }

func (e *lockError) Error() string { return fmt.Sprintf("the session's lock %s %s", e.path, e.why) }

// Remedy is a command that puts it right.
func (e *lockError) Remedy() string { return e.remedy }

// lockFileError explains why the lock file could not be opened. What else lies there holds nothing of the session.
func lockFileError(path string, err error) error {
	remove := "rm -rf '" + path + "'"
	switch {
	case errors.Is(err, syscall.ELOOP):
		return &lockError{path, "is a symbolic link", remove}
	case errors.Is(err, jsonl.ErrIrregular):
		return &lockError{path, jsonl.ErrIrregular.Error(), remove}
	case errors.Is(err, os.ErrPermission):
		return &lockError{path, "cannot be opened: " + syscall.EACCES.Error(), "chmod u+rwX '" + path + "'"}
	}
	return fmt.Errorf("lock the session: %w", err)
}
