package session

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// reader reads many small files into one buffer. What it returns is valid until its next call.
//
// It makes the system calls itself: a list of ten thousand sessions is three files each, and an os.File costs as much
// again in registration with the runtime's poller, which regular files have no use for.
type reader struct{ buf []byte }

func newReader() *reader { return &reader{buf: make([]byte, 16<<10)} }

// maxSmall bounds the JSON files that an overview reads.
const maxSmall = 64 << 20

// overviewBlock is how much of the end of a record is read at first: a stop and a little more.
const overviewBlock = 2 << 10

// fd is an open file that only the calling goroutine knows.
type fd int

func openFD(path string) (fd, error) {
	for {
		n, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if err == nil {
			return fd(n), nil
		}
		if err != syscall.EINTR {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func (f fd) close() { _ = syscall.Close(int(f)) }

func (f fd) pread(p []byte, off int64) (int, error) {
	for {
		n, err := syscall.Pread(int(f), p, off)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// ReadAt is io.ReaderAt.
func (f fd) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		got, err := f.pread(p[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		if got == 0 {
			return n, io.EOF
		}
		n += got
	}
	return n, nil
}

// file reads a file of a session's directory.
func (rd *reader) file(dir, name string) ([]byte, error) {
	f, err := openFD(dir + "/" + name)
	if err != nil {
		return nil, err
	}
	defer f.close()
	for n := 0; ; {
		got, err := f.pread(rd.buf[n:], int64(n))
		if err != nil {
			return nil, err
		}
		// Less than there was room for is the end of a regular file; asking again would say so at the price of a call.
		if n += got; n < len(rd.buf) {
			return rd.buf[:n], nil
		}
		if n >= maxSmall {
			return nil, errors.New("is too large")
		}
		rd.buf = append(rd.buf, make([]byte, len(rd.buf))...)
	}
}

// tail is TailLines, beginning with less: the last line of most records is the stop.
func (rd *reader) tail(dir, name string, fn func(off int64, line []byte) (more bool)) (skipped int, err error) {
	f, err := openFD(dir + "/" + name)
	if err != nil {
		return 0, err
	}
	defer f.close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f), &st); err != nil {
		return 0, err
	}
	return jsonl.TailReader(f, st.Size, overviewBlock, fn)
}

// held reports whether a file or directory is locked by some process: Holder, cheaper where nobody is.
func (rd *reader) held(path string) bool {
	f, err := openFD(path)
	if err != nil {
		return false
	}
	defer f.close()
	return syscall.Flock(int(f), syscall.LOCK_SH|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}

// commonFromLink is the source's common directory by the worktree's own link to it, "" if there is none or it is
// relative: workspace/.git says "gitdir: <common>/worktrees/<name>".
func (rd *reader) commonFromLink(s *Session) string {
	data, err := rd.file(s.Workspace(), ".git")
	if err != nil {
		return ""
	}
	admin, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok || filepath.Base(filepath.Dir(admin)) != "worktrees" || !filepath.IsAbs(admin) {
		return ""
	}
	return filepath.Dir(filepath.Dir(admin))
}

func trimSpace(data []byte) []byte { return bytes.TrimSpace(data) }
