package gitx

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/config"
)

func TestConfigList(t *testing.T) {
	w := newWorld(t)
	write(t, w.home, "extra",
		"[tilth]\n\tvalidator = a=b\n\tvalidator = \"c=x\\ny\"\n\tbare\n[tilth \"Worker.X\"]\n\tagent = codex\n")
	w.sh(w.repo, "config", "include.path", filepath.Join(w.home, "extra"))
	entries, err := w.git.ConfigList(ctx, w.common)
	must(t, err)
	var got []config.Entry
	for _, e := range entries {
		if strings.HasPrefix(e.Key, "tilth.") {
			got = append(got, e)
		}
	}
	origin := "file:" + filepath.Join(w.home, "extra")
	want := []config.Entry{
		{Key: "tilth.validator", Value: "a=b"}, {Key: "tilth.validator", Value: "c=x\ny"},
		{Key: "tilth.bare", Value: "true"}, {Key: "tilth.Worker.X.agent", Value: "codex"},
	}
	for i := range want {
		want[i].Origin, want[i].Scope = origin, "local"
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	entries, err = w.git.ConfigList(ctx, "")
	must(t, err)
	for _, e := range entries {
		if e.Scope == "local" {
			t.Errorf("outside of a repository: %+v", e)
		}
	}
	if len(entries) == 0 {
		t.Error("the user's own settings are missing")
	}
}

func TestExcludesFileSettings(t *testing.T) {
	for name, value := range map[string]string{"absolute": "", "home": "~/rules", "relative": "rules",
		"unreadable": "/nowhere/rules"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "absolute" {
				value = filepath.Join(w.home, "rules")
			}
			w.sh(w.home, "config", "--global", "core.excludesFile", value)
			write(t, w.home, "rules", "*.mine\n")
			write(t, w.path, "rules", "*.mine\n", "x.mine", "1", "__pycache__/x", "1")
			w.restart()
			tree, left := w.stage()
			ignored := name != "unreadable"
			equal(t, "ignored", !slices.Contains(w.files(tree), "x.mine"), ignored)
			equalLists(t, "left out", left, []string{"__pycache__"})
		})
	}
}

func TestHooks(t *testing.T) {
	w := newWorld(t)
	hook := func(g *Git, name string, args ...string) (string, error) {
		c := g.InWorktree(w.wt(), append([]string{"hook", "run", "--ignore-missing", name, "--"}, args...)...)
		c.Hooks, c.Vars = true, append(c.Vars, "TOOL=bash")
		return g.Mutate(ctx, c)
	}
	output, err := hook(w.git, "tilth-pre-tool")
	must(t, err)
	equal(t, "no hook", output, "")
	write(t, w.common, "hooks/tilth-pre-tool",
		"#!/bin/sh\necho \"$1|$2|$TOOL|$(git rev-parse --show-toplevel)\"\necho err >&2\nexit 7\n")
	w.restart(w.leaks()...)
	_, has, err := w.git.Hooks(ctx, w.wt())
	must(t, err)
	equal(t, "exists", has("tilth-pre-tool"), true)
	output, err = hook(w.git, "tilth-pre-tool", "a b", "-n")
	equal(t, "exit code", ExitCode(err), 7)
	equal(t, "output", output, "a b|-n|bash|"+w.path+"\nerr")
	output, err = hook(dryRun(w.git), "tilth-pre-tool")
	must(t, err)
	equal(t, "dry run", output, "")

	must(t, os.Chmod(filepath.Join(w.common, "hooks/tilth-pre-tool"), 0o644))
	equal(t, "exists without being executable", has("tilth-pre-tool"), false)
	write(t, w.home, "hooks/tilth-post-run", "#!/bin/sh\nkill -9 $$\n")
	w.sh(w.repo, "config", "core.hooksPath", filepath.Join(w.home, "hooks"))
	w.restart()
	if _, err = hook(w.git, "tilth-post-run"); err == nil {
		t.Error("a killed hook passes for one that succeeded")
	}
}

func TestUserTreeReads(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", ".gitignore", "*.local\n.venv/\n", "tests/test_t001_x.py", "x\n",
		"sub/é \"x\".txt", "x\n")
	w.sh(w.repo, "config", "status.showUntrackedFiles", "no")
	w.sh(w.repo, "config", "core.fsmonitor", "/bin/false")
	write(t, w.repo, "b.local", "1", "conf/c.local", "1", ".venv/bin/p", "1", ".venv/lib/q", "1")
	// Newer than the index, so that git would like to refresh it.
	must(t, os.Chtimes(filepath.Join(w.repo, "a.txt"), w.git.started, w.git.started.Add(1e9)))
	w.restart(w.leaks()...)
	before := snapshot(t, w.repo)
	dirty, err := w.git.IsDirty(ctx, w.repo)
	must(t, err)
	equal(t, "dirty", dirty, false)
	files, err := w.git.List(ctx, w.git.In(w.repo, "ls-files", "-z"))
	must(t, err)
	equalLists(t, "tracked", files, []string{".gitignore", "a.txt", "sub/é \"x\".txt", "tests/test_t001_x.py"})
	ignored := func(globs ...string) []string {
		args := append([]string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}, globs...)
		files, err := w.git.List(ctx, w.git.In(w.repo, args...))
		must(t, err)
		return files
	}
	equalLists(t, "ignored", ignored(":(glob)*.local", ":(glob).venv"),
		[]string{".venv/bin/p", ".venv/lib/q", "b.local"})
	equalLists(t, "ignored", ignored(":(glob)**/*.local", ":(glob)a.txt"), []string{"b.local", "conf/c.local"})
	for p, content := range snapshot(t, w.repo) {
		equal(t, p, content, before[p])
	}
	write(t, w.repo, "untracked", "1")
	dirty, err = w.git.IsDirty(ctx, w.repo)
	must(t, err)
	equal(t, "dirty", dirty, true)
	if _, err := w.git.IsDirty(ctx, w.home); err == nil {
		t.Error("no error outside of a repository")
	}
}
