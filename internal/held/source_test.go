package held

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

func madeSession(t *testing.T, root string) *session.Session {
	t.Helper()
	s, err := session.Store{Root: root}.Create("20260601-102030-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSourceNow(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, other, plain := filepath.Join(dir, "repo"), filepath.Join(dir, "other"), filepath.Join(dir, "plain")
	for _, d := range []string{repo, other} {
		if out, err := exec.Command("git", "init", "-q", d).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(repo, ".git")
	for recorded, want := range map[string]string{
		repo:                       repo,
		other:                      repo, // another repository
		filepath.Join(dir, "gone"): repo,
		"":                         repo,
		plain:                      plain, // a work tree that GIT_WORK_TREE named
		common:                     common,
	} {
		if got := SourceNow(recorded, common); got != want {
			t.Errorf("%q: %q, want %q", recorded, got, want)
		}
	}
	if got := SourceNow("", filepath.Join(dir, "bare.git")); got != filepath.Join(dir, "bare.git") {
		t.Errorf("bare: %q", got)
	}
}

// TestWorkspaceOfACopy: a copied checkpoint records the original's worktree.
func TestWorkspaceOfACopy(t *testing.T) {
	original, copied := madeSession(t, filepath.Join(t.TempDir(), "root")), madeSession(t, filepath.Join(t.TempDir(),
		"copy"))
	check := &session.Checkpoint{Workspace: original.Workspace()}
	if got := WorkspaceOf(original, check); got != original.Workspace() {
		t.Errorf("the original: %s", got)
	}
	if got := WorkspaceOf(copied, check); got != copied.Workspace() {
		t.Errorf("the copy: %s", got)
	}
	if IsCopyOf(copied, original.Dir) {
		t.Error("a copy of an empty directory")
	}
	if err := original.SaveCheckpoint(check); err != nil {
		t.Fatal(err)
	}
	if !IsCopyOf(copied, original.Dir) || IsCopyOf(original, original.Dir) ||
		IsCopyOf(copied, filepath.Dir(original.Dir)) {
		t.Error("which is a copy")
	}
	// The root was moved, so the paths in the checkpoint are wrong.
	check.Workspace = filepath.Join(t.TempDir(), "gone", original.ID, session.WorkspaceDir)
	if got := WorkspaceOf(original, check); got != original.Workspace() {
		t.Errorf("after a move: %s", got)
	}
	// The checkpoint has a path out of the session.
	for _, name := range []string{".", ".."} {
		check.Workspace = original.Dir + "/" + name
		if got := WorkspaceOf(original, check); got != original.Workspace() {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestCommonOfNothing(t *testing.T) {
	s := madeSession(t, t.TempDir())
	if _, err := CommonOf(s, nil); !errors.Is(err, ErrSourceUnknown) {
		t.Errorf("nothing is known: %v", err)
	}
	gone := &session.Checkpoint{Source: filepath.Join(t.TempDir(), "gone")}
	if _, err := CommonOf(s, gone); !errors.Is(err, ErrSourceGone) {
		t.Errorf("gone: %v", err)
	}
	damaged := t.TempDir()
	if err := os.Mkdir(filepath.Join(damaged, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := CommonOf(s, &session.Checkpoint{Source: damaged}); err == nil || errors.Is(err, ErrSourceGone) ||
		errors.Is(err, ErrSourceUnknown) {
		t.Errorf("damaged: %v", err)
	}
}

// TestCommonOfWhatIsBeingMade: a fetched session without a branch belongs to the repository in its mark, not to the
// one where its record began, which also has the session.
func TestCommonOfWhatIsBeingMade(t *testing.T) {
	s := madeSession(t, t.TempDir())
	var common [2]string
	for i, dir := range []string{t.TempDir(), t.TempDir()} {
		cmd := exec.Command("git", "init", "-q", dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
		common[i] = filepath.Join(dir, ".git")
	}
	for name, text := range map[string]string{
		filepath.Join(common[0], "refs/heads", s.Branch()): strings.Repeat("1", 40) + "\n",
		s.Path(session.RecordFile): `{"ts":"2026-06-01T10:20:30.000Z","type":"session_start","payload":{"source":"` +
			filepath.Dir(common[0]) + `"}}` + "\n",
		s.Path(session.ResetMarkFile): common[1] + "\n" + ForkMark + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := CommonOf(s, &session.Checkpoint{Source: filepath.Dir(common[1])})
	if want, _ := filepath.EvalSymlinks(common[1]); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// TestCommonOfALinkThatAWorkerWrote: its repository knows the worktree too, and is not the session's.
func TestCommonOfALinkThatAWorkerWrote(t *testing.T) {
	s := madeSession(t, t.TempDir())
	repo, elsewhere, inside := filepath.Join(t.TempDir(), "repo"), filepath.Join(t.TempDir(), "evil"),
		filepath.Join(s.Dir, "caches", "evil")
	for _, dir := range []string{repo, elsewhere, inside} {
		if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
		for name, text := range map[string]string{
			"gitdir": filepath.Join(s.Workspace(), ".git"), "commondir": "../..",
			"HEAD": "ref: refs/heads/" + s.Branch(),
		} {
			at := filepath.Join(dir, ".git/worktrees/workspace", name)
			err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text+"\n"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	link := func(to string) {
		dotGit := filepath.Join(s.Workspace(), ".git")
		text := "gitdir: " + filepath.Join(to, ".git/worktrees/workspace") + "\n"
		err := errors.Join(os.MkdirAll(filepath.Dir(dotGit), 0o700), os.WriteFile(dotGit, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	link(elsewhere)
	got, err := CommonOf(s, &session.Checkpoint{Source: repo})
	if want, _ := filepath.EvalSymlinks(filepath.Join(repo, ".git")); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	link(inside)
	if got, err := CommonOf(s, &session.Checkpoint{Source: repo + ".gone"}); !errors.Is(err, ErrSourceGone) {
		t.Errorf("a repository in the session: %s, %v", got, err)
	}
}
