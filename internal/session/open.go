package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errIrregular: something else than a file has a file's name.
var errIrregular = errors.New("is not a regular file")

// OpenFile opens a file of a session's directory. All of them are regular files; what is not is refused, because a FIFO
// would keep the command waiting for ever. A file that is made is 0600.
func OpenFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, fileMode)
	if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) {
		// A FIFO that nobody reads, a socket, a directory that is to be written.
		err = &os.PathError{Op: "open", Path: path, Err: errIrregular}
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errIrregular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile reads a file of a session's directory; see OpenFile.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

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
	case errors.Is(err, errIrregular):
		return &LockFileError{Path: path, Why: errIrregular.Error(), Hint: remove}
	case errors.Is(err, os.ErrPermission):
		return &LockFileError{Path: path, Why: "cannot be opened: " + syscall.EACCES.Error(), Hint: "chmod u+rwX '" + path + "'"}
	}
	return fmt.Errorf("lock the session: %w", err)
}
