package gitx

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var ctx = context.Background()

func TestStageAllTakesEverything(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", "gone.txt", "x\n", ".gitignore", "*.log\n")
	write(t, w.path, "a.txt", "two\n", "new/b.txt", "b\n", "x.log", "ignored\n")
	must(t, os.Remove(filepath.Join(w.path, "gone.txt")))
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{".gitignore", "a.txt", "new/b.txt"})
	equalLists(t, "left out", left, nil)
	equal(t, "content", w.sh(w.repo, "show", tree+":a.txt"), "two")
}

func TestStageAllKeepsUserIndexAndHead(t *testing.T) {
	w := newWorld(t)
	write(t, w.repo, "a.txt", "user's own\n")
	before := snapshot(t, w.repo)
	write(t, w.path, "b.txt", "b\n")
	w.stage()
	after := snapshot(t, w.repo)
	for p, content := range before {
		if strings.Contains(p, "/worktrees/") {
			continue
		}
		equal(t, p, after[p], content)
	}
}

func TestStageAllOddNames(t *testing.T) {
	odd := []string{" lead", "sp ace", "quo\"te", "new\nline", "tab\t", "back\\slash", "lat\xe9in", "ünï", "-dash",
		":(glob)x", "*", "[a]", "#hash", "!bang"}
	if runtime.GOOS == "darwin" { // its file systems take UTF-8 only
		odd = slices.DeleteFunc(odd, func(name string) bool { return !utf8.ValidString(name) })
	}
	w := newWorld(t)
	want := map[string]bool{"a.txt": true}
	for _, name := range odd {
		write(t, w.path, name, "x\n", "dir "+name+"/"+name, "y\n")
		want[name] = true
		want["dir "+name+"/"+name] = true
	}
	tree, left := w.stage()
	equalLists(t, "left out", left, nil)
	got := w.files(tree)
	equal(t, "count", len(got), len(want))
	for _, name := range got {
		if !want[name] {
			t.Errorf("unexpected file %q", name)
		}
	}
}

func TestStageAllLeavesProductsOut(t *testing.T) {
	w := newWorld(t, "a.py", "x\n", "Cargo.toml", "[package]\n", "web/node_modules/kept.js", "1\n")
	write(t, w.path,
		"__pycache__/a.pyc", "x", "deep/er/__pycache__/a.pyc", "x", "deep/er/mod.py", "x", ".pytest_cache/v/x", "x",
		".mypy_cache/x", "x", ".ruff_cache/x", "x", "node_modules/m/index.js", "x", ".venv/bin/python", "x",
		"target/debug/app", "x", "crates/x/Cargo.toml", "[package]\n", "crates/x/target/debug/x", "x",
		"crates/x/src/lib.rs", "x",
		"only/here/__pycache__/y.pyc", "x", "bin/run.sh", "x", "build/x", "x",
		"net/x.csproj", "x", "net/bin/x.dll", "x",
		"web/node_modules/kept.js", "2\n", "web/node_modules/new.js", "x")
	must(t, os.Symlink(filepath.Join(w.home, "elsewhere"), filepath.Join(w.path, "linked")))
	must(t, os.Mkdir(filepath.Join(w.path, "sub"), 0o755))
	must(t, os.Symlink("../node_modules", filepath.Join(w.path, "sub", "node_modules")))
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{
		"Cargo.toml", "a.py", "bin/run.sh", "build/x",
		"crates/x/Cargo.toml", "crates/x/src/lib.rs", "deep/er/mod.py", "linked",
		"net/x.csproj", "web/node_modules/kept.js"})
	equal(t, "tracked product file", w.sh(w.repo, "show", tree+":web/node_modules/kept.js"), "2")
	equalLists(t, "left out", left, []string{
		".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "__pycache__", "crates/x/target", "deep/er/__pycache__",
		"net/bin", "node_modules", "only/here/__pycache__", "sub/node_modules", "target", "web/node_modules"})
	again, left2 := w.stage()
	equal(t, "second staging", again, tree)
	equalLists(t, "left out the second time", left2, left)
}

