package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// CopyFile copies a file, an empty one in place of none.
func CopyFile(from, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	in, err := OpenFile(from, os.O_RDONLY)
	if err == nil {
		_, err = io.Copy(out, in)
		in.Close()
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, out.Sync(), out.Close())
}
