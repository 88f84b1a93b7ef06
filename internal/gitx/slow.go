package gitx

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/project"
)

// Files in a worker's tree can block git forever: a pipe called .gitignore without a writer, or a sparse file of
// terabytes. A search for them costs more than most commands take, so it runs only after a command was slow.

// slow is the time after which a running command is examined first; later intervals double.
const slow = 3 * time.Second

// whileSlow calls do again and again until done is called.
func whileSlow(do func()) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for wait := slow; ; wait *= 2 {
			select {
			case <-stop:
				return
			case <-time.After(wait):
				do()
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// gitsFiles are the files of a tree that git always reads completely.
var gitsFiles = []string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap"}

// maxGitsFile is larger than any real file of that kind, and small enough for git's memory.
const maxGitsFile = 100 << 20

// desperate is the first check at which unblock removes every pipe in the tree, because .git may be a link to any
// directory.
const desperate = 3

// outOfMemory reports whether git ran out of memory on a huge file of a worker's tree. It removes that file, because
// later commands would fail too.
func outOfMemory(c Command, err error) (removed bool) {
	tree := cmp.Or(c.Tree, c.wt.Path)
	return tree != "" && strings.Contains(saidBy(err).Stderr, "Out of memory") && unblock(tree, false)
}

// lookupTime is longer than the time between a process's lookup and open of a name.
const lookupTime = time.Second

// maxHeld is the largest number of pipes held open for that time.
const maxHeld = 100

// unblock removes files in a worker's tree that git waits for: pipes and oversized files among the files that git
// always reads, or with all every pipe. A process that waits for a pipe, or is about to, reads an empty one.
func unblock(tree string, all bool) (removed bool) {
	held := 0
	_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		gits := slices.Contains(gitsFiles, d.Name())
		if d.Type().IsRegular() && gits {
			if fi, err := d.Info(); err == nil && fi.Size() > maxGitsFile {
				removed = os.Remove(path) == nil || removed
			}
		}
		if d.Type()&fs.ModeNamedPipe == 0 || !all && !gits && !strings.Contains(path[len(tree):], "/.git/") {
			return nil
		}
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil
		}
		removed = os.Remove(path) == nil || removed
		if held++; held > maxHeld {
			f.Close()
		} else {
			time.AfterFunc(lookupTime, func() { f.Close() })
		}
		return nil
	})
	return removed
}

// bulk is the total size above which large files are left out. Git stages less within minutes, and a filter such as
// LFS may shrink them.
const bulk = 4 << 30

// largeFile is the size of a large file in bytes, unless Git.MaxFileSize sets another.
const largeFile = 20 << 20

// add runs git add without the files in except. It returns large and slow files, which it leaves out.
func (g *Git) add(ctx context.Context, wt Worktree, c Command, except []string) (large []string, err error) {
	for {
		call := c
		if out := slices.Concat(except, large); len(out) > 0 {
			call.Args = append(slices.Clone(c.Args), "--pathspec-from-file=-", "--pathspec-file-nul")
			const but = "\x00:(top,exclude,literal)"
			call.Stdin = []byte("." + but + strings.Join(out, but) + "\x00")
		}
		adding, cancel := context.WithCancel(ctx)
		var found []string
		done := func() {}
		if g.MaxFileSize > 0 && !g.dry {
			done = whileSlow(func() {
				if found = g.largeFiles(ctx, wt, large); len(found) > 0 {
					cancel()
				}
			})
		}
		_, err = g.Mutate(adding, call)
		done()
		cancel()
		if len(found) == 0 || err == nil || ctx.Err() != nil {
			return large, err
		}
		large = append(large, found...)
	}
}

// largeFiles returns the files to stage that are too large, except known ones.
func (g *Git) largeFiles(ctx context.Context, wt Worktree, known []string) (large []string) {
	_ = filepath.WalkDir(wt.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || project.IsProduct(d.Name())) {
			return fs.SkipDir
		}
		rel, relErr := filepath.Rel(wt.Path, path)
		if err != nil || relErr != nil || !d.Type().IsRegular() || slices.Contains(known, rel) {
			return nil
		}
		if fi, err := d.Info(); err == nil && fi.Size() > g.MaxFileSize && len(large) < maxNamed {
			large = append(large, rel)
		}
		return nil
	})
	if len(large) == 0 {
		return nil
	}
	// Neither ignored files nor files that the user already tracks.
	c := g.InWorktree(wt, append([]string{"--literal-pathspecs", "ls-files", "-z", "--others", "--modified",
		"--exclude-standard", "--"}, large...)...)
	large, _ = g.List(ctx, c)
	slices.Sort(large)
	large = slices.Compact(large)
	var total int64
	for _, name := range large {
		if fi, err := os.Lstat(filepath.Join(wt.Path, name)); err == nil {
			total += fi.Size()
		}
	}
	if total < bulk {
		return nil
	}
	return large
}

// readFile reads one of git's files. It does not trust the file, because a worker may have replaced it by a pipe.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case fi.IsDir():
		return nil, &os.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	case !fi.Mode().IsRegular() || fi.Size() > outputLimit:
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("not a regular file, or too large")}
	}
	return io.ReadAll(f)
}
