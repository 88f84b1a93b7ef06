package judge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
	"slices"
	"strings"
)

// entry is a file of the index.
type entry struct {
	path string
	mode uint32
	oid  string // raw
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
	rest, text := data[headerSize:], string(data) // one copy, of which all strings are parts
	for range n {
		if len(rest) < fixed {
			return nil, errIndex
		}
		at := len(data) - len(rest)
		e := entry{
			mode: binary.BigEndian.Uint32(rest[24:]),
			oid:  text[at+statSize : at+statSize+hashSize],
			stat: text[at : at+statSize],
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
		e.path = text[at+name : at+name+end]
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
		addAbove(dirs, e.path)
	}
	return dirs
}

// addAbove adds the directories above name to a set that has the top, or all above one that it has.
func addAbove(dirs map[string]bool, name string) {
	for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
		dirs[dir] = true
	}
}

// find returns where the entry of a path is, or would be.
func find(entries []entry, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e entry, name string) int {
		return strings.Compare(e.path, name)
	})
}

// tracked reports whether name is an entry or a directory that holds one.
func (p *Checkout) tracked(name string) bool {
	if _, ok := find(p.entries, name); ok {
		return true
	}
	below, _ := find(p.entries, name+"/")
	return below < len(p.entries) && strings.HasPrefix(p.entries[below].path, name+"/")
}