func TestStageAllLeavesLeftoversOut(t *testing.T) {
	w := newWorld(t, "a.py", "x\n", "old/.DS_Store", "1")
	write(t, w.path, ".coverage", "x", ".coverage.host.1", "x", "htmlcov/index.html", "x",
		"web/.nyc_output/x.json", "{}", "web/.DS_Store", "x", ".idea/workspace.xml", "x", "npm-debug.log", "x",
		"old/.DS_Store", "2", ".coveragerc", "[run]\n", "coverage.py", "x", "web/debug.log", "x")
	w.sh(w.path, "add", "-f", ".coverage")
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{".coveragerc", "a.py", "coverage.py", "old/.DS_Store",
		"web/debug.log"})
	equalLists(t, "left out", left, []string{".coverage", ".coverage.host.1", ".idea", "htmlcov", "npm-debug.log",
		"web/.DS_Store", "web/.nyc_output"})
}

func TestHasWorkIsMoreThanBuildProducts(t *testing.T) {
	w := newWorld(t, "pkg/a.py", "a\n")
	has := func(want bool, when string) {
		t.Helper()
		got, err := w.git.IsDirty(t.Context(), w.path)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", when, got, err, want)
		}
	}
	has(false, "clean")
	write(t, w.path, "pkg/__pycache__/a.pyc", "x", "node_modules/m/index.js", "x", "gone/__pycache__/b.pyc", "x")
	has(false, "products")
	write(t, w.path, "pkg/a.py", "b\n")
	has(true, "a changed file")
	w.sh(w.path, "checkout", "-q", "--", ".")
	write(t, w.path, "new/b.py", "b\n")
	has(true, "a new file")
}

func TestStageAllTakesOutWhatTheWorkerAdded(t *testing.T) {
	w := newWorld(t, "a.py", "x\n", "lib/__pycache__/kept.pyc", "old")
	write(t, w.path, "pkg/__pycache__/a.pyc", "x", "pkg/a.py", "x", "node_modules/m/i.js", "x",
		"lib/__pycache__/kept.pyc", "new")
	write(t, w.path, ":(top)pkg/node_modules/i.js", "x")
	w.sh(w.path, "add", "-A", "-f")
	w.sh(w.path, "commit", "-q", "-m", "everything")
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{"a.py", "lib/__pycache__/kept.pyc", "pkg/a.py"})
	equal(t, "tracked product file", w.sh(w.repo, "show", tree+":lib/__pycache__/kept.pyc"), "new")
	equalLists(t, "left out", left, []string{":(top)pkg/node_modules", "node_modules", "pkg/__pycache__"})
	if !exists(w.path, "node_modules/m/i.js") {
		t.Error("the file itself is gone")
	}
	again, _ := w.stage()
	equal(t, "second staging", again, tree)
}

func TestStageAllProductsUnderTheUsersRules(t *testing.T) {
	// Covered by a rule, a product is ignored and not named; a rule that lets one in is obeyed.
	w := newWorld(t, ".gitignore", "__pycache__/\n!node_modules/\n")
	write(t, w.path, "__pycache__/a.pyc", "x", "node_modules/m.js", "x")
	write(t, w.home, ".config/git/ignore", "*.tmp\n")
	write(t, w.path, "x.tmp", "x")
	tree, left := w.stage()
	equalLists(t, "left out", left, []string{"node_modules"})
	equalLists(t, "files", w.files(tree), []string{".gitignore"})
}

func TestStageAllOtherTargetDirectories(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "target/spec.md", "x", "rust/Cargo.toml", "[package]\n", "rust/target/debug/a", "x",
		"java/target/x.txt", "x", "java/target/__pycache__/x", "x")
	write(t, w.path, "node_modules", "a plain file\n")
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{"a.txt", "java/target/x.txt", "node_modules", "rust/Cargo.toml",
		"target/spec.md"})
	equalLists(t, "left out", left, []string{"java/target/__pycache__", "rust/target"})
}

func TestStageAllNestedRepositories(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"empty", "full", "deep/er"} {
		w.sh(w.home, "init", "-q", filepath.Join(w.path, name))
	}
	write(t, w.path, "full/f.txt", "f\n", "after.txt", "x\n", "zz/last.txt", "x\n")
	w.sh(filepath.Join(w.path, "full"), "add", "-A")
	w.sh(filepath.Join(w.path, "full"), "commit", "-q", "-m", "own")
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{"a.txt", "after.txt", "zz/last.txt"})
	equalLists(t, "left out", left, []string{"deep/er", "empty", "full"})
	again, left2 := w.stage()
	equal(t, "second staging", again, tree)
	equalLists(t, "left out the second time", left2, left)
}

