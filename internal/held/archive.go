package held

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// writeArchive writes paths below dir with their contents into a tar archive: names of any bytes, modes, times, links,
// empty directories and repositories. No link leads out of dir. It skips missing paths, pipes and sockets.
func writeArchive(dir string, paths []string, to string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	for _, p := range paths {
		if err == nil {
			err = archive(w, root, p)
		}
	}
	if err == nil {
		err = w.Close()
	}
	return errors.Join(err, out.Close())
}

// CopyFiles copies existing paths below one directory to the same paths below another one.
func CopyFiles(from, to string, paths []string) error {
	dir, remove, err := proc.TempDir()
	if err != nil {
		return err
	}
	defer remove()
	at := filepath.Join(dir, stateFile)
	if err := writeArchive(from, paths, at); err != nil {
		return err
	}
	return extractArchive(to, at)
}

// archive adds a path. It makes an unreadable file or directory readable while it reads it.
func archive(w *tar.Writer, root *os.Root, name string) error {
	fi, err := root.Lstat(name)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	mode, link := fi.Mode(), ""
	switch {
	case mode&fs.ModeSymlink != 0:
		if link, err = root.Readlink(name); err != nil {
			return err
		}
	case !mode.IsDir() && !mode.IsRegular():
		return nil
	case mode&0o400 == 0 || mode.IsDir() && mode&0o100 == 0:
		if err := root.Chmod(name, mode|0o500); err != nil {
			return err
		}
		defer func() { _ = root.Chmod(name, mode) }()
	}
	head, err := tar.FileInfoHeader(fi, link)
	if err != nil {
		return err
	}
	head.Name, head.Format, head.Uname, head.Gname = name, tar.FormatPAX, "", ""
	if err := w.WriteHeader(head); err != nil || link != "" {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if !mode.IsDir() {
		_, err := io.Copy(w, f)
		return err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	for _, n := range names {
		if err == nil {
			err = archive(w, root, path.Join(name, n))
		}
	}
	return err
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// extractArchive writes the contents of an archive below dir and replaces existing files. It may be repeated.
func extractArchive(dir, from string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	var dirs []*tar.Header
	for r := tar.NewReader(in); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := extract(root, head, r); err != nil {
			return fmt.Errorf("restore %s: %w", head.Name, err)
		}
		if head.Typeflag == tar.TypeDir {
			dirs = append(dirs, head)
		}
	}
	for _, head := range slices.Backward(dirs) { // last, because adding files changes their times
		err = errors.Join(err, root.Chtimes(head.Name, head.ModTime, head.ModTime),
			root.Chmod(head.Name, head.FileInfo().Mode()))
	}
	return err
}

func extract(root *os.Root, head *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(head.Name), 0o755); err != nil {
		return err
	}
	defer writable(root, filepath.Dir(head.Name))()
	if fi, err := root.Lstat(head.Name); head.Typeflag == tar.TypeDir && err == nil && fi.IsDir() {
		return root.Chmod(head.Name, 0o700)
	}
	if err := removeIn(root, head.Name); err != nil {
		return err
	}
	switch head.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(head.Name, 0o700)
	case tar.TypeSymlink:
		return root.Symlink(head.Linkname, head.Name)
	}
	f, err := root.OpenFile(head.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(head.FileInfo().Mode()), f.Close(),
		root.Chtimes(head.Name, head.ModTime, head.ModTime))
}

// removeIn removes a path below root with everything in it.
func removeIn(root *os.Root, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q is not a path in a session", name)
	}
	if _, err := root.Lstat(name); err != nil { // also if a link leads out of root
		if isMissing(err) {
			err = nil
		}
		return err
	}
	defer writable(root, filepath.Dir(name))()
	return proc.RemoveAll(filepath.Join(root.Name(), name))
}

// writable makes a directory writable until the returned function is called.
func writable(root *os.Root, dir string) (restore func()) {
	fi, err := root.Lstat(dir)
	if err != nil || fi.Mode()&0o300 == 0o300 || root.Chmod(dir, fi.Mode()|0o300) != nil {
		return func() {}
	}
	return func() { _ = root.Chmod(dir, fi.Mode()) }
}
