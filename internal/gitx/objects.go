package gitx

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// CopyObjects copies the objects that refs of one repository reach into another. No ref names them there: the caller
// makes one at once. The user's rules for transports are for the remotes of others, and do not apply.
func (g *Git) CopyObjects(ctx context.Context, from, to string, refs ...string) error {
	fetch := InRepo(to, append([]string{"-c", "fetch.writeCommitGraph=false", "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune", "--refmap=", "--",
		from}, refs...)...)
	fetch.Vars = []string{"GIT_ALLOW_PROTOCOL=file"}
	_, err := g.Mutate(ctx, fetch)
	return err
}

// checkObject compares a loose object's file with its id: the hash of the decompressed content and header. The file
// must be one zlib stream without trailing bytes.
func checkObject(ctx context.Context, name, id string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return errors.Join(err, errors.New("it is not a file"))
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
		return errors.New("its hash is another")
	}
	return nil
}

// IsBlob reports whether an id is that of a file's content, however its lines end.
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

// newHash is the function by which an id was made.
func newHash(id string) hash.Hash {
	if len(id) == 2*sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// FilesAt returns the contents of files of a commit by their paths. It follows links within the commit, and leaves out
// missing paths and directories. With commit "" the paths are object ids.
func (g *Git) FilesAt(ctx context.Context, common, commit string, paths []string) (map[string][]byte, error) {
	var in strings.Builder
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

// after returns the output after an object of this size and its newline.
func after(out []byte, size string) []byte {
	return out[min(atoi(size)+1, len(out)):]
}
