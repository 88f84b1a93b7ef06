package gitx

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// remoteConfig stands behind the user's own settings in a scratch repository that talks to a remote: nothing is
// pruned, checked out or sent beside what is asked for, no hook runs, and what comes is checked.
const remoteConfig = `[core]
	bare = true
	hooksPath = /dev/null
	sharedRepository = 0600
[fetch]
	fsckObjects = true
	recurseSubmodules = false
	prune = false
	writeCommitGraph = false
[push]
	recurseSubmodules = no
	followTags = false
	gpgSign = false
[gc]
	auto = 0
`

// OpenScratch opens the scratch repository in dir over the one at common, or makes it. It knows the remotes of that
// one, by its settings, and what is fetched or pushed leaves no trace there.
func (g *Git) OpenScratch(common, dir string) (*Scratch, error) {
	s, err := g.NewScratch(common, dir)
	if err != nil || g.dry {
		return s, err
	}
	own, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return nil, err
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(common)
	config := fmt.Sprintf("[include]\n\tpath = \"%s/config\"\n\tpath = \"%[1]s/config.worktree\"\n", quoted)
	config += string(own) + remoteConfig
	return s, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
}

// ClearLocks clears the locks in the scratch repository that a git which was killed has left, and refs that were half
// written. Its index may be that of a worktree at path.
func (s *Scratch) ClearLocks(ctx context.Context, path string) error {
	var names []string
	_ = filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "objects" {
			return filepath.SkipDir
		}
		if strings.HasPrefix(filepath.Base(name), tempMark) {
			return os.Remove(name)
		}
		if rel, relErr := filepath.Rel(s.dir, name); strings.HasSuffix(name, ".lock") && relErr == nil {
			names = append(names, rel)
		}
		return nil
	})
	return s.git.clearLocks(ctx, func() []string { return []string{s.dir, resolveParents(path)} }, s.dir, names...)
}

// Dir is where the scratch repository lies.
func (s *Scratch) Dir() string { return s.dir }

// Write writes an object, unless it is there, and returns its id. kind is blob, tree or commit.
func (s *Scratch) Write(kind string, content []byte) (id string, err error) {
	data := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	if usesSHA256(s.dir) {
		id = fmt.Sprintf("%x", sha256.Sum256(data))
	} else {
		id = fmt.Sprintf("%x", sha1.Sum(data))
	}
	if s.git.dry || s.has[id] || s.Wrote(id) {
		return id, nil
	}
	path := s.loose(id)
	var packed bytes.Buffer
	z, _ := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if _, err := z.Write(data); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return id, replaceFile(path, packed.String())
}

func (s *Scratch) loose(id string) string { return filepath.Join(s.dir, "objects", id[:2], id[2:]) }

// Wrote reports whether an object is one that Write has written into this repository.
func (s *Scratch) Wrote(id string) bool {
	fi, err := os.Stat(s.loose(id))
	return err == nil && fi.Size() > 0
}

// Ref reads a ref of the scratch repository, "" for none.
func (s *Scratch) Ref(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(name)))
	if id := trimLine(b); IsObjectID(id) {
		return id
	}
	return ""
}

