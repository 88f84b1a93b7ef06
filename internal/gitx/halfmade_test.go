package gitx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Leftovers of a git that was killed while it created or removed a worktree's entry.
func TestRemoveWorktreeOfAnIncompleteEntry(t *testing.T) {
	for _, missing := range []string{"HEAD", "commondir"} {
		for _, how := range []string{"gone", "empty"} {
			t.Run(missing+" "+how, func(t *testing.T) {
				w := newWorld(t)
				admin, ok := AdminDir(w.common, w.path)
				if !ok {
					t.Fatal("a new worktree has no entry")
				}
				file := filepath.Join(admin, missing)
				if how == "gone" {
					if err := os.Remove(file); err != nil {
						t.Fatal(err)
					}
				} else if err := os.Truncate(file, 0); err != nil {
					t.Fatal(err)
				}
				if err := w.git.RemoveWorktree(context.Background(), w.common, w.path); err != nil {
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

func TestRemoveHalfEntries(t *testing.T) {
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
		make("workspace9", "locked", "initializing\n", "gitdir", ""),
		make("workspace10", "HEAD", "ref: refs/heads/x\n", "commondir", "../..\n")} // half removed
	stays := []string{
		make("other"), make("workspace6", "gitdir", "/elsewhere/.git\n"), filepath.Join(all, "workspace"),
	}
	if err := w.git.removeHalfEntries(w.common, w.path); err != nil {
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

// TestRunsAgainBesideOthers: another git creates a worktree's entry while a command reads it.
func TestRunsAgainBesideOthers(t *testing.T) {
	for name, do := range map[string]func(w *world) error{
		"list": func(w *world) error { _, err := w.git.Worktrees(ctx, w.common); return err },
		"add": func(w *world) error {
			_, err := w.git.AddWorktree(ctx, w.common, filepath.Join(w.home, "new"), "session/new", w.base, true)
			return err
		},
		"remove": func(w *world) error { return w.git.RemoveWorktree(ctx, w.common, w.path) },
		"delete": func(w *world) error {
			w.sh(w.repo, "branch", "x")
			return first(w.git.DeleteBranch(ctx, w.common, "x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			admin := filepath.Join(w.common, "worktrees", "other")
			must(t, os.Mkdir(admin, 0o755))
			write(t, admin, "gitdir", filepath.Join(w.home, "other", ".git\n"), "HEAD", w.base+"\n", "commondir", "")
			failed := 0
			w.git.trace = func(c Call) {
				if c.Err != nil {
					failed++
					write(t, admin, "commondir", "../..\n")
				}
			}
			if err := do(w); err != nil || failed > 1 {
				t.Errorf("%d failed, %v", failed, err)
			}
		})
	}
}

// TestFetchBesideAnAdd: git has not written the new worktree's commit yet.
func TestFetchBesideAnAdd(t *testing.T) {
	w := newWorld(t)
	admin, _ := AdminDir(w.common, w.path)
	must(t, os.WriteFile(filepath.Join(admin, "HEAD"), []byte(strings.Repeat("0", len(w.base))+"\n"), 0o600))
	other := newWorld(t)
	write(t, other.repo, "b.txt", "b\n")
	other.sh(other.repo, "add", "-A")
	other.sh(other.repo, "commit", "-q", "-m", "b")
	failed := 0
	w.git.trace = func(c Call) {
		if c.Err != nil {
			failed++
			write(t, admin, "HEAD", "ref: refs/heads/"+branch+"\n")
		}
	}
	_, err := w.git.Mutate(ctx, InRepo(w.common, "fetch", "-q", other.repo, "main"))
	if err != nil || failed > 1 {
		t.Errorf("%d failed, %v", failed, err)
	}
}

func first(_ bool, err error) error { return err }

// TestAddWorktreeBesideARemoval: git deletes the directory of all entries with the last entry, while another git adds
// a worktree.
func TestAddWorktreeBesideARemoval(t *testing.T) {
	w := newWorld(t)
	write(t, w.home, "git", "#!/bin/sh\ncase \"$*\" in *'worktree add'*) [ -e '"+w.home+"/once' ] || {\n"+
		"touch '"+w.home+"/once'; git -C '"+w.repo+"' branch session/new; exec >&2\n"+
		"echo \"fatal: could not create directory of '/x/worktrees/new': No such file or directory\"; exit 128; } ;;\n"+
		"esac\nexec git \"$@\"\n")
	must(t, os.Chmod(filepath.Join(w.home, "git"), 0o755))
	w.git.program = filepath.Join(w.home, "git")
	added(t)(w.git.AddWorktree(ctx, w.common, filepath.Join(w.home, "new"), "session/new", w.base, true))
	equal(t, "asked twice", exists(w.home, "once"), true)
}

// TestRemoveAdminBesideAnAdd: a new entry that is still empty has the name of an entry that git has removed.
func TestRemoveAdminBesideAnAdd(t *testing.T) {
	w := newWorld(t)
	admin, _ := AdminDir(w.common, w.path)
	w.git.trace = func(c Call) {
		if slices.Contains(c.Args, "remove") {
			must(t, os.MkdirAll(admin, 0o755))
			write(t, admin, "locked", "initializing\n")
		}
	}
	w.git.find = func(proc.Query) (int, error) { return 1, nil }
	must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
	equal(t, "the other entry", exists(admin, "locked"), true)
}

// TestLeftBehind: the owner of a lock exits during the search, and another process has taken the lock already.
func TestLeftBehind(t *testing.T) {
	w := newWorld(t)
	half, lock := filepath.Join(w.common, "worktrees", "workspace7"), filepath.Join(w.common, "config.lock")
	must(t, os.Mkdir(half, 0o755))
	w.git.find = func(proc.Query) (int, error) {
		write(t, half, "gitdir", "/elsewhere/.git\n", "HEAD", "ref: refs/heads/x\n", "commondir", "../..\n")
		return 0, nil
	}
	must(t, w.git.removeHalfEntries(w.common, w.path))
	equal(t, "an entry that became whole", exists(half, "gitdir"), true)

	write(t, w.common, "config.lock", "")
	w.git.find = func(proc.Query) (int, error) { return 0, os.Remove(lock) }
	must(t, w.git.ClearLocks(ctx, w.common, "", w.common, "config.lock"))
	equal(t, "a lock that is gone", exists(lock), false)

	write(t, w.common, "config.lock", "")
	must(t, os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Hour)))
	asked := 0
	w.git.find = func(proc.Query) (int, error) {
		asked++
		write(t, w.common, "config.lock", "of the next one\n")
		return asked - 1, nil
	}
	w.git.patience = 0
	if err := w.git.ClearLocks(ctx, w.common, "", w.common, "config.lock"); !errors.Is(err, errLocked) {
		t.Errorf("got %v", err)
	}
	equal(t, "the next one's lock", exists(w.common, "config.lock"), true)
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
	// The process dies after the reset. Another one continues with the same list.
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
