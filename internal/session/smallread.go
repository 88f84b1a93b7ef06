package session

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// reader reads many small files into one buffer. What it returns is valid until its next call.
type reader struct{ buf []byte }

func newReader() *reader { return &reader{buf: make([]byte, 16<<10)} }

// maxSmall bounds the JSON files that an overview reads.
const maxSmall = 64 << 20

// file reads a file of a session's directory.
func (rd *reader) file(dir, name string) ([]byte, error) {
	f, err := os.Open(dir + "/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n := 0
	for {
		got, err := f.Read(rd.buf[n:])
		n += got
		if err == io.EOF || err == nil && n < len(rd.buf) && got == 0 {
			return rd.buf[:n], nil
		}
		if err != nil {
			return nil, err
		}
		if n == len(rd.buf) {
			if n >= maxSmall {
				return nil, errors.New("is too large")
			}
			rd.buf = append(rd.buf, make([]byte, len(rd.buf))...)
		}
	}
}

// tail is TailLines, starting small: the last stop is the last line of most records.
func (rd *reader) tail(dir, name string, fn func(off int64, line []byte) (more bool)) error {
	_, err := TailLines(dir+"/"+name, fn)
	return err
}

// commonFromLink finds the source's common directory by the worktree's own link to it, for a session whose checkpoint
// does not tell: workspace/.git says "gitdir: <common>/worktrees/<name>".
func (rd *reader) commonFromLink(s *Session) string {
	data, err := rd.file(s.Workspace(), ".git")
	if err != nil {
		return ""
	}
	admin, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok || filepath.Base(filepath.Dir(admin)) != "worktrees" {
		return ""
	}
	return filepath.Dir(filepath.Dir(admin))
}

func trimSpace(data []byte) []byte { return bytes.TrimSpace(data) }
