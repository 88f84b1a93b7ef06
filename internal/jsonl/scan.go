package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"unsafe"
)

// tailBlock is the first block size of reading backwards, in bytes: most searches end within the last few lines.
const tailBlock = 2 << 10

// tailRooms are reused buffers for reading backwards: a list reads the ends of ten thousand records.
var tailRooms = sync.Pool{New: func() any { return new([tailRoom]byte) }}

const tailRoom = 32 << 10

// ErrShrunk: the file is shorter than the offset at which to continue, because it was rewound or replaced.
var ErrShrunk = errors.New("the file is shorter than before")

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
	return TailFrom(path, math.MaxInt64, nil, fn)
}

// TailFrom is Tail of the file's first end bytes, where a line ends. Lines for which leave returns true are skipped
// before they are parsed; leave may be nil.
func TailFrom(path string, end int64, leave func(line []byte) bool,
	fn func(off int64, line []byte) (more bool)) (skipped int, err error) {
	f, err := openReader(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	first := tailRooms.Get().(*[tailRoom]byte)
	defer tailRooms.Put(first)
	room := first[:]
	lo, hi := len(room), len(room) // between them are read lines that fn has not got yet
	pos := min(f.size, end)        // where that begins in the file
	block := tailBlock             // how much is read next
	tooLong := false               // it is the rest of a line that is too long
	unended := true                // its last line has no newline
	for {
		i := bytes.LastIndexByte(room[lo:hi], '\n')
		if i < 0 && pos > 0 {
			if hi-lo > MaxLine {
				hi, tooLong = lo, true
			}
			// Doubling the read size keeps a long line linear.
			n := int(min(int64(max(block, hi-lo)), pos))
			if n > lo {
				next := room
				if n+hi-lo > len(room) {
					next = make([]byte, max(n+hi-lo, 2*len(room)))
				}
				lo, hi = len(next)-copy(next[len(next)-(hi-lo):], room[lo:hi]), len(next)
				room = next
			}
			got, err := f.ReadAt(room[lo-n:lo], pos-int64(n))
			if err != nil && err != io.EOF {
				return skipped, fmt.Errorf("%s: %w", path, err)
			}
			clear(room[lo-n+got : lo]) // the file was cut since it was opened; the old bytes are stale
			lo, pos = lo-n, pos-int64(n)
			block = min(4*block, 64<<10)
			continue
		}
		tooLong = tooLong || hi-lo-i > MaxLine
		line := bytes.TrimSpace(room[lo+i+1 : hi])
		switch {
		case !tooLong && (len(line) == 0 || leave != nil && leave(line)):
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
		hi, tooLong, unended = lo+i, false, false
	}
}

// Text returns line as a string without a copy. The string is valid only while line does not change: kept parts must be
// cloned.
func Text(line []byte) string { return unsafe.String(unsafe.SliceData(line), len(line)) }