func TestStageAllSubmodules(t *testing.T) {
	w := newWorld(t)
	lib := filepath.Join(w.home, "lib")
	w.sh(w.home, "init", "-q", lib)
	write(t, lib, "l.txt", "l\n")
	w.sh(lib, "add", "-A")
	w.sh(lib, "commit", "-q", "-m", "lib")
	// A submodule that the worker adds properly stays. One of base stays unchanged even if it is not checked out in
	// the worktree.
	w.sh(w.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "one")
	tree, left := w.stage()
	equalLists(t, "left out", left, nil)
	equalLists(t, "files", w.files(tree), []string{".gitmodules", "a.txt", "one"})
	sha, _, err := w.commit(ctx, w.wt(), "with a submodule", false)
	must(t, err)

	second := filepath.Join(w.home, "second")
	added(t)(w.git.AddWorktree(ctx, w.common, second, "session/t", sha, true))
	wt, err := w.git.Worktree(ctx, w.common, second, "session/t")
	must(t, err)
	write(t, second, "b.txt", "b\n")
	tree, left, err = w.git.StageAll(ctx, wt, sha)
	must(t, err)
	equalLists(t, "left out", left, nil)
	equalLists(t, "files", w.files(tree), []string{".gitmodules", "a.txt", "b.txt", "one"})
}

// A tree that a strict server refuses is refused here, in git's words, unless the repository has the fault already.
func TestStrictStagingIsAServersCheck(t *testing.T) {
	bad := "[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n"
	w := newWorld(t, "a.txt", "one\n")
	write(t, w.path, ".gitmodules", bad)
	_, _, err := w.git.Strict().StageAll(ctx, w.wt(), "")
	said, is := SaidOfTree(err)
	if !is || !strings.Contains(said, "gitmodulesUrl") {
		t.Errorf("%v (%v)", err, is)
	}
	_, _, err = w.git.StageAll(ctx, w.wt(), "")
	must(t, err)

	must(t, os.Remove(filepath.Join(w.path, ".gitmodules")))
	write(t, w.path, ".g\u200cit/config", "[core]\n\tfsmonitor = ./payload\n")
	tree, left, err := w.git.Strict().StageAll(ctx, w.wt(), "")
	must(t, err)
	equalLists(t, "files", w.files(tree), []string{"a.txt"})
	equalLists(t, "left out", left, []string{".g\u200cit/config"})

	old := newWorld(t, ".gitmodules", bad)
	write(t, old.path, "b.txt", "b\n")
	_, _, err = old.git.Strict().StageAll(ctx, old.wt(), "")
	must(t, err)
}

func TestStageAllUserSettings(t *testing.T) {
	settings := []string{
		"core.autocrlf=true", "core.safecrlf=true", "core.fsmonitor=/bin/false", "status.showUntrackedFiles=no",
		"color.ui=always",
		"core.quotePath=false", "add.ignoreErrors=true", "core.untrackedCache=true", "advice.addEmbeddedRepo=true",
		"core.hooksPath=/nowhere",
	}
	w := newWorld(t, "a.txt", "one\n")
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		w.sh(w.home, "config", "--global", key, value)
	}
	w.restart()
	write(t, w.path, "mixed.txt", "a\r\nb\n", "lf.txt", "a\nb\n", "é.txt", "x\n")
	tree, left := w.stage()
	equalLists(t, "left out", left, nil)
	equalLists(t, "files", w.files(tree), []string{"a.txt", "lf.txt", "mixed.txt", "é.txt"})
	equal(t, "line ends", w.sh(w.repo, "cat-file", "blob", tree+":mixed.txt"), "a\nb")
}

func TestStageAllStaleLock(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "b.txt", "b\n")
	wt := w.wt()
	write(t, wt.AdminDir, "index.lock", "torn", "HEAD.lock", "")
	write(t, w.common, "refs/heads/"+branch+".lock", "")
	tree, _ := w.stage()
	equalLists(t, "files", w.files(tree), []string{"a.txt", "b.txt"})
	_, _, err := w.commit(ctx, w.wt(), "msg", false)
	must(t, err)
}

