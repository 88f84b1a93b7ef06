package judge

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path"
)

// entry is a file of the index.
type entry struct {
	path string
	mode uint32
	oid  string
	stat string // what git noted of the file when it wrote it
}

const (
	statSize     = 40 // ctime, mtime, dev, ino, mode, uid, gid, size
	gitlink      = 0o160000
	extendedFlag = 0x4000
	headerSize   = 12
)

var errIndex = errors.New("the index of the judge's place cannot be read")

// parseIndex reads an index of version 2 or 3, the only ones that the place's settings let git write.
func parseIndex(data []byte, hashSize int) ([]entry, error) {
	if len(data) < headerSize || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	if v := binary.BigEndian.Uint32(data[4:]); v != 2 && v != 3 {
		return nil, errIndex
	}
	n := int(binary.BigEndian.Uint32(data[8:]))
	fixed := statSize + hashSize + 2
	if n > len(data)/fixed {
		return nil, errIndex
	}
	entries := make([]entry, 0, n)
	rest := data[headerSize:]
	for range n {
		if len(rest) < fixed {
			return nil, errIndex
		}
		e := entry{
			mode: binary.BigEndian.Uint32(rest[24:]),
			oid:  hex.EncodeToString(rest[statSize : statSize+hashSize]),
			stat: string(rest[:statSize]),
		}
		name := fixed
		if binary.BigEndian.Uint16(rest[fixed-2:])&extendedFlag != 0 {
			name += 2
		}
		if name > len(rest) {
			return nil, errIndex
		}
		end := bytes.IndexByte(rest[name:], 0)
		if end < 0 {
			return nil, errIndex
		}
		e.path = string(rest[name : name+end])
		entries = append(entries, e)
		// Entries are padded with one to eight NULs to a multiple of eight.
		size := (name + end + 8) / 8 * 8
		if size > len(rest) {
			return nil, errIndex
		}
		rest = rest[size:]
	}
	return entries, nil
}

// directories are the directories that hold the entries, "." for the top.
func directories(entries []entry) map[string]bool {
	dirs := map[string]bool{".": true}
	for _, e := range entries {
		for dir := path.Dir(e.path); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return dirs
}
