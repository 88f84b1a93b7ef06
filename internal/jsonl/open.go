package jsonl

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrIrregular: the path is not a regular file.
var ErrIrregular = errors.New("is not a regular file")

const (
	fileMode = 0o600
	maxFile  = 64 << 20 // bounds files that are read as a whole
)

// linkError means that a file's name is a link. It is an ErrIrregular.
type linkError struct{}

func (linkError) Error() string { return "is a symbolic link" }

func (linkError) Is(target error) bool { return target == ErrIrregular || target == syscall.ELOOP }

// OpenFile opens a file of a session's directory. It refuses all but regular files. A FIFO would block the command for
// ever. A worker's link could lead to another file of the user, which the command would repair, extend or truncate. A
// new file has mode 0600.
func OpenFile(path string, flag int) (*os.File, error) {
	return openRegular(path, flag|syscall.O_NOFOLLOW)
}

func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, fileMode)
	if errors.Is(err, syscall.ELOOP) {
		err = &os.PathError{Op: "open", Path: path, Err: linkError{}}
	}
	if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) {
		// A FIFO without a reader, a socket, or a directory opened for writing.
		err = &os.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadIn reads at most limit bytes of a regular file of a tree that a worker may have written: through a link that
// leads out of the tree it would be any file of the user's, and a pipe or a device may never end.
func ReadIn(tree, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &os.PathError{Op: "read", Path: name, Err: ErrIrregular}
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// ReadFile reads a regular file of a session's directory, also through a link.
func ReadFile(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("is too large")}
	}
	return data, err
}

// SyncDir makes a rename or a new file in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems cannot fsync a directory; then nothing else can be done.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