// SetRef sets a ref of the scratch repository, or removes it for "".
func (s *Scratch) SetRef(name, id string) error {
	if s.git.dry {
		return nil
	}
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if id == "" {
		return os.RemoveAll(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, id+"\n")
}

// RemoteError is a fetch or a push that failed.
type RemoteError struct{ error }

// Unwrap is git's own error.
func (e *RemoteError) Unwrap() error { return e.error }

func remoteError(err error) error {
	if err == nil {
		return nil
	}
	return &RemoteError{err}
}

// RefUpdate is a ref of a remote that becomes New. With Lease it does so only where it is Old, "" for none.
type RefUpdate struct {
	Name, New, Old string
	Lease, Force   bool
}

// Push updates refs of a remote, all of them or none. at is the directory in which a remote's relative path begins.
func (s *Scratch) Push(ctx context.Context, remote, at string, updates ...RefUpdate) error {
	var args []string
	if !strings.ContainsAny(remote, "=:/") { // a name: one that is a mirror takes no refs by name
		args = append(args, "-c", "remote."+remote+".mirror=false")
	}
	args = append(args, "push", "--quiet", "--atomic", "--no-verify", "--no-follow-tags")
	var specs []string
	for _, u := range updates {
		plus := ""
		if u.Force {
			plus = "+"
		}
		if u.Lease {
			args = append(args, "--force-with-lease="+u.Name+":"+u.Old)
		}
		specs = append(specs, plus+u.New+":"+u.Name)
	}
	_, err := s.git.mutate(ctx, s.remote(at, append(append(args, "--", remote), specs...)...))
	return remoteError(err)
}

// Fetch brings refs of a remote, or of a bundle's file, into the scratch repository.
func (s *Scratch) Fetch(ctx context.Context, remote, at string, specs ...string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap="}
	_, err := s.git.mutate(ctx, s.remote(at, append(append(args, "--", remote), specs...)...))
	return remoteError(err)
}

func (s *Scratch) remote(at string, args ...string) command {
	c := inRepo(s.dir, args...)
	c.dir, c.env = at, with(s.git.env.keys, objectVars...)
	return c
}

// WriteBundle writes refs of the scratch repository, with all that they reach, into a git bundle at path.
func (s *Scratch) WriteBundle(ctx context.Context, path string, refs ...string) error {
	_, err := s.git.mutate(ctx, s.command(append([]string{"bundle", "create", "--quiet", path}, refs...)...))
	return err
}

// SnapshotTree makes the tree of all that StageAll would take of a worktree. No file of the worktree or of its
// repository changes.
func (s *Scratch) SnapshotTree(ctx context.Context, wt Worktree, base string) (tree string, err error) {
	tree, _, err = s.git.stageInto(ctx, wt, base, s.dir)
	return tree, err
}

// Messages are the messages of the commits that the refs below prefix name, by ref.
func (s *Scratch) Messages(ctx context.Context, prefix string) (map[string]string, error) {
	out, err := s.git.read(ctx, s.command("for-each-ref", "--format=%(refname)%00%(contents)%00%00", prefix))
	found := map[string]string{}
	for part := range strings.SplitSeq(string(out), "\x00\x00\n") {
		if name, message, is := strings.Cut(part, "\x00"); is {
			found[name] = message
		}
	}
	return found, err
}

// Entry is a file of a tree.
type Entry struct {
	Path, ID string
	Size     int64
}

// Entries lists the files of a commit. One that is no ordinary file is an error. What they are is in the scratch
// repository then, and is not written to it again.
func (s *Scratch) Entries(ctx context.Context, commit string) ([]Entry, error) {
	out, err := s.git.read(ctx, s.command("ls-tree", "-r", "-z", "-l", "--full-tree", commit))
	if err != nil {
		return nil, err
	}
	if s.has == nil {
		s.has = map[string]bool{}
	}
	var entries []Entry
	for _, f := range fields(out) {
		meta, path, _ := strings.Cut(f, "\t")
		words := strings.Fields(meta)
		if len(words) != 4 || words[0] != "100644" || words[1] != "blob" {
			return nil, fmt.Errorf("%q is no ordinary file", path)
		}
		size, err := strconv.ParseInt(words[3], 10, 64)
		if err != nil {
			return nil, err
		}
		s.has[words[2]] = true
		entries = append(entries, Entry{path, words[2], size})
	}
	return entries, nil
}

// Contents reads files that Entries has listed.
func (s *Scratch) Contents(ctx context.Context, entries []Entry) ([][]byte, error) {
	c := s.command("cat-file", "--batch")
	for _, e := range entries {
		c.stdin = append(c.stdin, e.ID+"\n"...)
	}
	out, err := s.git.read(ctx, c)
	var contents [][]byte
	for _, e := range entries {
		header, rest, _ := bytes.Cut(out, []byte("\n"))
		if string(header) != fmt.Sprintf("%s blob %d", e.ID, e.Size) || int64(len(rest)) <= e.Size {
			return nil, errors.Join(err, fmt.Errorf("the object %s cannot be read", e.ID))
		}
		contents, out = append(contents, rest[:e.Size:e.Size]), rest[e.Size+1:]
	}
	return contents, err
}

// Reaches reports whether a commit reaches another one.
func (s *Scratch) Reaches(ctx context.Context, from, to string) bool {
	_, err := s.git.read(ctx, s.command("merge-base", "--is-ancestor", to, from))
	return err == nil
}

// Adopt brings a commit of the scratch repository, with all that it reaches, into the repository at common. Nothing
// refers to it yet: whoever needs it makes a ref at once.
func (s *Scratch) Adopt(ctx context.Context, common, ref string) error {
	_, err := s.git.mutate(ctx, inRepo(common, "-c", "fetch.writeCommitGraph=false", "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--refmap=", "--", s.dir, ref))
	return err
}
