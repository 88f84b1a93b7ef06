package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	readCap   = 96 << 10 // bytes of a file in one answer
	binaryLen = 8000     // as in git, a NUL in the first bytes makes a file binary
)

// open opens a regular file or a directory for reading. It refuses other files (a pipe, a device) without waiting for
// them.
func (b *BuiltinTools) open(name, rel string) (*os.File, os.FileInfo, error) {
	f, err := b.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, describePath(name, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = describePath(name, err)
	case b.isGitFile(info):
		err = errGitsOwn
	case !info.IsDir() && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", text.Clip(name, 200))
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// read reads a text file and returns its size. It returns at most most+1 bytes, so that the caller notices a longer
// file.
func (b *BuiltinTools) read(name, rel string, most int64) (data []byte, size int64, err error) {
	f, info, err := b.open(name, rel)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if info.IsDir() {
		return nil, 0, fmt.Errorf("%s is a directory; list it with glob", text.Clip(name, 200))
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, 0, describePath(name, err)
	}
	if bytes.IndexByte(data[:min(len(data), binaryLen)], 0) >= 0 {
		return nil, 0, fmt.Errorf("%s is a binary file of %d bytes", text.Clip(name, 200), info.Size())
	}
	return data, info.Size(), nil
}

func (b *BuiltinTools) readFile(_ context.Context, in arguments) (ToolAnswer, error) {
	data, size, err := b.read(in.text["path"], in.rel, readCap)
	switch {
	case err != nil:
		return ToolAnswer{}, err
	case len(data) == 0:
		return ToolAnswer{Output: "(the file is empty)"}, nil
	case len(data) > readCap:
		return ToolAnswer{Output: b.cutFile(data[:readCap], size)}, nil
	}
	return ToolAnswer{Output: readable(data)}, nil
}

// cutFile returns the beginning of a long file, up to the end of a line, and a note.
func (b *BuiltinTools) cutFile(data []byte, size int64) string {
	rest := "find the rest with grep, or read a part with sed -n in bash"
	if b.opts.ReadOnly {
		rest = "find the rest with grep"
	}
	if i := bytes.LastIndexByte(data, '\n'); i > 0 {
		data = data[:i+1]
	}
	lines := bytes.Count(data, []byte("\n"))
	return fmt.Sprintf("%s\n[cut here: %d of %d bytes (%d lines) are shown; %s]",
		readable(data), len(data), size, lines, rest)
}

// readable makes text valid for a request. It adds a note if that changed the text.
func readable(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD") +
		"\n[the file is not valid UTF-8; the bytes in question are shown as \uFFFD]"
}
