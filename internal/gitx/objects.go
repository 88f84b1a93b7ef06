package gitx

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/text"
)

// CopyObjects copies the objects reachable from a repository's refs into another repository. No ref names them there
// until the caller makes one. The user's transport rules do not apply, because they are for remotes of others.
func (g *Git) CopyObjects(ctx context.Context, from, to string, refs ...string) error {
	fetch := InRepo(to, append([]string{"-c", "fetch.writeCommitGraph=false", "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune", "--refmap=", "--",
		from}, refs...)...)
	fetch.Vars = []string{"GIT_ALLOW_PROTOCOL=file"}
	_, err := g.Mutate(ctx, fetch)
	return err
}

// checkObject compares the file of a loose object with its id, the hash of the decompressed content and header. The
// file must be one zlib stream without trailing bytes.
func checkObject(ctx context.Context, name, id string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return errors.Join(err, errors.New("not a regular file"))
	}
	in := bufio.NewReader(f)
	z, err := zlib.NewReader(in)
	if err != nil {
		return err
	}
	h := newHash(id)
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(h, z, 1<<20)
	}
	if err != io.EOF {
		return errors.Join(ctx.Err(), err)
	}
	if _, err := in.ReadByte(); err != io.EOF || hex.EncodeToString(h.Sum(nil)) != id {
		return errors.New("the hash does not match the content")
	}
	return nil
}

// IsBlob reports whether an id is the id of a file's content, with any line ends.
func IsBlob(id string, content []byte) bool {
	for _, c := range [][]byte{content, bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))} {
		h := newHash(id)
		fmt.Fprintf(h, "blob %d\x00", len(c))
		h.Write(c)
		if hex.EncodeToString(h.Sum(nil)) == id {
			return true
		}
	}
	return false
}

// newHash returns the hash function of an id.
func newHash(id string) hash.Hash {
	if len(id) == 2*sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// FilesAt returns the contents of a commit's files by path. It follows links within the commit, and skips missing
// paths, directories and names with a newline. With commit "" the paths are object ids.
func (g *Git) FilesAt(ctx context.Context, common, commit string, paths []string) (map[string][]byte, error) {
	var in strings.Builder
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return strings.Contains(p, "\n") })
	for _, p := range paths {
		if commit != "" {
			in.WriteString(commit + ":")
		}
		in.WriteString(p + "\n")
	}
	c := InRepo(common, "cat-file", "--batch", "--follow-symlinks")
	c.Stdin = []byte(in.String())
	out, err := g.Read(ctx, c)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, p := range paths {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		words := strings.Fields(string(head))
		if !ok || len(words) == 0 {
			break
		}
		out = rest
		switch words[0] {
		case "dangling", "loop", "notdir", "symlink":
			// The size of the missing name, then the name.
			out = after(out, words[1])
			continue
		}
		if len(words) != 3 || words[2] == "missing" {
			continue
		}
		n := atoi(words[2])
		if n > len(out) {
			break
		}
		if words[1] == "blob" {
			files[p] = out[:n:n]
		}
		out = after(out, words[2])
	}
	return files, nil
}

// blobChunk is the number of bytes of blobs that EachBlob holds at a time.
const blobChunk = 64 << 20

// EachBlob calls use with the size and the raw content of each blob. For a blob larger than 64 MB, content is only the
// beginning. A missing object is an error.
func (g *Git) EachBlob(ctx context.Context, common string, ids []string,
	use func(id string, size int64, content []byte)) error {
	for len(ids) > 0 {
		out, err := g.Read(ctx, Command{Dir: common, Objects: true, Args: []string{"cat-file", "--batch"},
			Stdin: []byte(strings.Join(ids, "\n") + "\n"), Limit: blobChunk})
		if err != nil {
			return err
		}
		for first := true; len(ids) > 0; first = false {
			head, rest, ok := bytes.Cut(out, []byte("\n"))
			words := strings.Fields(string(head))
			if !ok && !first {
				break // the chunk ends here
			}
			if len(words) != 3 || words[1] != "blob" {
				return fmt.Errorf("git cat-file: %q is not a blob", ids[0])
			}
			size, err := strconv.ParseInt(words[2], 10, 64)
			if err != nil {
				return err
			}
			if whole := size < int64(len(rest)); !whole && !first {
				break
			}
			use(ids[0], size, rest[:min(size, int64(len(rest)))])
			ids, out = ids[1:], rest[min(size+1, int64(len(rest))):]
		}
	}
	return nil
}

