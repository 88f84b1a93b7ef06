package gitx

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/text"
)

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
	return "", err == nil && names && checkGitDir(common) == nil && !Absent(filepath.Join(common, "refs"))
}

// readHead is the commit of the branch that a git directory's HEAD names, where git's files tell it.
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

// Tags lists the tags of a repository, as packed-refs has them.
func (g *Git) Tags(ctx context.Context, common string) ([]byte, error) {
	loose, err := os.ReadDir(filepath.Join(common, "refs/tags"))
	packed, is := packedRefs(common)
	if is && len(loose) == 0 && (err == nil || isAbsent(err)) && !bytes.Contains(packed, []byte(" refs/tags/")) {
		return nil, nil
	}
	return g.Read(ctx, InRepo(common, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/"))
}

// packedRefs is the file of packed refs, which need not be there. It is none where git keeps refs in another way.
func packedRefs(common string) (packed []byte, is bool) {
	packed, err := readFile(filepath.Join(common, "packed-refs"))
	return packed, (err == nil || isAbsent(err)) && !hasReftable(common)
}

func hasReftable(common string) bool { return !Absent(filepath.Join(common, "reftable")) }
