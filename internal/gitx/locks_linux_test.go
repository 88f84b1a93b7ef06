package gitx

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// liveGit starts a git process in dir that waits until the returned function ends it.
func (w *world) liveGit(dir string) (end func()) {
	w.t.Helper()
	cmd := exec.Command("git", "cat-file", "--batch-check")
	cmd.Dir, cmd.Env = dir, w.environ
	in, err := cmd.StdinPipe()
	must(w.t, err)
	out, err := cmd.StdoutPipe()
	must(w.t, err)
	must(w.t, cmd.Start())
	// An answer shows that it is running.
	_, err = io.WriteString(in, "HEAD\n")
	must(w.t, err)
	_, err = out.Read(make([]byte, 1))
	must(w.t, err)
	return func() {
		in.Close()
		_ = cmd.Wait()
	}
}

func TestLockOwner(t *testing.T) {
	w := newWorld(t)
	wt := w.wt()
	lock := filepath.Join(wt.AdminDir, "index.lock")
	write(t, wt.AdminDir, "index.lock", "")
	fi, err := os.Lstat(lock)
	must(t, err)
	places := []string{wt.Path, wt.Common}
	equal(t, "owner", w.git.lockOwner(fi, places), "")
	elsewhere := w.liveGit(w.repo)
	defer elsewhere()
	equal(t, "owner with git at work in the main worktree", w.git.lockOwner(fi, places), "")
	if w.git.lockOwner(fi, nil) == "" {
		t.Error("a shared lock has no possible owner")
	}
	end := w.liveGit(wt.Path)
	if w.git.lockOwner(fi, places) == "" {
		t.Error("a live git in the worktree is no owner")
	}
	end()
	equal(t, "owner that ended", w.git.lockOwner(fi, places), "")
}

func TestLockIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	wt := w.wt()
	write(t, wt.AdminDir, "index.lock", "")
	end := w.liveGit(wt.Path)
	done := make(chan error)
	go func() { done <- w.git.ReadTree(ctx, wt, w.base, false) }()
	end()
	must(t, <-done)
	equal(t, "lock", exists(wt.AdminDir, "index.lock"), false)
}

func TestLockThatStays(t *testing.T) {
	w := newWorld(t)
	wt := w.wt()
	write(t, wt.AdminDir, "index.lock", "")
	defer w.liveGit(wt.Path)()
	w.git.patience = 0
	err := w.git.ReadTree(ctx, wt, w.base, false)
	if !errors.Is(err, errLocked) {
		t.Errorf("got %v", err)
	}
	equal(t, "lock", exists(wt.AdminDir, "index.lock"), true)
}

func TestRepoPlaces(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	write(t, w.common, "packed-refs.lock", "")
	fi, err := os.Lstat(filepath.Join(w.common, "packed-refs.lock"))
	must(t, err)
	defer other.liveGit(other.repo)()
	equal(t, "owner with git at work in another repository", w.git.lockOwner(fi, repoPlaces(w.common)), "")
	for _, dir := range []string{w.repo, w.common, w.path} {
		end := w.liveGit(dir)
		if w.git.lockOwner(fi, repoPlaces(w.common)) == "" {
			t.Errorf("a live git in %s is no owner", dir)
		}
		end()
	}
	w.environ = append(w.environ, "GIT_DIR="+w.common)
	defer w.liveGit(w.home)()
	if w.git.lockOwner(fi, repoPlaces(w.common)) == "" {
		t.Error("a live git that was told to work on the repository is no owner")
	}
}
