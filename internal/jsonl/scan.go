package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// tailBlock is what reading backwards begins with: most of what is looked for is among the last few lines.
const tailBlock = 8 << 10

// ErrShrunk says that a file is shorter than the place where reading was to go on: it was rewound or replaced.
var ErrShrunk = errors.New("the file is shorter than what was read of it before")

// ErrStop, returned by the function that a scan calls, ends the scan behind that line without an error.
var ErrStop = errors.New("stop the scan")

// Scan reads a file from the byte offset from on, which must be the beginning of a line. fn gets each line that is a
// JSON object, without its newline, valid until fn returns, with the offset at which it begins. An error of fn ends the
// scan and is returned, unless it is ErrStop. Lines that are something else are skipped and counted, empty ones only
// skipped. A last line without its newline is handed over if it is a whole object, and otherwise left for later: end
// lies before it. A missing file is an empty one; one shorter than from is ErrShrunk. Memory is bounded by the longest
// line, and that by 64 MiB.
func Scan(path string, from int64, fn func(off int64, line []byte) error) (end int64, skipped int, err error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if isMissing(err) && from == 0 {
		return 0, 0, nil
	}
	if isMissing(err) {
		return from, 0, ErrShrunk
	}
	if err != nil {
		return from, 0, err
	}
	defer f.Close()
	if from > 0 {
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
	}
	end, skipped, err = scanReader(f, from, fn)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return end, skipped, err
}

// scanReader is Scan on what r gives, which begins at the offset off.
func scanReader(r io.Reader, off int64, fn func(off int64, line []byte) error) (end int64, skipped int, err error) {
	br := bufio.NewReaderSize(r, 256<<10)
	var long []byte // a line longer than br's buffer
	tooLong := false
	start := off
	for {
		part, err := br.ReadSlice('\n')
		off += int64(len(part))
		if err == bufio.ErrBufferFull || (err == io.EOF && len(part) > 0 && len(long) > 0) {
			if tooLong = tooLong || len(long)+len(part) > MaxLine; tooLong {
				long = long[:0]
			} else {
				long = append(long, part...)
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			part = nil
		}
		if err != nil && err != io.EOF {
			return start, skipped, err
		}
		line := part
		if len(long) > 0 {
			if tooLong = tooLong || len(long)+len(part) > MaxLine; !tooLong {
				long = append(long, part...)
			}
			line = long
		}
		whole := err == nil
		line = bytes.TrimSpace(line)
		switch {
		case !tooLong && len(line) == 0:
		case !tooLong && IsObject(line):
			if err := fn(start, line); errors.Is(err, ErrStop) {
				return off, skipped, nil
			} else if err != nil {
				return start, skipped, err
			}
			whole = true
		case whole:
			skipped++
		}
		if whole {
			start = off
		}
		if err == io.EOF {
			return start, skipped, nil
		}
		long, tooLong = long[:0], false
		if cap(long) > 1<<20 {
			long = nil // one huge line must not cost its memory for the rest of the scan
		}
	}
}

// Tail is Scan backwards, from the last line until fn returns false. What it costs depends on how far fn goes, not on
// the length of the file.
func Tail(path string, fn func(off int64, line []byte) (more bool)) (skipped int, err error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if isMissing(err) {
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
	skipped, err = TailReader(f, info.Size(), tailBlock, fn)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return skipped, err
}

// TailReader is Tail on the first size bytes of r; block is how much it reads at first.
func TailReader(
	r io.ReaderAt, size int64, block int, fn func(off int64, line []byte) (more bool),
) (skipped int, err error) {
	pos := size      // where buf begins
	var buf []byte   // read, and not yet handed out
	tooLong := false // buf is the end of a line that is too long, and was dropped
	unended := true  // what is at the end of buf has no newline after it
	for {
		i := bytes.LastIndexByte(buf, '\n')
		if i < 0 && pos > 0 {
			if len(buf) > MaxLine {
				buf, tooLong = nil, true
			}
			// Reading as much again as is there already keeps a long line linear.
			n := min(int64(max(block, len(buf))), pos)
			next := make([]byte, n, n+int64(len(buf)))
			if _, err := r.ReadAt(next, pos-n); err != nil && err != io.EOF {
				return skipped, err
			}
			buf = append(next, buf...)
			pos -= n
			block = 64 << 10
			continue
		}
		tooLong = tooLong || len(buf)-i > MaxLine
		line := bytes.TrimSpace(buf[i+1:])
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
		buf, tooLong, unended = buf[:i], false, false
	}
}
