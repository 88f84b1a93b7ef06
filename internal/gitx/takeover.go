package gitx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/text"
)

// After git has run in a quarantine, git-tilth takes over the objects that match their ids, and the index.

// takeOver copies the quarantine's new objects and its index to the repository.
func (q *quarantine) takeOver(ctx context.Context, g *Git) error {
	if q.objects == "" {
		return nil
	}
	if err := q.takeObjects(ctx); err != nil {
		return err
	}
	packs, _ := filepath.Glob(text.GlobQuote(q.file("objects/pack")) + "/*.pack")
	for _, pack := range packs {
		if err := g.takePack(ctx, filepath.Dir(q.objects), pack); err != nil {
			return err
		}
	}
	if q.look {
		return nil
	}
	if err := q.takeLFS(); err != nil {
		return err
	}
	now, err := os.Lstat(q.file("index"))
	if err != nil || !sole(now) || q.index != nil && os.SameFile(now, q.index) &&
		now.ModTime().Equal(q.index.ModTime()) && now.Size() == q.index.Size() {
		return nil
	}
	index := filepath.Join(q.wt.AdminDir, "index")
	if err := takeFile(q.file("index"), index+".lock"); err != nil {
		return err
	}
	return os.Rename(index+".lock", index)
}

// owns reports whether a directory belongs to the quarantine and not to a link's target.
func (q *quarantine) owns(name string) bool {
	real, err := filepath.EvalSymlinks(q.file(name))
	return err == nil && real == q.file(name)
}

// sole reports whether a regular file has no other hard link, through which it could change later.
func sole(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return fi.Mode().IsRegular() && ok && st.Nlink == 1
}

// takeObjects copies the loose objects that match their ids, and ignores others.
func (q *quarantine) takeObjects(ctx context.Context) error {
	if !q.owns("objects") {
		return nil
	}
	mode := fs.FileMode(0o755)
	if q.private {
		mode = 0o700
	}
	fans, err := os.ReadDir(q.file("objects"))
	for _, fan := range fans {
		if len(fan.Name()) != 2 || !fan.IsDir() {
			continue
		}
		dir := filepath.Join(q.file("objects"), fan.Name())
		found, _ := os.ReadDir(dir)
		for _, o := range found {
			from, to := filepath.Join(dir, o.Name()), filepath.Join(q.objects, fan.Name(), o.Name())
			fi, err := os.Lstat(from)
			if err != nil || !sole(fi) || !absent(to) || checkObject(ctx, from, fan.Name()+o.Name()) != nil {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(to), mode); err != nil {
				return err
			}
			if perm := fi.Mode().Perm(); perm&0o222 != 0 { // a filter changed it
				if err := os.Chmod(from, perm&^0o222); err != nil {
					return err
				}
			}
			if err := takeFile(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return errors.Join(err, ctx.Err())
}

// takeLFS copies new files of Git LFS's store that match their names, which are hashes.
func (q *quarantine) takeLFS() error {
	const store = "lfs/objects"
	if !q.owns(store) {
		return nil
	}
	return filepath.WalkDir(q.file(store), func(from string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		fi, err := d.Info()
		rel, relErr := filepath.Rel(q.file(store), from)
		to := filepath.Join(q.lfs, "objects", rel)
		if err != nil || relErr != nil || !sole(fi) || !absent(to) || !isNamed(from, d.Name()) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return takeFile(from, to)
	})
}

// takePack indexes a pack, as git does with a pack from a remote.
func (g *Git) takePack(ctx context.Context, repo, pack string) error {
	fi, err := os.Lstat(pack)
	if real, _ := filepath.EvalSymlinks(pack); err != nil || !sole(fi) || real != pack {
		return err
	}
	f, err := os.Open(pack)
	if err != nil {
		return err
	}
	defer f.Close()
	c := InRepo(repo, "index-pack", "--stdin")
	c.input = f
	_, err = g.Mutate(ctx, c)
	return err
}

// isNamed reports whether a file's name is its SHA-256.
func isNamed(path, name string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return err == nil && hex.EncodeToString(h.Sum(nil)) == name
}

// takeFile renames a file if the new name is free. On another file system it copies it.
func takeFile(from, to string) error {
	err := os.Link(from, to)
	if err == nil || !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EPERM) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "tmp_obj_")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Chmod(0o444), out.Close()); err != nil {
		return err
	}
	fi, err := in.Stat()
	if err == nil {
		err = os.Chtimes(out.Name(), fi.ModTime(), fi.ModTime())
	}
	return errors.Join(err, os.Link(out.Name(), to))
}
