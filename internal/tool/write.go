package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/text"
)

// tempPrefix begins the name of a file that is being written. Such files stand at
// the top of the worktree, where one look finds what a crash has left.
const tempPrefix = ".git-tilth-write-"

func (b *Box) writeFile(_ context.Context, in arguments) (Result, error) {
	name, content := in.text["path"], in.text["content"]
	rel, err := b.resolve(name)
	if err != nil {
		return Result{}, err
	}
	if strings.HasSuffix(name, "/") {
		return Result{}, fmt.Errorf("%s names a directory; give the path of a file", text.Clip(name, 200))
	}
	mode, existed, err := b.target(name, rel)
	if err != nil {
		return Result{}, err
	}
	if dir := path.Dir(rel); !existed && dir != "." {
		if err := b.root.MkdirAll(dir, 0o777); err != nil {
			return Result{}, describe(name, err)
		}
	}
	if err := b.replace(rel, []byte(content), mode, existed); err != nil {
		return Result{}, describe(name, err)
	}
	verb := "created"
	if existed {
		verb = "replaced"
	}
	return Result{Output: fmt.Sprintf("%s %s (%d bytes)", verb, rel, len(content)), Edited: rel}, nil
}

// target looks at the file to be written: its mode, and whether it is there.
func (b *Box) target(name, rel string) (mode fs.FileMode, existed bool, err error) {
	info, err := b.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o666, false, nil
	case err != nil:
		return 0, false, describe(name, err)
	case info.IsDir():
		return 0, false, fmt.Errorf("%s is a directory", text.Clip(name, 200))
	case b.isGitFile(info):
		return 0, false, &blocked{"git's own files are not to be read or written; use git commands"}
	case !info.Mode().IsRegular():
		return 0, false, fmt.Errorf("%s is not a regular file", text.Clip(name, 200))
	}
	return info.Mode().Perm(), true, nil
}

// replace puts the file in place in one step, so that neither a full disk nor a crash leaves half of it. Where the file
// cannot be renamed into place (another file system is mounted below), it is written directly.
func (b *Box) replace(rel string, data []byte, mode fs.FileMode, existed bool) error {
	temp := tempPrefix + rand.Text()
	if err := b.put(temp, data, os.O_EXCL, mode); err != nil {
		_ = b.root.Remove(temp)
		return err
	}
	if existed {
		// The mode at creation is cut by the umask; an existing file keeps its own.
		if err := b.root.Chmod(temp, mode); err != nil {
			_ = b.root.Remove(temp)
			return err
		}
	}
	err := b.root.Rename(temp, rel)
	if err == nil {
		return nil
	}
	_ = b.root.Remove(temp)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	return b.put(rel, data, os.O_TRUNC, mode)
}

func (b *Box) put(rel string, data []byte, flag int, mode fs.FileMode) error {
	f, err := b.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|flag, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// removeStaleTemps removes what a killed process was writing.
func (b *Box) removeStaleTemps() {
	top, err := b.root.Open(".")
	if err != nil {
		return
	}
	defer top.Close()
	names, _ := top.Readdirnames(-1)
	for _, n := range names {
		if strings.HasPrefix(n, tempPrefix) {
			_ = b.root.Remove(n)
		}
	}
}
