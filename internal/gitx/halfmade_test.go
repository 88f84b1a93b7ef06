package gitx

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// What git leaves of a worktree's entry when it is killed while it makes or removes one.
func TestRemoveWorktreeOfAnIncompleteEntry(t *testing.T) {
	for _, missing := range []string{"HEAD", "commondir"} {
		for _, how := range []string{"gone", "empty"} {
			t.Run(missing+" "+how, func(t *testing.T) {
				w := newWorld(t)
				admin, ok := AdminDir(w.common, w.path)
				if !ok || !complete(admin) {
					t.Fatalf("the entry %q of a new worktree is not complete", admin)
				}
				file := filepath.Join(admin, missing)
				if how == "gone" {
					if err := os.Remove(file); err != nil {
						t.Fatal(err)
					}
				} else if err := os.Truncate(file, 0); err != nil {
					t.Fatal(err)
				}
				if complete(admin) {
					t.Error("the entry passes for complete")
				}
				if err := w.git.RemoveWorktree(context.Background(), w.common, w.path, ""); err != nil {
					t.Fatal(err)
				}
				for _, path := range []string{w.path, admin, filepath.Dir(admin)} {
					if _, err := os.Lstat(path); err == nil {
						t.Errorf("%s is still there", path)
					}
				}
				w.sh(w.repo, "worktree", "list")
			})
		}
	}
}

func TestRemoveHalfCreated(t *testing.T) {
	w := newWorld(t)
	all := filepath.Join(w.common, "worktrees")
	make := func(name string, files ...string) string {
		dir := filepath.Join(all, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, files...)
		return dir
	}
	goes := []string{make("workspace7"), make("workspace8", "locked", "initializing\n"),
		make("workspace9", "locked", "initializing\n", "gitdir", "")}
	stays := []string{
		make("other"), make("workspace5", "locked", "by a person\n"), make("workspace6", "gitdir", "/elsewhere/.git\n"),
		filepath.Join(all, "workspace"),
	}
	if err := w.git.removeHalfCreated(w.common, w.path); err != nil {
		t.Fatal(err)
	}
	for _, dir := range goes {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	for _, dir := range stays {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveAdminSparesOthers(t *testing.T) {
	w := newWorld(t)
	admin, _ := AdminDir(w.common, w.path)
	for _, c := range []struct{ name, admin, path string }{
		{"another worktree's", admin, filepath.Join(w.home, "sessions", "other", "workspace")},
		{"outside", w.repo, w.path},
		{"above", filepath.Join(w.common, "worktrees", ".."), w.path},
	} {
		if err := removeAdmin(w.common, c.admin, c.path); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := os.Lstat(admin); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	// What a killed removal leaves: some of the files, the worktree gone.
	for _, name := range []string{"HEAD", "gitdir"} {
		if err := os.Remove(filepath.Join(admin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAdmin(w.common, admin, w.path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(admin); err == nil {
		t.Error("the entry is still there")
	}
}

func TestRewindKeepsWhatWasIgnoredWhenItBegan(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", ".gitignore", "*.log\n")
	ctx := context.Background()
	wt, err := w.git.Worktree(ctx, w.common, w.path, branch)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.path, ".gitignore", "*.log\ncache/\n", "cache/data", "1\n", "x.log", "2\n", "junk", "3\n")
	w.sh(w.path, "add", ".gitignore")
	w.sh(w.path, "commit", "-q", "-m", "ignore more")
	keep, err := w.git.IgnoredBefore(ctx, wt, w.base)
	if err != nil {
		t.Fatal(err)
	}
	// The process dies after the reset; another one goes on with the same list.
	if err := w.git.Reset(ctx, wt, w.base, true); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.git.RewindTree(ctx, wt, w.base, keep); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"cache/data": true, "x.log": true, "junk": false} {
		if _, err := os.Lstat(filepath.Join(w.path, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
