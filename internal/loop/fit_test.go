package loop

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// Too large files, staged or left out, and a submodule's commit that only this machine has, are refused by name.
func TestCheckFit(t *testing.T) {
	top := t.TempDir()
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + top, "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}
	sh := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = filepath.Join(top, dir), environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sh("", "init", "-q", "repo")
	sh("repo", "commit", "-q", "--allow-empty", "-m", "base")
	sh("repo", "worktree", "add", "-q", "-b", "work", "../wt")
	g, common := gitx.New(environ, false, nil), filepath.Join(top, "repo", ".git")
	wt, err := g.Worktree(t.Context(), common, filepath.Join(top, "wt"), "work")
	must(err)
	base := sh("wt", "rev-parse", "HEAD")
	unfit := func(max int64, leftOut ...string) string {
		t.Helper()
		tree, _, err := g.StageAll(t.Context(), wt, base)
		must(err)
		changes, _, _, err := g.Changes(t.Context(), common, base, tree, 0)
		must(err)
		found, err := checkFit(t.Context(), g, wt, base, changes, leftOut, max)
		must(err)
		of, err := contents(t.Context(), g, common, tree, changes, max, nil, nil)
		must(err)
		maps.Copy(found, of.unfit)
		return fmt.Sprint(slices.Sorted(maps.Keys(found)))
	}
	for name, size := range map[string]int{"small": 8, "large": 9, "deep/larger": 100, ".venv/out": 9, ".venv/in": 8} {
		must(os.MkdirAll(filepath.Dir(filepath.Join(wt.Path, name)), 0o700))
		must(os.WriteFile(filepath.Join(wt.Path, name), make([]byte, size), 0o600))
	}
	for _, c := range []struct {
		max     int64
		leftOut []string
		want    string
	}{
		{100, nil, "[]"}, {0, nil, "[]"}, {8, nil, "[deep/larger large]"},
		{8, []string{".venv", ".venv/in", ".venv/out", "gone"}, "[.venv/out deep/larger large]"},
	} {
		if got := unfit(c.max, c.leftOut...); got != c.want {
			t.Errorf("at most %d bytes: %s, want %s", c.max, got, c.want)
		}
	}
	modules := filepath.Join(wt.Path, ".gitmodules")
	for content, want := range map[string]string{
		"[submodule \"a\"]\n\tpath = a\n": "[]", "[submodule \"a\"]\n\tupdate = rebase\n": "[]",
		"[broken\n": "[.gitmodules]", "[submodule \"a\"]\n\tupdate = !true\n": "[.gitmodules]",
	} {
		must(os.WriteFile(modules, []byte(content), 0o600))
		if got := unfit(0); got != want {
			t.Errorf("%q: %s, want %s", content, got, want)
		}
	}
	must(os.Remove(modules))
	sh("wt", "rm", "--cached", "--quiet", ".gitmodules")
	sh("repo", "commit", "-q", "--allow-empty", "-m", "next")
	sh("wt", "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../repo", "sub")
	if got := unfit(0); got != "[sub]" {
		t.Errorf("a submodule that the seed has not: %s", got)
	}
	sh("wt", "commit", "-q", "-m", "seed")
	base = sh("wt", "rev-parse", "HEAD")
	sh("repo", "commit", "-q", "--allow-empty", "-m", "bumped")
	sh("wt/sub", "pull", "-q")
	if got := unfit(0); got != "[]" {
		t.Errorf("a submodule at a published commit: %s", got)
	}
	sh("wt/sub", "checkout", "-q", "HEAD~2")
	if got := unfit(0); got != "[]" {
		t.Errorf("a submodule below a published commit: %s", got)
	}
	sh("wt/sub", "commit", "-q", "--allow-empty", "-m", "nobody else has this")
	sh("wt/sub", "update-ref", "refs/remotes/origin/main", "HEAD")
	if got := unfit(0); got != "[sub]" {
		t.Errorf("a submodule at a commit of its own: %s", got)
	}
	commit := sh("wt/sub", "rev-parse", "HEAD")
	object := filepath.Join(wt.Path, "sub/.git/objects", commit[:2], commit[2:])
	if sh("wt/sub", "rev-parse", "--git-dir") != ".git" {
		must(os.Remove(filepath.Join(wt.Path, "sub/.git")))
		must(os.Rename(filepath.Join(common, "worktrees/wt/modules/sub"), filepath.Join(wt.Path, "sub/.git")))
	}
	must(os.Remove(object))
	must(syscall.Mkfifo(object, 0o600))
	if got := unfit(0); got != "[sub]" {
		t.Errorf("a submodule whose commit is a pipe: %s", got)
	}
}
