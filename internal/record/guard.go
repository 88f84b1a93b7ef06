package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// TamperedError says that somebody else changed the record while it was open. Nothing but the stop is written to it any
// more by the process that found out.
type TamperedError struct{ How string }

func (e *TamperedError) Error() string { return "the record was changed by somebody else: it " + e.How }

// A record of a gigabyte takes a second of a processor to hash, which a run that begins has a better use for: a long
// one is hashed after a pause, or when its hash is asked for.
const (
	longRecord = 1 << 20
	hashPause  = 300 * time.Millisecond
)

// asideDir is where, beside the record, what somebody else put into its place is kept.
const asideDir = "aside"

// guard knows what the record has to hold: its length and hash, and when its file last changed. A look costs one call
// as long as nobody else touched the file; only then is it read.
type guard struct {
	path    string
	f       *os.File
	found   int64          // how long the record was when it was opened
	begin   func()         // hashes what was found
	hash    chan hash.Hash // of all but pending, once the found bytes are hashed; nil where they could not be read
	sure    bool           // nobody touched the file from when it was opened until it was hashed
	pending []byte         // what this process appended and the hash does not have yet
	size    int64
	last    unix.Stat_t
	loose   bool // a write failed: what lies behind size is this process's own
}

// newGuard takes the record at path for what it is now.
func newGuard(path string) (*guard, error) {
	f, err := jsonl.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	g := &guard{path: path, f: f, hash: make(chan hash.Hash, 1)}
	if err := unix.Fstat(int(f.Fd()), &g.last); err != nil {
		f.Close()
		return nil, err
	}
	g.found, g.size = g.last.Size, g.last.Size
	g.begin = sync.OnceFunc(func() { g.hash <- hashOf(f, g.found) })
	if g.found < longRecord {
		g.begin()
	} else {
		time.AfterFunc(hashPause, g.begin)
	}
	return g, nil
}

// hashOf is the hash of the first n bytes of f, nil where they cannot be read.
func hashOf(f *os.File, n int64) hash.Hash {
	h := sha256.New()
	if got, err := io.Copy(h, io.NewSectionReader(f, 0, n)); err != nil || got != n {
		return nil
	}
	return h
}

// wrote takes note of a line that this process appended.
func (g *guard) wrote(line []byte, err error) {
	if g.loose = err != nil; g.loose {
		return
	}
	g.pending = append(g.pending, line...)
	select {
	case h := <-g.hash:
		g.catchUp(h)
	default:
	}
	g.size += int64(len(line))
	_ = unix.Lstat(g.path, &g.last)
}

// catchUp adds what was appended to the hash, and puts it back.
func (g *guard) catchUp(h hash.Hash) {
	if h != nil {
		h.Write(g.pending)
	}
	g.pending = g.pending[:0]
	g.hash <- h
}

// sum is the hash of the record as this process knows it, nil where what it found could not be read.
func (g *guard) sum() (sum []byte) {
	g.begin()
	h := <-g.hash
	g.catchUp(h)
	if h != nil {
		sum = h.Sum(nil)
	}
	return sum
}

// intact reports whether nobody else touched the file, or nobody to any effect.
func (g *guard) intact() bool {
	var now unix.Stat_t
	hashed := len(g.hash) > 0
	err := unix.Lstat(g.path, &now)
	if err != nil || now.Dev != g.last.Dev || now.Ino != g.last.Ino {
		return false
	}
	if now.Size == g.last.Size && now.Mtim == g.last.Mtim && now.Ctim == g.last.Ctim {
		g.sure = g.sure || hashed
		return true
	}
	if !g.loose && (!g.sure || now.Size != g.size) || !g.known() || !g.holds() {
		return false
	}
	g.last = now
	return true
}

// known reports whether what was found could be read.
func (g *guard) known() bool { return g.sum() != nil }

// holds reports whether the file begins with what this process knows of it.
func (g *guard) holds() bool {
	known, there := g.sum(), hashOf(g.f, g.size)
	return known == nil || there != nil && bytes.Equal(known, there.Sum(nil))
}

// mend puts back what can be put back and says how the record was changed. What others made of it is kept aside.
func (g *guard) mend() (how string, err error) {
	var now unix.Stat_t
	err = unix.Lstat(g.path, &now)
	whole := g.known() && g.holds()
	switch {
	case err == nil && now.Dev == g.last.Dev && now.Ino == g.last.Ino && whole && now.Size == g.size:
		return "was touched before it was known", nil
	case err == nil && now.Dev == g.last.Dev && now.Ino == g.last.Ino && whole:
		how = fmt.Sprintf("got %d bytes more, which are kept in %s", now.Size-g.size, asideDir)
		return how, g.cutSurplus()
	case err == nil && now.Dev == g.last.Dev && now.Ino == g.last.Ino:
		how = fmt.Sprintf("lost some of its %d bytes or has others in their place; there are %d now", g.size, now.Size)
		return how, nil
	case !whole:
		how = "was removed or replaced by another file, and what it held was changed"
		return how, g.moveAside()
	}
	if err := g.moveAside(); err != nil {
		return "", err
	}
	return "was removed or replaced by another file, and is back as it was", g.putBack()
}

// cutSurplus takes away what others added.
func (g *guard) cutSurplus() error {
	to, err := g.asideFile()
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, io.NewSectionReader(g.f, g.size, jsonl.MaxLine)); err != nil {
		return err
	}
	return os.Truncate(g.path, g.size)
}

// moveAside takes what stands in the record's place away.
func (g *guard) moveAside() error {
	to, err := g.asideFile()
	if err != nil {
		return err
	}
	to.Close()
	err = os.Rename(g.path, to.Name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// A directory does not go where a file is.
		os.Remove(to.Name())
		err = os.Rename(g.path, to.Name())
	}
	if fi, e := os.Lstat(to.Name()); e == nil && fi.Mode().IsRegular() {
		e = os.Chmod(to.Name(), 0o600)
		err = errors.Join(err, e)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (g *guard) asideFile() (*os.File, error) {
	dir := filepath.Join(filepath.Dir(g.path), asideDir)
	if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
		os.Remove(dir) // a link of somebody else's, which would lead what is kept elsewhere
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.CreateTemp(dir, filepath.Base(g.path)+"-*")
}

// putBack writes the record anew from the file that is still open.
func (g *guard) putBack() error {
	return jsonl.Replace(g.path, true, func(to io.Writer) error {
		_, err := io.Copy(to, io.NewSectionReader(g.f, 0, g.size))
		return err
	})
}
