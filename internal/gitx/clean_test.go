package gitx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/proc"
)

func TestRewindTree(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", ".gitignore", "*.log\n.venv/\n", "sub/.gitignore", "/cache/\n",
		"sub/x.txt", "x\n")
	// Ignored before the run, during it, or by the user's own rules: it stays.
	write(t, w.home, ".config/git/ignore", "*.swp\n")
	write(t, w.path, "x.log", "1", ".venv/bin/p", "1", "sub/cache/c", "1", "a.swp", "1")
	// The run changes rules both ways and leaves files of every kind.
	write(t, w.path, ".gitignore", "*.tmp\n/made/\n[o]dd*\n", "sub/.gitignore", "*.own\n", "new/.gitignore", "*.dat\n")
	write(t, w.path, "y.tmp", "1", "made/m", "1", "odd [1] \"x\"\n\t", "1", "sub/y.own", "1", "new/z.dat", "1",
		"new/z.txt", "1", "deep/er/y.tmp", "1", "deep/er/other", "1", "untracked", "1", "a.txt", "changed\n")
	w.sh(w.path, "rm", "-q", "--cached", "sub/x.txt")
	w.sh(w.path, "add", "-A")
	w.sh(w.path, "commit", "-q", "-m", "work")
	write(t, w.path, "later.txt", "1", "node_modules/m", "1", "uncommitted/.gitignore", "*.unc\n",
		"uncommitted/f.unc", "1")
	w.sh(w.path, "add", "later.txt")

	must(t, rewind(w.git, w.wt(), w.base))
	equal(t, "branch", w.sh(w.repo, "rev-parse", branch), w.base)
	equal(t, "tracked changes", w.sh(w.path, "status", "--porcelain", "--untracked-files=no"), "")
	equal(t, "file", read(t, w.path, "a.txt"), "one\n")
	equal(t, "rules", read(t, w.path, ".gitignore"), "*.log\n.venv/\n")
	for _, kept := range []string{"a.swp", "y.tmp", "made/m", "odd [1] \"x\"\n\t", "sub/y.own", "new/z.dat",
		"deep/er/y.tmp", "uncommitted/f.unc", "sub/x.txt"} {
		if !exists(w.path, kept) {
			t.Errorf("%q is gone", kept)
		}
	}
	for _, gone := range []string{"new/z.txt", "new/.gitignore", "deep/er/other", "untracked", "later.txt",
		"node_modules", "uncommitted/.gitignore"} {
		if exists(w.path, gone) {
			t.Errorf("%q is still there", gone)
		}
	}
}

func TestRewindTreeKeepsWhatOnlyTheBaseIgnores(t *testing.T) {
	w := newWorld(t, ".gitignore", ".venv/\n")
	write(t, w.path, ".venv/bin/p", "1", ".gitignore", "nothing\n")
	must(t, rewind(w.git, w.wt(), w.base))
	equal(t, "kept", exists(w.path, ".venv/bin/p"), true)
}

func TestRewindTreeWithManyIgnoredFiles(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, ".gitignore", "*.o\n")
	for i := range 3000 {
		write(t, w.path, fmt.Sprintf("src/a rather long name of an object file %d.o", i), "")
	}
	write(t, w.path, "src/x.c", "")
	must(t, rewind(w.git, w.wt(), w.base))
	entries, err := os.ReadDir(filepath.Join(w.path, "src"))
	must(t, err)
	equal(t, "kept", len(entries), 3000)
}

func TestRewindTreeWithRepositoriesInIt(t *testing.T) {
	w := newWorld(t, ".gitignore", "vendor/\n")
	// Its rules apply, although it is removed.
	write(t, w.path, "new/.gitignore", "*.dat\n", "new/z.dat", "1")
	for _, dir := range []string{"nested", "deep/er", "vendor/dep", "new/ödd \"x\"\n"} {
		w.sh(w.home, "init", "-q", filepath.Join(w.path, dir))
		write(t, w.path, dir+"/f", "1")
	}
	w.sh(w.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.repo, "mod")
	w.sh(w.path, "commit", "-q", "-m", "a submodule")
	w.calls = nil
	must(t, rewind(w.git, w.wt(), w.base))
	for name, want := range map[string]bool{"nested": false, "deep": false, "vendor/dep/f": true, "mod": false,
		"a.txt": false, ".gitignore": true, "new/.gitignore": false, "new/z.dat": true, "new/ödd \"x\"\n": false} {
		equal(t, name, exists(w.path, name), want)
	}
	equal(t, "status", w.sh(w.path, "status", "--porcelain"), "?? new/")
}

