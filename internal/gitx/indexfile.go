package gitx

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// IndexEntry is a file of an index.
type IndexEntry struct {
	Path string
	Mode uint32
	OID  string // raw
	Stat string // what git noted of the file when it wrote the entry
}

const (
	statSize   = 40 // ctime, mtime, dev, ino, mode, uid, gid, size
	headerSize = 12
	// extensionHead is the length of an extension's name and size. A name with a capital first letter can be ignored.
	extensionHead = 8
	extendedFlag  = 0x4000
)

var errIndex = errors.New("the index cannot be read")

// ParseIndex reads an index of version 2 or 3 (gitformat-index(5)); hashSize is the length of a raw object id. Another
// version is an error, and so is an extension that must be understood: some entries are elsewhere then.
func ParseIndex(data []byte, hashSize int) ([]IndexEntry, error) {
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
	entries := make([]IndexEntry, 0, n)
	rest, text := data[headerSize:], string(data) // one copy, of which all strings are parts
	for range n {
		if len(rest) < fixed+2 {
			return nil, errIndex
		}
		at := len(data) - len(rest)
		flags := binary.BigEndian.Uint16(rest[fixed-2:])
		e := IndexEntry{
			Mode: binary.BigEndian.Uint32(rest[24:]),
			OID:  text[at+statSize : at+statSize+hashSize],
			Stat: text[at : at+statSize],
		}
		name := fixed
		if flags&extendedFlag != 0 {
			name += 2
		}
		end := bytes.IndexByte(rest[name:], 0)
		if end < 0 {
			return nil, errIndex
		}
		e.Path = text[at+name : at+name+end]
		entries = append(entries, e)
		// Entries are padded with one to eight NULs to a multiple of eight.
		size := (name + end + 8) / 8 * 8
		if size > len(rest) {
			return nil, errIndex
		}
		rest = rest[size:]
	}
	for len(rest) > hashSize { // what comes last is a hash of it all
		if len(rest) < extensionHead || rest[0] < 'A' || rest[0] > 'Z' {
			return nil, errIndex
		}
		size := int(binary.BigEndian.Uint32(rest[4:])) + extensionHead
		if size > len(rest) {
			return nil, errIndex
		}
		rest = rest[size:]
	}
	return entries, nil
}
