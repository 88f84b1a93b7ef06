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
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/text"
)

// ObjectCheck makes a check of the loose objects and packs that are new or were written again since a time before any
// worker of the session, for whoever judges how trees differ. A file's ctime says when: nothing sets it but the clock.
// A commit stands for its tree. The error names what is wrong.
func (g *Git) ObjectCheck(common string, since time.Time) func(ctx context.Context, trees ...string) error {
	return g.newObjects(common, since).check
}

// objects checks that the objects of a repository hold what their names say. git does not when it reads one: a
// worker that writes a harmless content under the name of another one shows it to whoever judges, and can put the
// true one back after the verdict, under the same commit.
type objects struct {
	git     *Git
	common  string
	since   time.Time
	checked map[string]unix.Stat_t // files of objects, as they were when they were right
	// largest is the size of a pack that is read whole. Of a larger one, such as a gc of the user's writes in the
	// night, only what is judged is: large says that there is one.
	largest int64
	large   bool
}

func (g *Git) newObjects(common string, since time.Time) *objects {
	return &objects{git: g, common: common, since: since, checked: map[string]unix.Stat_t{}, largest: 64 << 20}
}

func (o *objects) check(ctx context.Context, trees ...string) error {
	if o.git.dry {
		return nil
	}
	dirs, err := o.directories(ctx)
	if err != nil {
		return err
	}
	found := map[string]unix.Stat_t{}
	for _, dir := range dirs {
		if err := o.checkLoose(ctx, dir, found); err != nil {
			return err
		}
		if err := o.checkPacks(ctx, filepath.Join(dir, "pack"), found); err != nil {
			return err
		}
	}
	if o.large {
		if err := o.checkTrees(ctx, trees); err != nil {
			return err
		}
	}
	maps.Copy(o.checked, found)
	return nil
}

// read runs a command that reads objects of the repository.
func (o *objects) read(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	return o.git.Read(ctx, Command{Dir: o.common, Objects: true, Args: args, Stdin: in})
}

// checkTrees reads the trees, and all that they hold, with their hashes.
func (o *objects) checkTrees(ctx context.Context, trees []string) error {
	var in strings.Builder
	for _, tree := range trees {
		in.WriteString(tree + "^{tree}\n")
		out, err := o.read(ctx, nil, "ls-tree", "-r", "-t", "-z", tree)
		if err != nil {
			return err
		}
		for _, entry := range fields(out) {
			// A submodule's commit is not in the repository.
			if f := strings.Fields(entry); len(f) > 2 && f[1] != "commit" {
				in.WriteString(f[2] + "^{}\n") // to peel it, git reads it with its hash
			}
		}
	}
	out, err := o.read(ctx, []byte(in.String()), "cat-file", "--batch-check")
	for line := range strings.Lines(string(out)) {
		if name, missing := strings.CutSuffix(strings.TrimSpace(line), " missing"); missing {
			id, _, _ := strings.Cut(name, "^")
			return fmt.Errorf("the object %s of the repository does not hold what its name says, or is missing", id)
		}
	}
	return err
}

// directories returns the repository's directory of objects and its alternates, from which git reads objects as well.
// A worker can name one that it has made.
func (o *objects) directories(ctx context.Context) ([]string, error) {
	dirs := []string{filepath.Join(o.common, "objects")}
	if absent(filepath.Join(dirs[0], "info", "alternates")) {
		return dirs, nil
	}
	out, err := o.read(ctx, nil, "count-objects", "-v")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if name, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "alternate: "); is {
			if quoted, err := strconv.Unquote(name); err == nil {
				name = quoted
			}
			dirs = append(dirs, name)
		}
	}
	return dirs, nil
}

// checkLoose looks at the loose objects in dir that are new.
func (o *objects) checkLoose(ctx context.Context, dir string, found map[string]unix.Stat_t) error {
	fans, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, fan := range fans {
		if len(fan.Name()) != 2 {
			continue
		}
		linked := fan.Type()&os.ModeSymlink != 0 // to the files of other names, which may be old
		if err := o.checkFan(ctx, filepath.Join(dir, fan.Name()), linked, found); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// checkFan looks at the loose objects whose ids begin with a directory's name. Each of them is looked at each time, by
// the open directory: what that costs grows with the session.
func (o *objects) checkFan(ctx context.Context, dir string, linked bool, found map[string]unix.Stat_t) error {
	d, err := openDir(dir)
	if err != nil {
		return nil // git cannot read it either
	}
	defer d.Close()
	files, _ := d.Readdirnames(-1)
	for _, f := range files {
		id, name := filepath.Base(dir)+f, dir+"/"+f
		if !text.IsObjectID(id) || !linked && !o.isNew(d, name, found) {
			continue
		}
		err := checkObject(ctx, name, id)
		if err != nil && ctx.Err() == nil && !absent(name) { // a prune that is at work takes some away
			return fmt.Errorf("the object %s of the repository does not hold what its name says, or cannot be read: %w",
				id, err)
		}
	}
	return nil
}

// openDir opens a directory. A pipe in its place would hold an ordinary open until somebody writes into it.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// checkObject holds a loose object's file against its id: the hash of what the file holds, its header included, which
// is a zlib stream and nothing behind it.
func checkObject(ctx context.Context, name, id string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return errors.Join(err, errors.New("it is no file"))
	}
	in := bufio.NewReader(f)
	z, err := zlib.NewReader(in)
	if err != nil {
		return err
	}
	h := sha1.New()
	if len(id) == 2*sha256.Size {
		h = sha256.New()
	}
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

// checkPacks looks at the packs of which a file is new.
func (o *objects) checkPacks(ctx context.Context, dir string, found map[string]unix.Stat_t) error {
	d, err := openDir(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	files, _ := d.Readdirnames(-1)
	slices.Sort(files) // so that the two files of a pack follow one another
	var packs []string
	for _, f := range files {
		name, ext := filepath.Join(dir, f), filepath.Ext(f)
		if (ext == ".pack" || ext == ".idx") && o.isNew(d, name, found) {
			packs = append(packs, strings.TrimSuffix(name, ext)+".idx")
		}
	}
	for _, pack := range slices.Compact(packs) {
		fi, err := os.Stat(strings.TrimSuffix(pack, ".idx") + ".pack")
		if err == nil && fi.Size() > o.largest {
			o.large = true
			continue
		}
		_, err = o.read(ctx, nil, "verify-pack", "--", pack)
		if absent(strings.TrimSuffix(pack, ".idx")+".pack") || absent(pack) {
			continue // of a gc that is at work: git does not read it either
		}
		if err != nil {
			return fmt.Errorf("the pack %s of the repository is not what its index says: %w", pack, err)
		}
	}
	return nil
}

// isNew reports whether a file of an open directory was written since, and not looked at as it is now. What a link
// leads to can be an old file, and another one a moment later.
func (o *objects) isNew(dir *os.File, name string, found map[string]unix.Stat_t) bool {
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), filepath.Base(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return true
	}
	if time.Unix(st.Ctim.Unix()).Before(o.since) {
		return false
	}
	was, known := o.checked[name]
	if known && was.Ino == st.Ino && was.Size == st.Size && was.Ctim == st.Ctim && was.Mtim == st.Mtim {
		return false
	}
	found[name] = st
	return true
}

// FilesAt returns the contents of files of a commit, by their paths; links within the commit are followed, and what is
// not there or no file is left out. With commit "" the paths are object ids.
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
			// The size and then the name of what was not found.
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

// after returns what follows an object of a size and its newline.
func after(out []byte, size string) []byte {
	return out[min(atoi(size)+1, len(out)):]
}
