package gitx

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// world is a repository in a new home directory, with a linked worktree on branch session/s.
type world struct {
	t       testing.TB
	environ []string
	home    string
	repo    string // main worktree, or the repository when bare
	common  string
	base    string // the first commit
	path    string // path of the linked worktree
	git     *Git
	mu      sync.Mutex
	calls   []Call
}

const branch = "session/s"

// newHome returns an empty home directory and the environment of a user there.
func newHome(t testing.TB) (string, []string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_SYSTEM=/dev/null", "LANG=C.UTF-8"}
}

// newWorld creates a repository with one commit of the given files (name, content, ...) and a worktree.
func newWorld(t testing.TB, files ...string) *world { return newWorldOf(t, nil, files...) }

func newWorldOf(t testing.TB, initArgs []string, files ...string) *world {
	t.Helper()
	w := &world{t: t}
	w.home, w.environ = newHome(t)
	write(t, w.home, ".gitconfig",
		"[user]\n\tname = Some One\n\temail = one@example.org\n[init]\n\tdefaultBranch = main\n")
	w.repo = filepath.Join(w.home, "repo")
	w.sh(w.home, append(append([]string{"init", "-q", "--template="}, initArgs...), w.repo)...)
	w.common = filepath.Join(w.repo, ".git")
	if len(files) == 0 {
		files = []string{"a.txt", "one\n"}
	}
	write(t, w.repo, files...)
	w.sh(w.repo, "add", "-A", "-f")
	w.sh(w.repo, "commit", "-q", "-m", "base")
	w.base = w.sh(w.repo, "rev-parse", "HEAD")
	w.restart()
	w.addWorktree()
	return w
}

// restart makes a new Git from the environment, as a new process would.
func (w *world) restart(environ ...string) {
	w.git = New(append(slices.Clone(w.environ), environ...), false, func(c Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, c)
	})
}

func (w *world) addWorktree() {
	w.t.Helper()
	w.path = filepath.Join(w.home, "sessions", "s", "workspace")
	if _, err := w.git.AddWorktree(context.Background(), w.common, w.path, branch, w.base, true); err != nil {
		w.t.Fatal(err)
	}
}

// sh runs git as a user would and returns its output.
func (w *world) sh(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, args...)
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(out, "\n")
}

func (w *world) try(dir string, args ...string) (string, error) {
	return w.tryEnv(dir, nil, args...)
}

func (w *world) tryEnv(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(w.environ), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// wt returns the checked worktree.
func (w *world) wt() Worktree {
	w.t.Helper()
	wt, err := w.git.Worktree(ctx, w.common, w.path, branch)
	if err != nil {
		w.t.Fatal(err)
	}
	return wt
}

// stage stages everything and returns the tree and the paths left out.
func (w *world) stage() (string, []string) {
	w.t.Helper()
	tree, left, err := w.git.StageAll(context.Background(), w.wt(), w.base)
	if err != nil {
		w.t.Fatal(err)
	}
	return tree, left
}

// files lists the paths of a tree.
func (w *world) files(tree string) []string {
	w.t.Helper()
	return fields([]byte(w.sh(w.repo, "ls-tree", "-r", "-z", "--name-only", tree)))
}

// write writes files, given as name, content, name, content...
func write(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		p := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(files[i+1], "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(p, []byte(files[i+1]), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(elem ...string) bool {
	_, err := os.Lstat(filepath.Join(elem...))
	return err == nil
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func equalLists(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// added returns the results of AddWorktree.
func added(t testing.TB) func(Worktree, error) {
	return func(_ Worktree, err error) {
		t.Helper()
		must(t, err)
	}
}

// deleted returns the results of DeleteBranch.
func deleted(t testing.TB) func(bool, error) {
	return func(_ bool, err error) {
		t.Helper()
		must(t, err)
	}
}

// snapshot returns every file below dir with its content, for comparing before and after.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type()&os.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			all[p] = "-> " + to
			return err
		}
		b, err := os.ReadFile(p)
		all[p] = string(b)
		return err
	}))
	return all
}

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// dryRun returns the same Git in dry-run mode.
func dryRun(g *Git) *Git {
	d := *g
	d.dry = true
	return &d
}

// rewind resets a worktree to sha, as the first call of a rewind does.
func rewind(g *Git, wt Worktree, sha string) error {
	keep, err := g.IgnoredBefore(ctx, wt, sha)
	if err != nil {
		return err
	}
	return g.RewindTree(ctx, wt, sha, keep)
}

// commit commits the index as a task's tree is: the hooks that come before, the commit, the hook after it.
func (w *world) commit(ctx context.Context, wt Worktree, msg string, sign bool) (sha, said string, err error) {
	p, err := w.git.BeforeCommit(ctx, wt, msg)
	if refused, is := errors.AsType[*HookRefusedError](err); is {
		return "", refused.Output, err
	}
	if err != nil {
		return "", "", err
	}
	if p.Tree == "" {
		if p.Tree, err = w.git.Mutate(ctx, w.git.InWorktree(wt, "write-tree")); err != nil {
			return "", "", err
		}
	}
	tip, _, err := w.git.BranchTip(ctx, wt.Common, wt.Branch)
	if err != nil {
		return "", "", err
	}
	sha, err = w.git.CommitTree(ctx, wt, TreeCommit{Tree: p.Tree, Parent: tip, Message: p.Message, Reflog: "x",
		Sign: sign})
	if err == nil {
		_, _ = w.git.RunHook(ctx, wt, "post-commit", nil, nil)
	}
	return sha, "", err
}
