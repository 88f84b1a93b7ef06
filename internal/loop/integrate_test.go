package loop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
)

// TestHoldsFor: an accepting verdict is kept only if the branch has not changed a file of the change since, even if
// the branch has the same change.
func TestHoldsFor(t *testing.T) {
	top := t.TempDir()
	sh := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = top
		cmd.Env = append(os.Environ(), "HOME="+top, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	sh("init", "-q", ".")
	// at makes a commit on another one, or on none, with the named files, each with its name and a version.
	at := func(parent string, files ...string) string {
		sh("rm", "-q", "-r", "--cached", "--ignore-unmatch", ".")
		for _, f := range files {
			name, _, _ := strings.Cut(f, " ")
			if err := os.WriteFile(filepath.Join(top, name), []byte(f+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			sh("add", name)
		}
		args := []string{"commit-tree", "-m", "c", sh("write-tree")}
		if parent != "" {
			args = append(args, "-p", parent)
		}
		return sh(args...)
	}
	common := filepath.Join(top, ".git")
	g := gitx.New(append(os.Environ(), "HOME="+top), false, nil)
	r := &run{Handle: &held.Handle{Deps: held.Deps{Git: g}, Common: common}}
	base := at("", "a 1")
	change := at(base, "a 1", "b 1", "c 1")
	for name, c := range map[string]struct {
		tip, merged string
		want        bool
	}{
		"the branch did not move":      {base, change, true},
		"it changed another file":      {at(base, "a 2"), at(base, "a 2", "b 1", "c 1"), true},
		"it changed the same file":     {at(base, "a 1", "b 2"), at(base, "a 1", "b 2", "c 1"), false},
		"it made a part of the change": {at(base, "a 1", "b 1"), change, false},
		"it made the whole change":     {change, change, false},
		"the change is another one":    {base, at(base, "a 1", "b 3"), false},
	} {
		tree := func(commit string) string { return sh("rev-parse", commit+"^{tree}") }
		files, _, _, err := g.Changes(t.Context(), common, c.tip, tree(c.merged), 0)
		if err != nil {
			t.Fatal(err)
		}
		becomes := tree(c.merged)
		if name == "the change is another one" {
			becomes = tree(change)
		}
		was := &priorVerdict{tree: tree(change), base: base, becomes: becomes}
		a := &attempt{run: r, base: c.tip, otherLanes: otherLanes{prior: was}}
		j := &judged{wt: gitx.Worktree{Path: top, Common: common, AdminDir: common}, tree: tree(c.merged), files: files}
		if got, err := a.holdsFor(t.Context(), j); err != nil || got != c.want {
			t.Errorf("%s: it holds: %v %v", name, got, err)
		}
	}
}
