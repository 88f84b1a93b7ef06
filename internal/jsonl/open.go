package jsonl

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrIrregular says that something else than a file has a file's name.
var ErrIrregular = errors.New("is not a regular file")

const (
	fileMode = 0o600
	maxFile  = 64 << 20 // bounds what is read as a whole
)

// OpenFile opens a file of a session's directory. All of them are regular files; what is not is refused, because a FIFO
// would keep the command waiting for ever. A file that is made is 0600.
func OpenFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, fileMode)
	if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) {
		// A FIFO that nobody reads, a socket, a directory that is to be written.
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

// ReadFile reads a file of a session's directory; see OpenFile.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var data bytes.Buffer
	data.Grow(4 << 10) // A list reads files of ten thousand sessions: one read(2) is enough for most of them.
	_, err = data.ReadFrom(io.LimitReader(f, maxFile+1))
	if err == nil && data.Len() > maxFile {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("is too large")}
	}
	return data.Bytes(), err
}

// SyncDir makes a rename or a creation in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems cannot fsync a directory and say so; there is nothing more to be done there.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
