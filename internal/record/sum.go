package record

import (
	"crypto/sha256"
	"encoding"
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

// Hashed is the state of the SHA-256 of a record's first Size bytes. The zero value is that of none.
type Hashed struct {
	Size  int64
	State []byte
}

// sumFrom returns the hash of the file at path that continues from h.
func sumFrom(path string, h Hashed) *sum {
	s := &sum{path: path, hash: sha256.New()}
	if h.Size > 0 && s.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(h.State) == nil {
		s.n = h.Size
	}
	return s
}

// Hash continues h to the first size bytes of the record at path. It reads only the bytes after h.
func Hash(path string, h Hashed, size int64) (Hashed, error) {
	s := sumFrom(path, h)
	if size > s.n { // else there may be no record yet
		if _, err := s.upTo(size); err != nil {
			return Hashed{}, err
		}
	}
	state, err := s.hash.(encoding.BinaryMarshaler).MarshalBinary()
	return Hashed{Size: size, State: state}, err
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
