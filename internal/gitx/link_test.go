package gitx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestLinkedCommon(t *testing.T) {
	w := newWorld(t)
	common, registered, err := LinkedCommon(w.path)
	must(t, err)
	equal(t, "common", common, w.common)
	equal(t, "registered", registered, true)

	copied := filepath.Join(w.home, "copied")
	write(t, copied, ".git", read(t, w.path, ".git"))
	common, registered, err = LinkedCommon(copied)
	must(t, err)
	equal(t, "of a copy", common, w.common)
	equal(t, "a copy registered", registered, false)

	for _, plain := range []string{w.repo, w.home, filepath.Join(w.home, "none")} {
		if _, _, err := LinkedCommon(plain); !errors.Is(err, errNotRepo) {
			t.Errorf("%s: %v", plain, err)
		}
	}
	must(t, os.Rename(w.repo, w.repo+"-moved"))
	if _, _, err := LinkedCommon(w.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a move: %v", err)
	}
	w.sh(w.repo+"-moved", "worktree", "repair", w.path)
	common, registered, err = LinkedCommon(w.path)
	must(t, err)
	equal(t, "after a repair", common, filepath.Join(w.repo+"-moved", ".git"))
	equal(t, "registered after a repair", registered, true)
}

func TestHasBranch(t *testing.T) {
	w := newWorld(t)
	has := func(branch string) bool { return HasBranch(w.common, branch) }
	equal(t, "loose", has(branch), true)
	equal(t, "a directory of branches", has(filepath.Dir(branch)), false)
	w.sh(w.repo, "pack-refs", "--all")
	equal(t, "packed", has(branch), true)
	equal(t, "a longer name", has(branch+"x"), false)
	equal(t, "the end of a name", has(filepath.Base(branch)), false)
}

// TestVanished: only a missing repository has vanished.
func TestVanished(t *testing.T) {
	w := newWorld(t)
	plain := filepath.Join(w.home, "plain")
	must(t, os.Mkdir(plain, 0o755))
	must(t, os.WriteFile(filepath.Join(w.home, "file"), nil, 0o600))
	bare := filepath.Join(w.home, "bare.git")
	w.sh(w.home, "clone", "-q", "--bare", w.repo, bare)
	must(t, os.Remove(filepath.Join(bare, "HEAD")))
	must(t, os.Remove(filepath.Join(w.common, "HEAD")))
	for path, want := range map[string]bool{
		filepath.Join(w.home, "none"): true, filepath.Join(w.home, "file", "below"): true, plain: true,
		w.repo: false, bare: false,
	} {
		_, err := CommonDirOf(path)
		if err == nil {
			t.Fatalf("%s is a repository", path)
		}
		equal(t, path, errors.Is(err, fs.ErrNotExist), want)
	}
}

// TestAnObjectThatCannotBeReadIsNoMissingOne: only git's plain no is an answer.
func TestAnObjectThatCannotBeReadIsNoMissingOne(t *testing.T) {
	w := newWorld(t)
	tip := w.sh(w.path, "rev-parse", "HEAD")
	_, err := w.git.RevParse(ctx, w.common, "1234567890123456789012345678901234567890^{commit}")
	equal(t, "none there", errors.Is(err, ErrNotFound), true)
	w.sh(w.path, "commit", "-q", "--allow-empty", "-m", "to be damaged")
	damaged := w.sh(w.path, "rev-parse", "HEAD")
	object := filepath.Join(w.common, "objects", damaged[:2], damaged[2:])
	must(t, os.Chmod(object, 0o600))
	must(t, os.WriteFile(object, []byte("garbage"), 0o600))
	_, err = w.git.RevParse(ctx, w.common, damaged+"^{commit}")
	var said *commandError
	if errors.Is(err, ErrNotFound) || !errors.As(err, &said) {
		t.Errorf("a damaged object: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(w.common, "config"), []byte("[bad\n"), 0o600))
	if _, err = w.git.RevParse(ctx, w.common, tip+"^{commit}"); errors.Is(err, ErrNotFound) || !errors.As(err, &said) {
		t.Errorf("a damaged config: %v", err)
	}
}

func TestAddWorktreeOverAnEntryThatIsGone(t *testing.T) {
	w := newWorld(t)
	moved := filepath.Join(w.home, "moved")
	w.sh(w.repo, "worktree", "move", w.path, moved)
	if _, err := w.git.AddWorktree(ctx, w.common, w.path, branch, "", true); err == nil {
		t.Fatal("the branch is checked out in a worktree that is there")
	}
	must(t, os.RemoveAll(moved))
	w.sh(w.repo, "worktree", "add", "-q", "-b", "mine", filepath.Join(w.home, "mine"))
	must(t, os.RemoveAll(filepath.Join(w.home, "mine")))
	added(t)(w.git.AddWorktree(ctx, w.common, w.path, branch, "", true))
	entries, err := w.git.Worktrees(ctx, w.common)
	must(t, err)
	equal(t, "entries, the user's among them", len(entries), 3)

	// A locked worktree is on an unmounted disk.
	w.sh(w.repo, "worktree", "move", w.path, moved)
	w.sh(w.repo, "worktree", "lock", moved)
	must(t, os.RemoveAll(moved))
	if _, err := w.git.AddWorktree(ctx, w.common, w.path, branch, "", true); err == nil {
		t.Error("a locked entry was dropped")
	}
}

// TestRestore: a .git file that a worker rewrote is put back, and a file that it linked there is not written to; the
// links of an entry are mended.
func TestRestore(t *testing.T) {
	for name, rewrite := range map[string]func(w *world, admin, elsewhere string) error{
		".git file": func(w *world, _, elsewhere string) error {
			return os.WriteFile(filepath.Join(w.path, ".git"), []byte("gitdir: "+elsewhere+"\n"), 0o600)
		},
		"symlink": func(w *world, _, elsewhere string) error {
			return errors.Join(os.Remove(filepath.Join(w.path, ".git")),
				os.Symlink(filepath.Join(elsewhere, "precious"), filepath.Join(w.path, ".git")))
		},
		"commondir": func(_ *world, admin, elsewhere string) error {
			return os.WriteFile(filepath.Join(admin, "commondir"), []byte(elsewhere+"\n"), 0o600)
		},
		"no commondir": func(_ *world, admin, _ string) error { return os.Remove(filepath.Join(admin, "commondir")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			wt := w.wt()
			elsewhere := filepath.Join(w.home, "elsewhere")
			write(t, elsewhere, "precious", "mine\n")
			must(t, rewrite(w, wt.AdminDir, elsewhere))
			if _, err := w.git.Worktree(ctx, w.common, w.path, branch); err == nil {
				t.Fatal("it passes the check as it is")
			}
			must(t, w.git.Restore(ctx, w.common, w.path))
			if _, err := w.git.Worktree(ctx, w.common, w.path, branch); err != nil {
				done, err := w.git.Relink(ctx, w.common, w.path)
				equal(t, "linked again", done, true)
				must(t, err)
			}
			equal(t, "worktree", w.wt(), wt)
			equal(t, "file that was linked to", read(t, elsewhere, "precious"), "mine\n")
			w.sh(w.repo, "worktree", "list")
			must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
		})
	}
}

// TestForeignCommonDirIsRemoved: a worktree can be removed although the worker pointed its entry elsewhere.
func TestForeignCommonDirIsRemoved(t *testing.T) {
	w := newWorld(t)
	write(t, w.wt().AdminDir, "commondir", w.home+"\n")
	must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
	equal(t, "worktree", exists(w.path), false)
	w.sh(w.repo, "worktree", "list")
}
