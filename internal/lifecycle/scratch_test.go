package lifecycle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// A bundle holds what the repository may prune any moment, and the repository never hears of the scratch one. What the
// base has needs no bundle.
func TestBundleOutlivesGC(t *testing.T) {
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
			common, bundle := filepath.Join(top, ".git"), filepath.Join(top, "kept.bundle")
			g := gitx.New(environ, false, nil)
			s, err := newScratch(g, common, filepath.Join(top, `scr"atch`))
			must(err)
			must(s.bundle(t.Context(), bundle, base, map[string]string{"tip": base}))
			if exists(bundle) {
				t.Error("there is a bundle of nothing")
			}
			other, err := s.commit(t.Context(), sh("rev-parse", "HEAD^{tree}"), base, "beside")
			must(err)
			must(s.bundle(t.Context(), bundle, base, map[string]string{"tip": tip, "other": other}))
			must(s.remove())
			if now := sh("for-each-ref"); now != refs {
				t.Errorf("the refs are\n%s\nand were\n%s", now, refs)
			}
			sh("reset", "-q", "--hard", base)
			sh("reflog", "expire", "--expire=all", "--expire-unreachable=all", "--all")
			sh("gc", "-q", "--prune=now")
			if _, err := g.RevParse(t.Context(), common, tip+"^{commit}"); err == nil {
				t.Fatal("gc left the commit")
			}
			must(unbundle(t.Context(), g, common, bundle))
			for name, sha := range map[string]string{"tip": tip, "other": other} {
				_, err := g.RevParse(t.Context(), common, sha+"^{commit}")
				must(err)
				if head, err := bundleHead(t.Context(), g, common, bundle, name); err != nil || head != sha {
					t.Errorf("the bundle's %s is %q, %v", name, head, err)
				}
			}
		})
	}
}
