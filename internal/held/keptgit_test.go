package held

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// kept.git has the objects that the repository may prune at any moment, and the repository has no ref to them. Objects
// of the base need no pack.
func TestKeptOutlivesGC(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			top := t.TempDir()
			environ := append(os.Environ(), "HOME="+top, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
				"GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
			sh := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("git", args...)
				cmd.Dir, cmd.Env = top, environ
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
			sh("init", "-q", "--object-format="+format, ".")
			must(os.WriteFile(filepath.Join(top, "b.txt"), []byte("two\n"), 0o600))
			sh("commit", "-q", "--allow-empty", "-m", "base")
			base := sh("rev-parse", "HEAD")
			sh("add", "b.txt")
			sh("commit", "-q", "-m", "work")
			tip := sh("rev-parse", "HEAD")
			refs := sh("for-each-ref")
			common := filepath.Join(top, ".git")
			h := &Handle{Deps: Deps{Git: gitx.New(environ, false, nil)}, Common: common,
				S: &session.Session{Dir: filepath.Join(top, `ses"sion`)}}
			must(os.Mkdir(h.S.Dir, 0o700))
			must(os.WriteFile(filepath.Join(top, ".gitconfig"), []byte("[protocol \"file\"]\nallow = never\n"), 0o600))
			k, err := openKept(h)
			must(err)
			must(k.pack(t.Context(), base, "undo1", base))
			if packs, _ := filepath.Glob(h.S.Path(session.KeptGitDir, "objects/pack/*")); len(packs) > 0 {
				t.Errorf("there is a pack of nothing: %s", packs)
			}
			other, err := k.commit(t.Context(), sh("rev-parse", "HEAD^{tree}"), base, "beside")
			must(err)
			must(k.pack(t.Context(), base, "undo2", tip, other))
			must(FinishUndo(h, 2, map[string]string{stagedRef: tip}))
			must(k.setRef("aside/T-001", other))
			if now := sh("for-each-ref"); now != refs {
				t.Errorf("the refs are\n%s\nand were\n%s", now, refs)
			}
			sh("reset", "-q", "--hard", base)
			sh("reflog", "expire", "--expire=all", "--expire-unreachable=all", "--all")
			sh("gc", "-q", "--prune=now")
			if _, err := h.Git.RevParse(t.Context(), common, tip+"^{commit}"); err == nil {
				t.Fatal("gc left the commit")
			}
			must(k.give(t.Context(), common, "undo/2/staged", "aside/T-001"))
			for _, sha := range []string{tip, other} {
				_, err := h.Git.RevParse(t.Context(), common, sha+"^{commit}")
				must(err)
			}
			if a := StashOf(h.S, "T-001"); a == nil || a.SHA != other {
				t.Errorf("set aside is %+v %v", a, err)
			}
			must(DropUndo(h.S, 2))
			if left, _ := filepath.Glob(h.S.Path(session.KeptGitDir, "objects/pack/*")); len(left) > 0 {
				t.Errorf("left: %s", left)
			}
		})
	}
}
