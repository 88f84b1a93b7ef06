package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestClearForksKilled: leftovers of a kill are removed, and an unfinished fork of a live process stays.
func TestClearForksKilled(t *testing.T) {
	root := t.TempDir()
	left, made := filepath.Join(root, session.DraftPrefix+"20260601-102030-aaaaaa"), filepath.Join(root,
		session.DraftPrefix+"20260601-102030-bbbbbb")
	for _, dir := range []string{left, made} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := (&session.Session{ID: "20260601-102030-bbbbbb", Dir: made}).Lock(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	found := halfForks(session.Store{Root: root})
	if len(found) != 1 {
		t.Fatalf("%v", found)
	}
	if err := found[0].Fix(t.Context()); err != nil || held.Exists(left) || !held.Exists(made) {
		t.Errorf("%v, left %v, made %v", err, held.Exists(left), held.Exists(made))
	}
}

// TestOrphansBesideOthers: a session is removed while its repository is checked, or returns before the fix.
func TestOrphansBesideOthers(t *testing.T) {
	repo, root := t.TempDir(), t.TempDir()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@y"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	common, store := filepath.Join(repo, ".git"), session.Store{Root: root}
	for _, id := range []string{"20260601-102030-aaaaaa", "20260601-102030-bbbbbb"} {
		s, err := store.Create(id)
		if err != nil {
			t.Fatal(err)
		}
		if id[16] == 'a' {
			git("worktree", "add", "-q", "-b", s.Branch(), s.Workspace())
		}
	}
	id := "20260601-102030-aaaaaa"
	dir := filepath.Join(root, id)
	plain := gitx.New(os.Environ(), false, nil)
	meanwhile := func(after string, do func()) []record.Check {
		g := gitx.New(os.Environ(), false, func(c gitx.Call) {
			if slices.Contains(c.Args, after) {
				do()
			}
		})
		found, err := orphans(t.Context(), g, store, common)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(os.RemoveAll(filepath.Join(dir, session.WorkspaceDir)))
	if found := meanwhile("for-each-ref", func() {
		must(plain.RemoveWorktree(t.Context(), common, filepath.Join(dir, session.WorkspaceDir)))
		_, err := plain.DeleteBranch(t.Context(), common, "session/"+id)
		must(err)
		must(os.RemoveAll(dir))
	}); len(found) > 0 {
		t.Errorf("of a session that is removed: %v", found)
	}
	back := func() {
		git("worktree", "add", "-q", "-b", "session/"+id, filepath.Join(dir, session.WorkspaceDir))
	}
	back()
	must(os.RemoveAll(dir))
	found := meanwhile("none", nil)
	if len(found) != 2 || found[0].Fix == nil || found[1].Fix == nil {
		t.Fatalf("%+v", found)
	}
	git("worktree", "prune")
	git("branch", "-q", "-D", "session/"+id)
	back()
	for _, a := range found {
		must(a.Fix(t.Context()))
	}
	if _, err := os.Stat(filepath.Join(dir, session.WorkspaceDir, ".git")); err != nil {
		t.Error(err)
	}
	git("rev-parse", "--verify", "session/"+id)
}

// TestCheckBesideAnother: a command that starts on a session during the check causes no finding.
func TestCheckBesideAnother(t *testing.T) {
	repo := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	s, err := session.Store{Root: t.TempDir()}.Create("20260601-102030-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"commit", "-q", "--allow-empty", "-m", "first"}, {"branch", s.Branch()}} {
		args = append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	for name, text := range map[string]string{
		session.CheckpointFile: `{"session_id":"` + s.ID + `","status":"running","source":"` + repo +
			`","git_common_dir":"` + repo + `/.git"}`,
		session.TasksFile: `[{"id":"T-001","title":"x","description":"x","acceptance_criteria":["x"]}]`,
		session.RecordFile: `{"ts":"2026-06-01T10:20:30Z","type":"seed_committed","payload":{"branch":"session/` + s.ID +
			`","sha":"0123456789012345678901234567890123456789"}}` + "\n",
	} {
		if err := os.WriteFile(s.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	look := func(do func()) []record.Check {
		d := held.Deps{Now: time.Now, Git: gitx.New(os.Environ(), false, func(gitx.Call) {
			if asked++; do != nil {
				do()
			}
		})}
		return checkSession(t.Context(), d, s)
	}
	if found := look(nil); len(found) == 0 || asked == 0 {
		t.Fatalf("%v, git was asked %d times", found, asked)
	}
	if found := look(func() {
		if unlock, err := s.Lock(time.Now()); err == nil {
			t.Cleanup(unlock)
		}
	}); len(found) > 0 {
		t.Error(found)
	}
}
