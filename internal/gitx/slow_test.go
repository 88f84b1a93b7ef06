package gitx

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pipe in place of one of git's files, on which git would wait, is removed.
func TestStageAllIsNotHeldByPipes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.path, "d/b.txt", "b\n", "sub/c.txt", "c\n", "sub/.git/objects/x", "", "sub/.git/refs/x", "")
	pipes := []string{".gitignore", "d/.gitattributes", "sub/.git/HEAD"}
	for _, name := range append(pipes, "d/other") {
		must(t, unix.Mkfifo(filepath.Join(w.path, name), 0o600))
	}
	begun := time.Now()
	tree, _ := w.stage()
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	equalLists(t, "files", w.files(tree), []string{"a.txt", "d/b.txt", "sub/c.txt"})
	for _, name := range pipes {
		if !absent(filepath.Join(w.path, name)) {
			t.Errorf("%s is still there", name)
		}
	}
	if absent(filepath.Join(w.path, "d/other")) {
		t.Error("a pipe that is none of git's is gone")
	}
}

// If links lead git to a pipe elsewhere, nothing is removed, and git is killed after a while.
func TestStageAllIsNotHeldByPipesElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := t.TempDir()
	write(t, elsewhere, "objects/x", "", "refs/x", "")
	must(t, unix.Mkfifo(filepath.Join(elsewhere, "HEAD"), 0o600))
	write(t, w.path, "sub/c.txt", "c\n", "sub/.git", "gitdir: "+elsewhere+"\n")
	w.git.inTree = time.Second
	if _, _, err := w.git.StageAll(ctx, w.wt(), ""); !errors.Is(err, errTreeTime) {
		t.Error(err)
	}
	if absent(filepath.Join(elsewhere, "HEAD")) {
		t.Error("a pipe outside of the tree is gone")
	}
}

// A repository within may have its files anywhere in the tree.
func TestAllPipesGoInTheEnd(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "HEAD")
	must(t, unix.Mkfifo(pipe, 0o600))
	if unblock(dir, false); absent(pipe) {
		t.Error("a pipe that is none of git's is gone")
	}
	if unblock(dir, true); !absent(pipe) {
		t.Error("the pipe is still there")
	}
}

// A file of terabytes takes no space on the disk, but hours of git's time.
func TestStageAllLeavesMassesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a.txt", "one\n", "big", "small\n", ".gitignore", "ignored\n")
	write(t, w.path, "a.txt", "two\n", "new", "", "ignored", "")
	for _, name := range []string{"big", "new", "ignored"} {
		must(t, os.Truncate(filepath.Join(w.path, name), 1<<42))
	}
	wt := w.wt()
	w.git.MaxFileSize = 1 << 20
	tree, left, err := w.git.StageAll(ctx, wt, w.sh(w.repo, "rev-parse", "HEAD"))
	must(t, err)
	equalLists(t, "left out", left, []string{"big", "new"})
	equalLists(t, "files", w.files(tree), []string{".gitignore", "a.txt", "big"})
	equal(t, "content", w.sh(w.repo, "show", tree+":a.txt"), "two")
}

// git would need too much memory for a large rules file, because it reads it whole.
func TestStageAllIsNotHeldByRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.path, "d/b.txt", "b\n", "d/.gitignore", "", ".gitattributes", "* text\n")
	must(t, os.Truncate(filepath.Join(w.path, "d/.gitignore"), 1<<42))
	tree, _ := w.stage()
	equalLists(t, "files", w.files(tree), []string{".gitattributes", "a.txt", "d/b.txt"})
}

// A worker's .git that is a pipe blocks no command.
func TestAPipeIsNoGitFile(t *testing.T) {
	w := newWorld(t)
	dotGit := filepath.Join(w.path, ".git")
	must(t, os.Remove(dotGit))
	must(t, unix.Mkfifo(dotGit, 0o600))
	if _, _, err := LinkedCommon(w.path); err == nil {
		t.Error("a pipe says where the repository is")
	}
}
