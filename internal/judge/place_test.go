package judge_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
)

// world is a repository with a worktree and a judged checkout.
type world struct {
	*testing.T
	repo, session, dir string
	place              *judge.Checkout
	base               string
	repaired           []string
}

func newWorld(t *testing.T, files map[string]string, more func(*judge.Options)) *world {
	t.Helper()
	top := t.TempDir()
	w := &world{T: t, repo: filepath.Join(top, "repo"), session: filepath.Join(top, "session")}
	w.dir = filepath.Join(w.session, "judge")
	for _, dir := range []string{w.repo, w.session} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", top)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	w.git("init", "-q")
	w.git("config", "user.name", "a")
	w.git("config", "user.email", "a@example.com")
	for name, text := range files {
		w.write(w.repo, name, text)
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "first")
	w.base = w.git("rev-parse", "HEAD")
	o := judge.Options{
		Git: gitx.New(os.Environ(), false, nil), Common: filepath.Join(w.repo, ".git"), Branch: "session/x",
		Setup:    func(context.Context, string) error { return nil },
		Repaired: func(what, done string) error { w.repaired = append(w.repaired, what); return nil },
	}
	if more != nil {
		more(&o)
	}
	var err error
	if w.place, err = judge.New(context.Background(), w.dir, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.place.Open)
	return w
}