func TestRewindTreeLeavesSubmodulesOfTheBase(t *testing.T) {
	w := newWorld(t)
	lib := filepath.Join(w.home, "lib")
	w.sh(w.home, "clone", "-q", w.repo, lib)
	w.sh(w.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "mod")
	w.sh(w.repo, "commit", "-q", "-m", "a submodule")
	base := w.sh(w.repo, "rev-parse", "HEAD")
	w.sh(w.home, "config", "--global", "submodule.recurse", "true")
	added(t)(w.git.AddWorktree(ctx, w.common, filepath.Join(w.home, "wt"), "session/t", base, true))
	wt, err := w.git.Worktree(ctx, w.common, filepath.Join(w.home, "wt"), "session/t")
	must(t, err)
	w.sh(wt.Path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	write(t, wt.Path, "mod/own.txt", "1", "x", "1")
	must(t, rewind(w.git, wt, base))
	equal(t, "in the submodule", exists(wt.Path, "mod/own.txt"), true)
	equal(t, "beside it", exists(wt.Path, "x"), false)
}

func TestCleanReadOnlyDirectories(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "gomod/pkg/x.go", "x")
	must(t, os.Chmod(filepath.Join(w.path, "gomod", "pkg"), 0o555))
	must(t, os.Chmod(filepath.Join(w.path, "gomod"), 0o555))
	must(t, w.git.clean(ctx, w.wt(), nil))
	equal(t, "cache", exists(w.path, "gomod"), false)
	write(t, w.path, "dir/sub/x", "x", "other/x", "x")
	must(t, os.Chmod(filepath.Join(w.path, "dir", "sub"), 0o500))
	must(t, os.Chmod(filepath.Join(w.path, "dir"), 0o500))
	must(t, os.Chmod(filepath.Join(w.path, "other"), 0))
	equalLists(t, "directories without the right", proc.MakeRemovable(w.path), []string{"dir", "other"})
	equalLists(t, "none left", proc.MakeRemovable(w.path), nil)
}

func TestRewindTreeOverAnIndexThatCannotBeRead(t *testing.T) {
	for name, index := range map[string]string{"empty": "", "garbage": "zz",
		"torn": "DIRC\x00\x00\x00\x02\x00\x00\x00\x09", "longer garbage": strings.Repeat("x", 4096)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ".gitignore", "*.log\n", "a.txt", "one\n")
			write(t, w.path, ".gitignore", "*.log\nkeep/\n", "a.txt", "two\n", "keep/k", "1", "new", "1")
			wt := w.wt()
			write(t, wt.AdminDir, "index", index)
			keep, err := w.git.IgnoredBefore(ctx, wt, w.base)
			must(t, err)
			equalLists(t, "kept", keep, []string{"keep/"})
			// The machine may lose its power again half-way.
			write(t, wt.AdminDir, "index", index)
			must(t, w.git.RewindTree(ctx, wt, w.base, keep))
			equal(t, "status", w.sh(w.path, "status", "--porcelain"), "?? keep/")
			equal(t, "file", read(t, w.path, "a.txt"), "one\n")
		})
	}
}

// TestRewindTreeCost: without a change of rules, one cheap command beyond reset and clean.
func TestRewindTreeCost(t *testing.T) {
	w := newWorld(t, ".gitignore", "*.log\n", "a.txt", "one\n")
	write(t, w.path, "a.txt", "two\n", "b.txt", "b\n")
	wt := w.wt()
	w.calls = nil
	must(t, rewind(w.git, wt, w.base))
	var names []string
	for _, c := range w.calls {
		names = append(names, subcommand(c.Args))
	}
	equalLists(t, "commands", names, []string{"diff-index", "read-tree", "update-ref", "clean"})
	w.calls = nil
	must(t, rewind(dryRun(w.git), wt, w.base))
	equal(t, "reset", w.calls[1].Skipped && w.calls[3].Skipped && !w.calls[0].Mutates, true)
}

func TestReadTreeKeepsFilesAndTheirStat(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", "b.txt", "b\n")
	base := w.sh(w.repo, "rev-parse", w.base+"^{tree}")
	write(t, w.path, "a.txt", "two\n", "c.txt", "c\n")
	tree, _ := w.stage()
	must(t, w.git.ReadTree(ctx, w.wt(), base, false))
	equal(t, "index", w.sh(w.path, "write-tree"), base)
	equal(t, "file", read(t, w.path, "a.txt"), "two\n")
	if strings.Contains(w.sh(w.path, "ls-files", "--debug", "b.txt"), "mtime: 0:0") {
		t.Error("git forgot the state of an unchanged file")
	}
	must(t, w.git.ReadTree(ctx, w.wt(), tree, false))
	equal(t, "index", w.sh(w.path, "write-tree"), tree)
}

func TestSoftResetUnwinds(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "b.txt", "partial\n")
	tree, _ := w.stage()
	_, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    tree,
		Parent:  w.base,
		Message: "FAILED (iter_cap): T-001 x\n",
		Reflog:  "tilth: placeholder",
	})
	must(t, err)
	equal(t, "status", w.sh(w.path, "status", "--porcelain"), "")
	must(t, w.git.Reset(ctx, w.wt(), w.base, false))
	equal(t, "status", w.sh(w.path, "status", "--porcelain"), "A  b.txt")
}

func TestSoftResetWithConflictsInTheIndex(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"theirs", "ours"} {
		w.sh(w.path, "checkout", "-q", "--detach", w.base)
		write(t, w.path, "a.txt", name+"\n")
		w.sh(w.path, "commit", "-q", "-a", "-m", name)
		w.sh(w.path, "tag", name)
	}
	w.sh(w.path, "checkout", "-q", branch)
	w.sh(w.path, "reset", "-q", "--hard", "ours")
	if _, err := w.try(w.path, "merge", "-q", "theirs"); err == nil {
		t.Fatal("there is no conflict")
	}
	must(t, w.git.ClearInProgress(ctx, w.wt()))
	must(t, w.git.Reset(ctx, w.wt(), w.base, false))
	equal(t, "branch", w.sh(w.repo, "rev-parse", branch), w.base)
	equal(t, "status", w.sh(w.path, "status", "--porcelain"), "UU a.txt")
}
