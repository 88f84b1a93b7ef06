package jsonl

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"golang.org/x/sys/unix"
)

// TempMark is part of the name of each temporary file of Replace: ".<name>.tmp-<random>".
const TempMark = ".tmp-"

// Replace replaces the file at path with the output of fill, by rename: a reader sees the old content or the new. The
// mode is 0600. With synced this holds after a crash of the machine as well: without an fsync before the rename, a
// crash can leave an empty file. Until the directory is synced, the old content may come back.
func Replace(path string, synced bool, fill func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+TempMark+"*")
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	if err = fill(out); err == nil {
		err = out.Flush()
	}
	if err == nil && synced {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		if err = os.Rename(f.Name(), path); err != nil && unix.Rmdir(path) == nil { // it is an empty directory
			err = os.Rename(f.Name(), path)
		} else if fi, _ := os.Lstat(path); err != nil && fi != nil && fi.IsDir() {
			err = &os.PathError{Op: "replace", Path: path, Err: ErrIrregular}
		}
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// WriteFile replaces path by data, durably: a crash or a full disk leaves the old content or the new, never a mix, and
// once it returns the new.
func WriteFile(path string, data []byte) error {
	return cmp.Or(Put(path, data, true), SyncDir(filepath.Dir(path)))
}

// Put is Replace by data.
func Put(path string, data []byte, synced bool) error {
	err := Replace(path, synced, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Encode returns compact JSON with unescaped <, > and &, because people read the files. If v points to a struct, its
// nil lists are written as empty lists.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() && p.Elem().Kind() == reflect.Struct {
		v = withLists(p.Elem())
	}
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// withLists returns a copy of a struct in which no list is nil.
func withLists(v reflect.Value) any {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	for i := range c.NumField() {
		f := c.Field(i)
		if f.CanSet() && f.Kind() == reflect.Slice && f.IsNil() && f.Type().Elem().Kind() != reflect.Uint8 {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
	return c.Addr().Interface()
}
