package agent

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

// tempPrefix begins the names of temporary files. They are at the top of the worktree, where leftovers of a crash are
// easy to find.
const tempPrefix = ".git-tilth-write-"

func (b *BuiltinTools) writeFile(_ context.Context, in arguments) (ToolAnswer, error) {
	name, rel, content := in.text["path"], in.rel, in.text["content"]
	if strings.HasSuffix(name, "/") {
		return ToolAnswer{}, fmt.Errorf("%s names a directory; give the path of a file", text.Clip(name, 200))
	}
	existed, err := b.save(name, rel, []byte(content))
	if err != nil {
		return ToolAnswer{}, err
	}
	verb := "created"
	if existed {
		verb = "replaced"
	}
	return ToolAnswer{Output: fmt.Sprintf("%s %s (%d bytes)", verb, rel, len(content)), Edited: rel}, nil
}

// save puts a file and its missing directories in place in one step, so that neither a full disk nor a crash leaves
// half a file. If a rename is not possible (another file system is mounted below), it writes the file directly.
func (b *BuiltinTools) save(name, rel string, data []byte) (existed bool, err error) {
	mode := fs.FileMode(0o666)
	info, err := b.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = b.root.MkdirAll(path.Dir(rel), 0o777)
	case err != nil:
	case info.IsDir():
		return true, fmt.Errorf("%s is a directory", text.Clip(name, 200))
	case info.Mode()&fs.ModeSymlink != 0:
		return true, fmt.Errorf("%s is a symbolic link; write the file that it leads to", text.Clip(name, 200))
	case b.isGitFile(info):
		return true, errGitsOwn
	case !info.Mode().IsRegular():
		return true, fmt.Errorf("%s is not a regular file", text.Clip(name, 200))
	default:
		mode, existed = info.Mode().Perm(), true
	}
	if err != nil {
		return existed, describePath(name, err)
	}
	temp := tempPrefix + rand.Text()
	err = b.put(temp, data, os.O_EXCL, mode)
	if err == nil && existed {
		err = b.root.Chmod(temp, mode) // the umask reduces the mode at creation; an existing file keeps its mode
	}
	if err == nil {
		err = b.root.Rename(temp, rel)
	}
	if err == nil {
		return existed, nil
	}
	_ = b.root.Remove(temp)
	if errors.Is(err, syscall.EXDEV) {
		err = b.put(rel, data, os.O_TRUNC, mode)
	}
	if err != nil {
		err = describePath(name, err)
	}
	return existed, err
}

func (b *BuiltinTools) put(rel string, data []byte, flag int, mode fs.FileMode) error {
	f, err := b.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|flag, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// removeStaleTemps removes temporary files of a killed process.
func (b *BuiltinTools) removeStaleTemps() {
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