// after returns the output after an object of this size and its newline.
func after(out []byte, size string) []byte {
	return out[min(atoi(size)+1, len(out)):]
}

// readRef reads a ref from git's files without a process: "" if it does not exist. known is false if only git can read
// it: for reftable refs, symbolic refs, and a damaged repository.
func readRef(common, ref string) (sha string, known bool) {
	if path.Clean(ref) != ref || hasReftable(common) {
		return "", false
	}
	b, err := readFile(filepath.Join(common, filepath.FromSlash(ref)))
	if err == nil {
		sha = trimLine(b)
		return sha, text.IsObjectID(sha)
	}
	packed, is := packedRefs(common)
	if !is || !isAbsent(err) && !errors.Is(err, syscall.EISDIR) {
		return "", false
	}
	before, _, found := bytes.Cut(packed, []byte(" "+ref+"\n"))
	if found {
		sha = string(before[bytes.LastIndexByte(before, '\n')+1:])
		return sha, text.IsObjectID(sha)
	}
	head, err := readFile(filepath.Join(common, "HEAD"))
	names := strings.HasPrefix(string(head), "ref: refs/") || text.IsObjectID(trimLine(head))
	return "", err == nil && names && checkGitDir(common) == nil && !absent(filepath.Join(common, "refs"))
}

// readHead returns the commit of the branch that HEAD of a git directory names. known is false if its files do not
// tell.
func readHead(gitDir string) (sha string, known bool) {
	common, err := commonDir(gitDir)
	if err != nil {
		return "", false
	}
	head, _ := readFile(filepath.Join(gitDir, "HEAD"))
	branch, is := strings.CutPrefix(trimLine(head), "ref: refs/heads/")
	if !is {
		return "", false
	}
	sha, known = readRef(common, "refs/heads/"+branch)
	return sha, known && sha != ""
}

// packedRefs returns the file of packed refs, which may be missing. is is false if git stores refs in another way.
func packedRefs(common string) (packed []byte, is bool) {
	packed, err := readFile(filepath.Join(common, "packed-refs"))
	return packed, (err == nil || isAbsent(err)) && !hasReftable(common)
}

func hasReftable(common string) bool { return !absent(filepath.Join(common, "reftable")) }

// IndexEntry is a file of an index.
type IndexEntry struct {
	Path string
	Mode uint32
	OID  string // raw
	Stat string // stat data of the file when git wrote the entry
}

const (
	statSize     = 40 // ctime, mtime, dev, ino, mode, uid, gid, size
	headerSize   = 12
	extendedFlag = 0x4000
	skipWorktree = 0x4000 // bit of the extended flags
)

var errIndex = errors.New("the index cannot be read")

// ParseIndex reads an index of version 2 or 3 (gitformat-index(5)); hashSize is the length of a raw object id. Another
// version is an error. Entries that a sparse checkout leaves out are left out.
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
	rest, text := data[headerSize:], string(data) // one copy that all strings share
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
		name, skip := fixed, false
		if flags&extendedFlag != 0 {
			skip = binary.BigEndian.Uint16(rest[fixed:])&skipWorktree != 0
			name += 2
		}
		end := bytes.IndexByte(rest[name:], 0)
		if end < 0 {
			return nil, errIndex
		}
		e.Path = text[at+name : at+name+end]
		if !skip {
			entries = append(entries, e)
		}
		// Entries are padded with one to eight NULs to a multiple of eight.
		size := (name + end + 8) / 8 * 8
		if size > len(rest) {
			return nil, errIndex
		}
		rest = rest[size:]
	}
	return entries, nil
}
