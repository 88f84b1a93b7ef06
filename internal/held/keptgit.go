package held

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// keptGit is kept.git, the session's own bare repository, for commits without a ref in the user's repository. It
// borrows the user's objects and has its own copy of everything above the seed, so a gc of the user's repository cannot
// remove it. It exists while it has refs. Its refs are files, each written in one step:
//
//	refs/aside/<task>       the partial work of a failed task, on the commit at which its attempt began
//	refs/aside/<task>.<n>   such work that did not fit when it was to come back
//	refs/undo/<n>/...       the data of an undo (lifecycle/rewind.go)
//
// No gc runs there. A pack without a ref is the leftover of a dead process and is removed with the repository.
type keptGit struct {
	git *gitx.Git
	dir string
}

// openKept opens the session's kept.git, or creates it. Only the first call rewrites the path of the user's
// repository, because later other lanes may be reading. Only the session's holder writes there, one lane at a time, so
// an index and its lock are leftovers of a dead process.
func openKept(h *Handle) (keptGit, error) {
	k := keptGit{h.Git, h.S.Path(session.KeptGitDir)}
	return k, h.Change(func() error {
		err := errors.Join(proc.RemoveAll(filepath.Join(k.dir, "index")),
			proc.RemoveAll(filepath.Join(k.dir, "index.lock")), k.removeTemps())
		if !h.Kept.Open || !Exists(k.dir) {
			err = errors.Join(err, gitx.Borrow(h.Common, k.dir),
				os.MkdirAll(filepath.Join(k.dir, "objects/pack"), 0o700))
			h.Kept.Open = err == nil
		}
		return err
	})
}

// tempPrefix begins the names of temporary files, git's own among them.
const tempPrefix = "tmp_"

// removeTemps removes objects and refs that were half written.
func (k keptGit) removeTemps() error {
	return filepath.WalkDir(k.dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name := filepath.Base(path)
		half := strings.Contains(path, jsonl.TempMark) || strings.HasPrefix(name, tempPrefix) ||
			strings.HasPrefix(name, ".merge_file_") // temporary file of git unpack-file
		if err == nil && half && !d.IsDir() {
			return os.Remove(path)
		}
		return err
	})
}

func (k keptGit) command(args ...string) gitx.Command { return gitx.InRepo(k.dir, args...) }

// commit makes a commit of a tree on parent.
func (k keptGit) commit(ctx context.Context, tree, parent, message string) (sha string, err error) {
	c := k.command("commit-tree", "-p", parent, "-F", "-", tree)
	c.Stdin = []byte(message)
	c.Vars = append(c.Vars, k.git.Identity(ctx, "", false)...)
	return k.git.Mutate(ctx, c)
}

// pack copies all objects that commits reach and base does not; the user's repository always has base. The pack's name
// begins with its owner's.
func (k keptGit) pack(ctx context.Context, base, owner string, commits ...string) error {
	commits = slices.DeleteFunc(slices.Clone(commits), func(sha string) bool { return sha == base })
	if len(commits) == 0 {
		return nil
	}
	c := k.command("pack-objects", "--quiet", "--revs", "--delta-base-offset",
		filepath.Join(k.dir, "objects/pack/pack-"+owner))
	c.Stdin = []byte("^" + base + "\n" + strings.Join(commits, "\n") + "\n")
	if _, err := k.git.Mutate(ctx, c); err != nil || k.git.IsDryRun() {
		return err
	}
	return k.open()
}

// keep stores a commit on base as a task's work, with a ref below refs/.
func (k keptGit) keep(ctx context.Context, base, ref, sha string) error {
	if err := k.pack(ctx, base, "work", sha); err != nil {
		return err
	}
	return k.setRef(ref, sha)
}

// open makes files that git wrote read-only writable, like all files of a session.
func (k keptGit) open() error {
	return filepath.WalkDir(filepath.Join(k.dir, "objects"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
}

// setRef writes a ref below refs/.
func (k keptGit) setRef(ref, sha string) error {
	if k.git.IsDryRun() {
		return nil
	}
	return SetRef(k.dir, "refs/"+ref, sha)
}

// SetRef writes a ref of a bare repository of the session, durably. For "" it removes the ref.
func SetRef(dir, name, sha string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if sha == "" {
		return proc.RemoveAll(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return jsonl.WriteFile(path, []byte(sha+"\n"))
}

// Ref reads a ref of a bare repository of the session, "" for none.
func Ref(dir, name string) string {
	data, err := jsonl.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if sha := strings.TrimSpace(string(data)); err == nil && text.IsObjectID(sha) {
		return sha
	}
	return ""
}

// give copies the objects reachable from refs into the repository at common.
func (k keptGit) give(ctx context.Context, common string, refs ...string) error {
	for i := range refs {
		refs[i] = "refs/" + refs[i]
	}
	return k.git.CopyObjects(ctx, k.dir, common, refs...)
}

// dropKeptGit removes a kept.git without refs.
func dropKeptGit(s *session.Session) error {
	var refs []string
	err := filepath.WalkDir(s.Path(session.KeptGitDir, "refs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			refs = append(refs, path)
		}
		return err
	})
	if err != nil || len(refs) > 0 {
		return nil // missing, needed or unreadable
	}
	return proc.RemoveAll(s.Path(session.KeptGitDir))
}

// readRef returns the commit that a ref below refs/ of kept.git names, "" for none.
func readRef(s *session.Session, ref string) string {
	return Ref(s.Path(session.KeptGitDir), "refs/"+ref)
}

// Stashes returns the session's stash commits by the names of their refs below refs/aside.
func Stashes(s *session.Session) (work map[string]string) {
	refs, _ := os.ReadDir(s.Path(session.AsideDir))
	for _, e := range refs {
		if sha := readRef(s, "aside/"+e.Name()); sha != "" {
			if work == nil {
				work = map[string]string{}
			}
			work[e.Name()] = sha
		}
	}
	return work
}

// IsStashName reports whether a session may have a ref of that name for stashed work.
func IsStashName(name string) bool {
	task, number, numbered := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	return session.ValidTaskID(task) && (!numbered || err == nil && n > 0 && strconv.Itoa(n) == number)
}

// AdoptStashes stores the stashed work of a session from another machine. The repository has its commits.
func AdoptStashes(ctx context.Context, h *Handle, work map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(work)) {
		in, err := openKept(h)
		if err == nil {
			err = in.keep(ctx, work[name]+"^", "aside/"+name, work[name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