func (w *world) git(args ...string) string {
	w.Helper()
	return gitIn(w.T, w.repo, args...)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(dir, name, text string) {
	w.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// tree stages everything in the worktree and names it.
func (w *world) tree() string {
	w.Helper()
	w.git("add", "-A")
	return w.git("write-tree")
}

func (w *world) layOut() judge.Laid {
	w.Helper()
	laid, err := w.place.Update(context.Background(), w.base, w.tree())
	if err != nil {
		w.Fatal(err)
	}
	return laid
}

func (w *world) shut() {
	w.Helper()
	if err := w.place.Close(); err != nil {
		w.Fatal(err)
	}
}

func (w *world) open() {
	w.Helper()
	if err := os.Chmod(w.dir, 0o700); err != nil {
		w.Fatal(err)
	}
}

func (w *world) has(name, text string) {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil || string(data) != text {
		w.Errorf("%s is %q (%v), want %q", name, data, err, text)
	}
}

func (w *world) hasNot(name string) {
	w.Helper()
	if _, err := os.Lstat(filepath.Join(w.dir, name)); !errors.Is(err, os.ErrNotExist) {
		w.Errorf("%s is there (%v)", name, err)
	}
}

func (w *world) inPlace(command string) string {
	w.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestLayOutHoldsTheTreeAndNothingElse(t *testing.T) {
	w := newWorld(t, map[string]string{".gitignore": "*.log\n", "a/b.txt": "1\n", "c.txt": "c\n"}, nil)
	w.write(w.repo, "x.log", "ignored")
	w.write(w.repo, "a/b.txt", "2\n")
	w.write(w.repo, "a/new.txt", "n\n")
	laid := w.layOut()
	if got := strings.Join(laid.Files, " "); got != ".gitignore a/b.txt a/new.txt c.txt" {
		t.Errorf("files are %s", got)
	}
	w.has("a/b.txt", "2\n")
	w.hasNot("x.log")
	w.inPlace("touch a/left.txt && mkdir -p build/x && touch build/x/y")
	w.shut()
	if fi, err := os.Lstat(w.dir); err != nil || fi.Mode().Perm() != 0 {
		t.Errorf("a place that is shut has mode %v (%v)", fi.Mode(), err)
	}
	if err := os.Remove(filepath.Join(w.repo, "a/new.txt")); err != nil {
		t.Fatal(err)
	}
	w.layOut()
	w.hasNot("a/left.txt")
	w.hasNot("build")
	w.hasNot("a/new.txt")
	w.has("c.txt", "c\n")
}

func TestLayOutUndoesWhatGotIn(t *testing.T) {
	w := newWorld(t, map[string]string{"a.py": "1\n", "dir/b.py": "2\n", "dir/sub/c.py": "3\n"}, nil)
	w.layOut()
	w.shut()
	was, err := os.Stat(filepath.Join(w.repo, "a.py"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// Same size and mtime.
	there, err := os.Stat(filepath.Join(w.dir, "a.py"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.dir, "a.py", "9\n")
	if err := os.Chtimes(filepath.Join(w.dir, "a.py"), was.ModTime(), there.ModTime()); err != nil {
		t.Fatal(err)
	}
	w.write(w.dir, "dir/conftest.py", "evil\n")
	// A directory that was changed for another one.
	if err := os.Rename(filepath.Join(w.dir, "dir/sub"), filepath.Join(w.session, "sub")); err != nil {
		t.Fatal(err)
	}
	w.write(w.dir, "dir/sub/c.py", "9\n")
	w.layOut()
	w.has("a.py", "1\n")
	w.has("dir/sub/c.py", "3\n")
	w.hasNot("dir/conftest.py")
}

// A changed index, git's settings in the checkout, and a filter of the worker have no effect.
func TestLayOutBelievesNoSettings(t *testing.T) {
	w := newWorld(t, map[string]string{"a.py": "1\n"}, func(o *judge.Options) {
		// Before the run: the user's own.
		gitIn(t, filepath.Dir(o.Common), "config", "filter.up.smudge", "tr a-z A-Z")
	})
	w.git("config", "filter.evil.smudge", "sed s/1/5/")
	w.write(w.repo, ".gitattributes", "*.py filter=evil\n*.up filter=up\n")
	w.write(w.repo, "b.py", "1 2\n")
	w.write(w.repo, "c.up", "loud\n")
	w.layOut()
	w.has("b.py", "1 2\n")
	w.has("c.up", "LOUD\n")
	w.inPlace("git config filter.evil.smudge 'sed s/1/5/'; git rm -q --cached a.py")
	w.write(w.repo, "b.py", "1 3\n")
	w.layOut()
	w.has("b.py", "1 3\n")
	w.has("a.py", "1\n")
}

func TestPlaceAnswersGitAndKeepsOutOfTheRepository(t *testing.T) {
	w := newWorld(t, map[string]string{"a.py": "1\n"}, func(o *judge.Options) {
		gitIn(t, filepath.Dir(o.Common), "tag", "-a", "-m", "v", "v1.2")
	})
	w.layOut()
	if got := w.inPlace("git describe --dirty"); got != "v1.2" {
		t.Errorf("describe says %s", got)
	}
	if got := w.inPlace("git branch --show-current"); got != "session/x" {
		t.Errorf("the branch is %s", got)
	}
	w.inPlace("git tag evil && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m evil")
	refs := w.git("for-each-ref", "--format=%(refname)")
	if strings.Contains(refs, "evil") || strings.Contains(refs, "session") {
		t.Errorf("refs of the repository: %s", refs)
	}
	w.write(w.repo, "a.py", "2\n")
	w.layOut()
	if got := w.inPlace("git describe --dirty --tags; git tag"); got != "v1.2-dirty\nv1.2" {
		t.Errorf("after a change: %s", got)
	}
}

func TestSetupRunsOnceAndForEachLockFile(t *testing.T) {
	ran := 0
	w := newWorld(t, map[string]string{"package.json": "{}", "package-lock.json": "1", "a.js": "1"},
		func(o *judge.Options) {
			o.Setup = func(_ context.Context, dir string) error {
				ran++
				if data, _ := os.ReadFile(filepath.Join(dir, "a.js")); string(data) == "broken" {
					return errors.New("no")
				}
				for name, text := range map[string]string{"node_modules/x/index.js": "x", "node_modules/.cache/c": "c",
					"a.js": "by the setup"} {
					file := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
						return err
					}
					if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
						return err
					}
				}
				return nil
			}
		})
	expect := func(n int) {
		t.Helper()
		w.layOut()
		if ran != n {
			t.Errorf("the setup ran %d times, want %d", ran, n)
		}
		w.has("node_modules/x/index.js", "x")
		w.shut()
		_ = os.Chmod(w.dir, 0o700)
	}
	expect(1)
	w.has("a.js", "1")
	w.write(w.dir, "node_modules/.cache/c", "other")
	w.write(w.dir, "node_modules/evil.js", "other")
	expect(1)
	w.hasNot("node_modules/evil.js")
	w.write(w.repo, "a.js", "2")
	expect(1)
	w.write(w.dir, "node_modules/x/index.js", "y")
	expect(2)
	w.write(w.repo, "package-lock.json", "2")
	expect(3)
	w.write(w.repo, "a.js", "broken")
	w.write(w.repo, "package-lock.json", "3")
	var failed *judge.SetupError
	if _, err := w.place.Update(context.Background(), w.base, w.tree()); !errors.As(err, &failed) {
		t.Errorf("a setup that fails gives %v", err)
	}
	w.write(w.repo, "a.js", "mended")
	expect(5)
}

func TestCargoTargetStaysUnlessItWasChanged(t *testing.T) {
	w := newWorld(t, map[string]string{".gitignore": "target/\n", "Cargo.toml": "", "src/lib.rs": "1"}, nil)
	w.write(w.repo, "target/debug/x", "the worker's")
	w.layOut()
	w.hasNot("target")
	w.write(w.dir, "target/debug/x", "built")
	w.shut()
	w.write(w.repo, "src/lib.rs", "2")
	w.layOut()
	w.has("target/debug/x", "built")
	w.shut()
	_ = os.Chmod(w.dir, 0o700)
	w.write(w.dir, "target/debug/x", "evil!")
	w.layOut()
	w.hasNot("target")
}

// A judgement that did not accept leaves no builds to the next one.
func TestBuildsOfARejectedChangeGo(t *testing.T) {
	w := newWorld(t, map[string]string{"Cargo.toml": "", "sub/Cargo.toml": "", "src/lib.rs": "1"}, nil)
	w.layOut()
	w.write(w.dir, "target/debug/x", "built")
	w.write(w.dir, "sub/target/debug/x", "built")
	if err := w.place.DropBuilds(); err != nil {
		t.Fatal(err)
	}
	w.shut()
	w.layOut()
	w.hasNot("target")
	w.hasNot("sub/target")
}

// A changed .gitattributes changes other files, as in a fresh clone.
func TestAttributesOfTheTreeHold(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "one\n", "sub/b.txt": "two\n", "bin": "3\n"}, nil)
	w.layOut()
	w.has("a.txt", "one\n")
	w.shut()
	w.write(w.repo, ".gitattributes", "*.txt eol=crlf\n")
	w.layOut()
	w.has("a.txt", "one\r\n")
	w.has("sub/b.txt", "two\r\n")
	w.has("bin", "3\n")
	w.shut()
	w.write(w.repo, "sub/.gitattributes", "*.txt eol=lf\n")
	w.layOut()
	w.has("a.txt", "one\r\n")
	w.has("sub/b.txt", "two\n")
	w.shut()
	w.git("rm", "-qf", ".gitattributes")
	w.layOut()
	w.has("a.txt", "one\n")
}

func TestNothingRunsWhereNothingChanged(t *testing.T) {
	calls := 0
	w := newWorld(t, map[string]string{"a": "1"}, func(o *judge.Options) {
		o.Git = gitx.New(os.Environ(), false, func(gitx.Call) { calls++ })
	})
	w.layOut()
	calls = 0
	w.shut()
	w.layOut()
	if calls != 0 {
		t.Errorf("%d git commands for the same tree", calls)
	}
	w.write(w.repo, "a", "2")
	w.layOut()
	if calls != 1 {
		t.Errorf("%d git commands for another tree", calls)
	}
}

func TestALinkInThePlaceLeadsNowhere(t *testing.T) {
	w := newWorld(t, map[string]string{"a/b": "1"}, nil)
	other := t.TempDir()
	w.write(other, "x", "x")
	if err := syscall.Symlink(other, w.dir); err != nil {
		t.Fatal(err)
	}
	w.layOut()
	if _, err := os.Stat(filepath.Join(other, "x")); err != nil {
		t.Error(err)
	}
}

// Nothing of the worktree is in the checkout, dependencies included; files that setup copied stay.
func TestNothingIsLentFromTheWorktree(t *testing.T) {
	ran := 0
	w := newWorld(t, map[string]string{".gitignore": "node_modules/\n.venv/\nvendor/\n.env\n", "package.json": "{}",
		"pyproject.toml": "", "go.mod": "", "go.sum": "1"},
		func(o *judge.Options) {
			o.Setup = func(_ context.Context, dir string) error {
				ran++
				return os.WriteFile(filepath.Join(dir, ".env"), []byte("copied"), 0o644)
			}
		})
	for _, name := range []string{"node_modules/dep/index.js", ".venv/lib/x.py", "vendor/mine"} {
		w.write(w.repo, name, "the worker's")
	}
	for i, sum := range []string{"1", "1", "2", "2"} {
		w.write(w.repo, "go.sum", sum)
		w.layOut()
		if want := 1 + i/2; ran != want {
			t.Errorf("the setup ran %d times, want %d", ran, want)
		}
		w.has(".env", "copied")
		for _, name := range []string{"node_modules", ".venv", "vendor"} {
			w.hasNot(name)
		}
		w.shut()
	}
	if len(w.repaired) > 0 {
		t.Errorf("repaired: %q", w.repaired)
	}
}

// Setup installs from a package.json that no lock file pins, and runs again when that file changed.
func TestSetupRunsForEachManifestWithoutALockFile(t *testing.T) {
	ran := 0
	w := newWorld(t, map[string]string{"package.json": "{}", "sub/package.json": "{}"}, func(o *judge.Options) {
		o.Setup = func(context.Context, string) error { ran++; return nil }
	})
	for _, c := range []struct {
		file, text string
		want       int
	}{
		{"x", "", 1}, {"package.json", "{ }", 2}, {"package-lock.json", "{}", 3}, {"package.json", "{}", 3},
		{"sub/package.json", "{ }", 3},
	} {
		w.write(w.repo, c.file, c.text)
		w.layOut()
		if ran != c.want {
			t.Errorf("after %s the setup ran %d times, want %d", c.file, ran, c.want)
		}
		w.shut()
		w.git("commit", "-q", "-m", "accepted")
		w.base = w.git("rev-parse", "HEAD")
	}
}

// Files from setup in one attempt's tree, which runs its install scripts, do not serve another attempt.
func TestWhatASetupMadeInOneAttemptIsNotLeftForTheNext(t *testing.T) {
	ran := 0
	w := newWorld(t, map[string]string{".gitignore": "node_modules/\n", "package-lock.json": "1", "install": "honest"},
		func(o *judge.Options) {
			o.Setup = func(_ context.Context, dir string) error {
				ran++
				said, err := os.ReadFile(filepath.Join(dir, "install"))
				if err != nil || string(said) == "broken" {
					return errors.New("no")
				}
				dir = filepath.Join(dir, "node_modules")
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
				_ = os.WriteFile(filepath.Join(dir, "x-"+string(said)), nil, 0o644)
				return os.WriteFile(filepath.Join(dir, "runner"), said, 0o644)
			}
		})
	expect := func(install, lock, runner string, n int) {
		t.Helper()
		w.write(w.repo, "install", install)
		w.write(w.repo, "package-lock.json", lock)
		w.layOut()
		w.has("node_modules/runner", runner)
		w.has("install", install)
		if ran != n {
			t.Errorf("the setup ran %d times, want %d", ran, n)
		}
		w.shut()
	}
	expect("evil", "1", "honest", 1) // in the commit's tree
	expect("other", "1", "honest", 1)
	expect("evil", "2", "evil", 2) // in its own tree
	expect("evil", "2", "evil", 2)
	expect("good", "2", "good", 3)
	w.open()
	w.hasNot("node_modules/x-evil")
	w.shut()
	w.git("commit", "-q", "-m", "accepted")
	w.base = w.git("rev-parse", "HEAD")
	expect("more", "2", "good", 3)
}

// If setup fails before the change, fixing that may be the task.
func TestASetupThatTheTaskIsToMend(t *testing.T) {
	w := newWorld(t, map[string]string{"Makefile": "broken"}, func(o *judge.Options) {
		o.Setup = func(_ context.Context, dir string) error {
			if data, _ := os.ReadFile(filepath.Join(dir, "Makefile")); string(data) == "broken" {
				return errors.New("no")
			}
			return os.WriteFile(filepath.Join(dir, "made"), []byte("made"), 0o644)
		}
	})
	w.write(w.repo, "Makefile", "mended")
	w.layOut()
	w.has("made", "made")
	w.has("Makefile", "mended")
}

// Without a setup that clones them there are no submodules.
func TestNothingIsLeftAmongGitsOwnFiles(t *testing.T) {
	w := newWorld(t, map[string]string{"a.py": "1"}, nil)
	w.layOut()
	w.write(w.dir, ".git/modules/helper.py", "evil")
	w.shut()
	w.write(w.repo, "a.py", "2")
	w.layOut()
	w.hasNot(".git/modules")
}

// Build results are removed if the next tree has no package there, or has files there.
func TestWhatIsKeptGoesWithWhatItWasKeptFor(t *testing.T) {
	w := newWorld(t, map[string]string{"a.py": "1", ".gitignore": "target/\n"}, nil)
	w.write(w.repo, "Cargo.toml", "")
	w.layOut()
	w.write(w.dir, "target/conftest.py", "evil")
	w.shut()
	if err := os.Remove(filepath.Join(w.repo, "Cargo.toml")); err != nil {
		t.Fatal(err)
	}
	w.write(w.repo, "target/mine.py", "mine")
	w.git("add", "-f", "target/mine.py")
	w.layOut()
	w.hasNot("target/conftest.py")
	w.has("target/mine.py", "mine")
}
