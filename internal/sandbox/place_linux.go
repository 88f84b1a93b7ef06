package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/session"
)

// The kinds of operations that show a tree at the path of a checkout.
const (
	opTree  = "tree"  // the tree at its own path
	opRead  = "read"  // shows a path, read-only
	opFrom  = "from"  // the contents of another path outside, read-only
	opShown = "shown" // a directory of the checkout, to read, if the tree has a place for it
	opText  = "text"  // a file with another content, to read
)

// placing passes to add the operations that show the tree at the checkouts. This hides the git directory of a
// checkout, so it is shown next to the tree, and the files of the tree that name it contain that path.
func (b *Box) placing(add func(kind, path, arg string)) {
	p := b.place
	if p == nil {
		return
	}
	kind := opRead
	if slices.ContainsFunc(b.outermost(), func(top string) bool { return below(p.Tree, top) }) {
		kind = opTree
	}
	git := cmp.Or(session.RepoLink(p.Tree), filepath.Join(filepath.Dir(p.Tree), "repository.git"))
	texts := map[string]string{}
	if p.covers(p.Git) && slices.ContainsFunc(b.links.reals(b.Hide), func(h string) bool { return below(git, h) }) {
		texts = p.pointers(git)
		add(opFrom, git, p.Git)
	}
	for name, content := range texts {
		add(opText, filepath.Join(p.Tree, name), look(filepath.Join(p.Tree, name))+"\n"+content)
	}
	for _, dir := range p.Checkouts {
		add(kind, dir, p.Tree+"\n"+look(p.Tree))
		for name, content := range texts {
			add(opText, filepath.Join(dir, name), look(filepath.Join(p.Tree, name))+"\n"+content)
		}
		for _, path := range p.Installed {
			name, in := strings.CutPrefix(path, dir+"/")
			if in && isEmpty(filepath.Join(p.Tree, name)) && isRealDir(p.Tree, filepath.Dir(name)) {
				add(opShown, path, look(path)+look(filepath.Join(p.Tree, name)))
			}
		}
	}
}

// isRealDir reports whether a directory of a tree exists and is reached without a link.
func isRealDir(tree, name string) bool {
	fi, err := os.Lstat(filepath.Join(tree, name))
	return err == nil && fi.IsDir() && real(filepath.Join(tree, name)) == filepath.Join(tree, name)
}

// source returns the path outside of the thing that an operation shows, "" if it shows none.
func source(ops []string, i int) string {
	kind, path, arg := ops[i], ops[i+1], ops[i+2]
	switch kind {
	case opLayer:
		return layerMount(arg)
	case opCopy, opFrom:
		return arg
	case opShow, opTouch, opWrite, opFix, opShown:
		return path
	case opTree, opRead:
		tree, _, _ := strings.Cut(arg, "\n")
		for i := 0; i < len(ops); i += 3 {
			if ops[i] == opLayer && ops[i+1] == tree {
				return layerMount(ops[i+2])
			}
		}
		return tree
	}
	return ""
}

// layered reports whether a path is in a tree with a layer for writes.
func layered(ops []string, path string) bool {
	for i := 0; i < len(ops); i += 3 {
		tree, _, _ := strings.Cut(ops[i+2], "\n")
		switch {
		case !below(path, ops[i+1]):
		case ops[i] == opLayer, ops[i] == opTree && source(ops, i) != tree:
			return true
		}
	}
	return false
}

// showText shows another content of a file: it writes the content to a layer or, without one, mounts another file over
// it.
func showText(ops []string, path, content string) error {
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	if layered(ops, path) {
		return os.WriteFile(path, []byte(content), 0o600)
	}
	err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "")
	if err != nil {
		return err
	}
	defer unix.Unmount("/dev/shm", unix.MNT_DETACH)
	if err := os.WriteFile("/dev/shm/text", []byte(content), 0o444); err != nil {
		return err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, "/dev/shm/text", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := readOnly(tree, ""); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