func TestStageAllInTheMiddleOfAMerge(t *testing.T) {
	w := newWorld(t)
	w.sh(w.path, "checkout", "-q", "-b", "side")
	write(t, w.path, "a.txt", "side\n")
	w.sh(w.path, "commit", "-q", "-a", "-m", "side")
	w.sh(w.path, "checkout", "-q", branch)
	write(t, w.path, "a.txt", "main\n")
	w.sh(w.path, "commit", "-q", "-a", "-m", "main")
	if _, err := w.try(w.path, "merge", "side"); err == nil {
		t.Fatal("the merge should conflict")
	}
	write(t, w.path, "a.txt", "both\n")
	tree, _ := w.stage()
	equal(t, "content", w.sh(w.repo, "show", tree+":a.txt"), "both")
	must(t, w.git.Reset(ctx, w.wt(), w.base, false))
	sha, _, err := w.commit(ctx, w.wt(), "task", false)
	must(t, err)
	equal(t, "parents", w.sh(w.repo, "rev-list", "--parents", "-1", sha), sha+" "+w.base)
}

// A dry run names the tree and the very commands that the run then uses, and changes nothing.
func TestStageAllDryRun(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "b.txt", "b\n", "node_modules/m.js", "x\n")
	before := snapshot(t, w.home)
	w.calls = nil
	tree, left, err := dryRun(w.git).StageAll(ctx, w.wt(), w.base)
	must(t, err)
	after := snapshot(t, w.home)
	equal(t, "number of files", len(after), len(before))
	for p, content := range after {
		equal(t, p, content, before[p])
	}
	dry := mutations(w.calls, true)
	w.calls = nil
	real, realLeft := w.stage()
	equal(t, "tree", tree, real)
	equalLists(t, "left out", left, realLeft)
	equalLists(t, "commands", dry, mutations(w.calls, false))
}

// mutations are the commands among calls that write, run or skipped.
func mutations(calls []Call, skipped bool) []string {
	var out []string
	for _, c := range calls {
		if c.Mutates && c.Skipped == skipped {
			out = append(out, c.Dir+": "+strings.Join(c.Args, " "))
		}
	}
	return out
}

func TestStageAllUnreadableFile(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "b.txt", "b\n", "secret", "x\n")
	must(t, os.Chmod(filepath.Join(w.path, "secret"), 0))
	tree, left := w.stage()
	if os.Getuid() == 0 { // root reads every file
		equalLists(t, "files", w.files(tree), []string{"a.txt", "b.txt", "secret"})
		return
	}
	equalLists(t, "files", w.files(tree), []string{"a.txt", "b.txt"})
	equalLists(t, "left out", left, []string{"secret"})
}

// TestStageAllHiddenChanges: changes that a worker hid from git by index flags are staged; paths outside of a sparse
// worktree's patterns do not count as deleted.
func TestStageAllHiddenChanges(t *testing.T) {
	w := newWorld(t, "a.txt", "1\n", "b.txt", "1\n", "c.txt", "1\n", "out/of/it", "1\n")
	w.sh(w.path, "update-index", "--skip-worktree", "a.txt", "c.txt", "out/of/it")
	w.sh(w.path, "update-index", "--assume-unchanged", "b.txt", "c.txt")
	must(t, os.RemoveAll(filepath.Join(w.path, "out")))
	write(t, w.path, "a.txt", "2\n", "b.txt", "2\n", "c.txt", "2\n")
	tree, _ := w.stage()
	for _, f := range []string{"a.txt", "b.txt", "c.txt"} {
		equal(t, f, w.sh(w.repo, "show", tree+":"+f), "2")
	}
	equal(t, "file that is left out", w.sh(w.repo, "show", tree+":out/of/it"), "1")
}

// Skipped directories are reported: one deeper than the longest path, by the beginning of its path.
func TestStageAllNamesWhatIsTooDeepForGit(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n")
	write(t, w.path, "b.txt", "b\n")
	long := strings.Repeat("d", 200)
	deepen(t, w.path, long, 30)
	tree, left := w.stage()
	equalLists(t, "files", w.files(tree), []string{"a.txt", "b.txt"})
	equalLists(t, "left out", left, []string{long + "..."})
}
