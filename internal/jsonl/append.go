// Package jsonl reads and writes a session's line files: one JSON object per line, appended with one write, repaired
// after a crash, and read forwards and backwards in limited memory.
package jsonl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/tidwall/gjson"
)

// MaxLine limits one line of a JSON-lines file, and with it the memory of every reader. Longer lines are skipped.
const MaxLine = 64 << 20

// IsObject reports whether line is one whole JSON object. gjson checks faster than encoding/json, but uses the stack
// for the nesting and has no bound. The bound of encoding/json is 10,000 levels.
func IsObject(line []byte) bool {
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	if bytes.Count(line, []byte{'{'})+bytes.Count(line, []byte{'['}) >= 10_000 {
		return json.Valid(line)
	}
	return gjson.ValidBytes(line)
}

// Repair is the damage at the end of a file and its repair.
type Repair struct {
	CutBytes     int64 // a torn last line of this length was cut off
	AddedNewline bool  // the last line lacked only its newline
}

// Why describes the repair in words, or is empty.
func (r Repair) Why() string {
	switch {
	case r.CutBytes > 0:
		return "the last line was torn and has been cut off"
	case r.AddedNewline:
		return "the last line had no newline; it was added"
	}
	return ""
}

// RepairFile makes a file end with a complete line.
func RepairFile(path string) (Repair, error) {
	f, err := OpenFile(path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return Repair{}, err
	}
	defer f.Close()
	return repair(f)
}

// Unended returns the repair that RepairFile would make. It changes nothing.
func Unended(path string) (Repair, error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return Repair{}, err
	}
	defer f.Close()
	_, r, err := unended(f)
	return r, err
}

// repair makes a file, opened with O_APPEND, end with a complete line.
func repair(f *os.File) (Repair, error) {
	start, r, err := unended(f)
	switch {
	case err != nil:
	case r.AddedNewline:
		_, err = f.Write([]byte{'\n'})
	case r.CutBytes > 0:
		err = f.Truncate(start)
	}
	return r, err
}

// unended returns the repair of a file and the start of its last line. A line without its newline is complete if it is
// a JSON object, because a prefix of a JSON object is never an object.
func unended(f *os.File) (start int64, r Repair, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, r, err
	}
	size := info.Size()
	if start, err = lastLine(f, size); err != nil || start == size {
		return start, r, err
	}
	var tail []byte // none if it is longer than a line may be
	if size-start <= MaxLine {
		tail = make([]byte, size-start)
		if _, err := f.ReadAt(tail, start); err != nil {
			return start, r, err
		}
	}
	if IsObject(bytes.TrimSpace(tail)) {
		return start, Repair{AddedNewline: true}, nil
	}
	return start, Repair{CutBytes: size - start}, nil
}

// lastLine returns the offset of the line that begins after the last newline before size.
func lastLine(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, tailBlock)
	for end := size; end > 0; {
		part := buf[:min(end, tailBlock)]
		end -= int64(len(part))
		if _, err := r.ReadAt(part, end); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// File is a file of lines open for appending. It is safe for concurrent use.
type File struct {
	mu    sync.Mutex
	f     *os.File
	size  int64 // size of the complete lines
	dirty bool  // a failed write may have left bytes after size that could not be cut off
	fresh bool  // the file may be new, and its name not yet durable
}

// Open opens path (0600) for appending, made if missing, with its tail repaired.
func Open(path string) (*File, Repair, error) {
	f, err := OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, Repair{}, err
	}
	done, err := repair(f)
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	if err != nil {
		f.Close()
		return nil, Repair{}, fmt.Errorf("repair %s: %w", path, err)
	}
	return &File{f: f, size: info.Size(), fresh: info.Size() == 0}, done, nil
}

// Add appends one line with its newline by one write(2). It removes a partial write, so the file always ends with a
// complete line.
func (a *File) Add(line []byte, sync bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.f == nil {
		return fs.ErrClosed
	}
	if a.dirty {
		if err := a.f.Truncate(a.size); err != nil {
			return err
		}
		a.dirty = false
	}
	if _, err := a.f.Write(line); err != nil {
		a.dirty = a.f.Truncate(a.size) != nil
		return err
	}
	a.size += int64(len(line))
	if !sync {
		return nil
	}
	if err := a.f.Sync(); err != nil || !a.fresh {
		return err
	}
	a.fresh = false
	return SyncDir(filepath.Dir(a.f.Name()))
}

// Same reports whether the path still names this file, and nothing else has appended to it.
func (a *File) Same() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.f == nil {
		return false, fs.ErrClosed
	}
	ours, err := a.f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(a.f.Name())
	return err == nil && os.SameFile(ours, there) && (a.dirty || there.Size() == a.size), nil
}

// Size returns the length of the file in bytes.
func (a *File) Size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// Close closes the file. Adding to it after that is an error.
func (a *File) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.f == nil {
		return nil
	}
	err := a.f.Close()
	a.f = nil
	return err
}

// AppendOnce appends one line, synced, to a file that is not kept open.
func AppendOnce(path string, line []byte) error {
	a, _, err := Open(path)
	if err != nil {
		return err
	}
	if err = cmp.Or(a.Add(line, true), a.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	return nil
}
