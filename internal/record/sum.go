package record

import (
	"encoding/hex"
	"hash"
	"io"
	"os"
	"sync"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// sum is the hash of the beginning of a file that only grows.
type sum struct {
	mu   sync.Mutex
	path string
	hash hash.Hash
	n    int64 // the bytes that are in it
}

// upTo returns the hash of the first size bytes. It reads only bytes that are not hashed yet.
func (s *sum) upTo(size int64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := jsonl.OpenFile(s.path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	n, err := io.Copy(s.hash, io.NewSectionReader(f, s.n, size-s.n))
	s.n += n
	if err == nil && s.n < size {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(s.hash.Sum(nil)), err
}
