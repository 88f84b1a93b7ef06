package gitx

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRepoWatch names what a worker can change in a repository, once, and what is changed all told.
func TestRepoWatch(t *testing.T) {
	w := newWorld(t, "a", "1")
	read := w.git.WatchRepo(w.common)
	last, err := read(ctx)
	must(t, err)
	look := func(what string, want ...string) {
		t.Helper()
		now, err := read(ctx)
		must(t, err)
		equalLists(t, what, differing(last, now), want)
		last = now
	}
	file := func(name string) string { return filepath.Join(w.common, name) }

	look("nothing")
	w.sh(w.repo, "branch", "other")
	w.sh(w.repo, "branch", "session/20260101-000000-aaaaaa")
	look("a branch, and a session's", "refs/heads/other")
	look("the same again")
	w.sh(w.repo, "pack-refs", "--all")
	look("packed refs are the same refs")
	w.sh(w.repo, "config", "x.y", "z")
	must(t, os.MkdirAll(file("hooks"), 0o700))
	must(t, os.WriteFile(file("hooks/pre-commit"), []byte("#!/bin/sh\n"), 0o700))
	must(t, os.MkdirAll(file("info"), 0o700))
	must(t, os.WriteFile(file("info/attributes"), []byte("* -diff\n"), 0o600))
	must(t, os.WriteFile(file("objects/info/alternates"), []byte("/nowhere\n"), 0o600))
	look("files", "config", "hooks/pre-commit", "info/attributes", "objects/info/alternates")
	must(t, os.Remove(file("objects/info/alternates")))
	must(t, os.Chmod(file("hooks/pre-commit"), 0o600))
	must(t, os.Symlink("/dev/null", file("info/grafts")))
	look("a mode, a link, and one that is gone", "hooks/pre-commit", "info/grafts", "objects/info/alternates")
	w.sh(w.repo, "update-ref", "refs/replace/"+w.base, w.base)
	look("a replacement", "refs/replace/"+w.base)
	must(t, os.WriteFile(file("packed-refs.lock"), nil, 0o600))
	look("a lock", "packed-refs.lock")

	// Where git cannot read the refs any more, the rest is still told, and no ref is called gone.
	must(t, os.WriteFile(file("config"), []byte("[core\n"), 0o600))
	now, err := read(ctx)
	if err == nil {
		t.Error("a broken config is no error")
	}
	equalLists(t, "a broken config", differing(last, now), []string{"config"})
}

// differing are the names under which two states have other things.
func differing(a, b map[string]string) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}

// TestRepoState: each thing that a worker can leave in the user's repository is named, and what a session does itself
// is not.
func TestRepoState(t *testing.T) {
	w := newWorld(t)
	before, err := w.git.readState(ctx, w.common)
	must(t, err)
	write(t, w.path, "a.txt", "two\n")
	w.stage()
	_, _, err = w.commit(ctx, w.wt(), "x", false)
	must(t, err)
	now, err := w.git.readState(ctx, w.common)
	must(t, err)
	equalLists(t, "a session's own commit", differing(before, now), nil)
	tip := w.sh(w.path, "rev-parse", "HEAD")
	w.sh(w.path, "update-ref", "refs/heads/main", tip)
	w.sh(w.path, "replace", "-f", tip, w.base)
	w.sh(w.path, "config", "--file", filepath.Join(w.common, "config"), "tilth.validator", "true")
	write(t, w.common, "hooks/pre-push", "#!/bin/sh\n", "info/attributes", "* -diff\n", "packed-refs.lock", "",
		"objects/info/alternates", "/elsewhere\n", "refs/heads/main.lock", "", "config.worktree", "[a]\n",
		"config.lock", "")
	now, err = w.git.readState(ctx, w.common)
	must(t, err)
	if !strings.HasPrefix(before["refs/heads/main"], w.base) || !strings.HasPrefix(now["refs/heads/main"], tip) {
		t.Errorf("main was %q and is %q", before["refs/heads/main"], now["refs/heads/main"])
	}
	equalLists(t, "changed", differing(before, now), []string{
		"config", "config.lock", "config.worktree", "hooks/pre-push", "info/attributes", "objects/info/alternates",
		"packed-refs.lock", "refs/heads/main", "refs/heads/main.lock", "refs/replace/" + tip,
	})
}
