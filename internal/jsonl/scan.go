package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unsafe"
)

// tailBlock is the size of one read when a file is read backwards.
const tailBlock = 64 << 10

// ErrShrunk means that the file is shorter than the start offset, because it was rewound or replaced.
var ErrShrunk = errors.New("the file is shorter than before")

// ErrStop, as the result of the function that a scan calls, ends the scan after the current line without an error.
var ErrStop = errors.New("stop the scan")

// Scan reads a file, starting at the byte offset from, which must be the beginning of a line. It calls fn with each
// line that is a JSON object, and its offset. The line has no newline and is valid until fn returns. An error of fn
// ends the scan and is returned, unless it is ErrStop. Scan skips and counts lines that are not JSON objects, and skips
// empty lines without counting them. fn also gets a last line without a newline if it is a whole object; otherwise end
// is the offset at which that line begins. A missing file counts as empty. If the file is shorter than from, the error
// is ErrShrunk. Scan needs memory for the longest line, at most 64 MiB.
func Scan(path string, from int64, fn func(off int64, line []byte) error) (end int64, skipped int, err error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if err = nil; from > 0 {
			err = ErrShrunk
		}
		return from, 0, err
	}
	if err != nil {
		return from, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return from, 0, err
	}
	if info.Size() < from {
		return from, 0, ErrShrunk
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, 0, err
	}
	br := bufio.NewReaderSize(f, int(min(64<<10, info.Size()-from+1)))
	for end = from; ; {
		line, n, err := readLine(br)
		if err != nil && err != io.EOF {
			return end, skipped, fmt.Errorf("%s: %w", path, err)
		}
		whole := err == nil
		if line = bytes.TrimSpace(line); IsObject(line) {
			if err := fn(end, line); errors.Is(err, ErrStop) {
				return end + n, skipped, nil
			} else if err != nil {
				return end, skipped, fmt.Errorf("%s: %w", path, err)
			}
			whole = true
		} else if whole && (len(line) > 0 || n > MaxLine) {
			skipped++
		}
		if whole {
			end += n
		}
		if err == io.EOF {
			return end, skipped, nil
		}
	}
}

// readLine reads a line with its newline, valid until the next call, and returns its length. A line that is too long is
// returned as empty.
func readLine(br *bufio.Reader) (line []byte, n int64, err error) {
	line, err = br.ReadSlice('\n')
	n = int64(len(line))
	if err != bufio.ErrBufferFull {
		return line, n, err
	}
	line = bytes.Clone(line)
	for err == bufio.ErrBufferFull {
		var part []byte
		part, err = br.ReadSlice('\n')
		if n += int64(len(part)); n > MaxLine {
			line = nil
		} else {
			line = append(line, part...)
		}
	}
	return line, n, err
}

// Tail is Scan backwards, from the last line until fn returns false. Its cost depends on the number of lines read, not
// on the length of the file. fn must not keep the line.
func Tail(path string, fn func(off int64, line []byte) (more bool)) (skipped int, err error) {
	f, err := openRegular(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	pos := info.Size() // offset of rest in the file
	var rest []byte    // read, but not handed out yet
	tooLong := false   // rest is part of a line that is too long
	for unended := true; ; unended = false {
		i := bytes.LastIndexByte(rest, '\n')
		for i < 0 && pos > 0 {
			if len(rest) > MaxLine {
				rest, tooLong = nil, true
			}
			n := min(int64(max(tailBlock, len(rest))), pos) // doubling keeps a long line linear
			more := make([]byte, int(n)+len(rest))
			if _, err := f.ReadAt(more[:n], pos-n); err != nil && err != io.EOF {
				return skipped, fmt.Errorf("%s: %w", path, err)
			}
			copy(more[n:], rest)
			rest, pos = more, pos-n
			i = bytes.LastIndexByte(rest, '\n')
		}
		tooLong = tooLong || len(rest)-i > MaxLine
		line := bytes.TrimSpace(rest[i+1:])
		switch {
		case !tooLong && len(line) == 0:
		case !tooLong && IsObject(line):
			if !fn(pos+int64(i)+1, line) {
				return skipped, nil
			}
		case !unended:
			skipped++
		}
		if i < 0 {
			return skipped, nil
		}
		rest, tooLong = rest[:i], false
	}
}

// Text returns line as a string without a copy. The string is valid only while line does not change: kept parts must be
// cloned.
func Text(line []byte) string { return unsafe.String(unsafe.SliceData(line), len(line)) }
