package gitx

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRepoWatch names what a worker can change in a repository, once, and what is changed all told.
func TestRepoWatch(t *testing.T) {
	w := newWorld(t, "a", "1")
	watch, err := w.git.WatchRepo(ctx, w.common)
	must(t, err)
	look := func(what string, want ...string) {
		t.Helper()
		changes, _, err := watch(ctx)
		must(t, err)
		var got []string
		for _, c := range changes {
			got = append(got, c.What)
		}
		equalLists(t, what, got, want)
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
	changes, all, err := watch(ctx)
	if err == nil || len(changes) != 1 || changes[0].What != "config" {
		t.Errorf("a broken config: %v, %v", changes, err)
	}
	if !slices.ContainsFunc(all, func(c RepoChange) bool { return c.What == "refs/heads/other" && c.Before == "" }) ||
		slices.ContainsFunc(all, func(c RepoChange) bool { return c.What == "objects/info/alternates" }) {
		t.Errorf("all told: %v", all)
	}
}

// TestRepoState: each thing that a worker can leave in the user's repository is named, and what a session does itself
// is not.
func TestRepoState(t *testing.T) {
	w := newWorld(t)
	before, err := w.git.readState(ctx, w.common)
	must(t, err)
	write(t, w.path, "a.txt", "two\n")
	w.stage()
	_, _, err = w.git.Commit(ctx, w.wt(), "x", false)
	must(t, err)
	now, err := w.git.readState(ctx, w.common)
	must(t, err)
	if changes := before.changes(now); len(changes) > 0 {
		t.Fatalf("a session's own commit: %+v", changes)
	}
	tip := w.sh(w.path, "rev-parse", "HEAD")
	w.sh(w.path, "update-ref", "refs/heads/main", tip)
	w.sh(w.path, "replace", "-f", tip, w.base)
	w.sh(w.path, "config", "--file", filepath.Join(w.common, "config"), "tilth.validator", "true")
	write(t, w.common, "hooks/pre-push", "#!/bin/sh\n", "info/attributes", "* -diff\n", "packed-refs.lock", "",
		"objects/info/alternates", "/elsewhere\n", "refs/heads/main.lock", "", "config.worktree", "[a]\n",
		"config.lock", "")
	now, err = w.git.readState(ctx, w.common)
	must(t, err)
	var names []string
	for _, c := range before.changes(now) {
		names = append(names, c.What)
		if c.Before == c.After || c.What == "refs/heads/main" &&
			(!strings.HasPrefix(c.Before, w.base) || !strings.HasPrefix(c.After, tip)) {
			t.Errorf("%+v", c)
		}
	}
	equalLists(t, "changed", names, []string{
		"config", "config.lock", "config.worktree", "hooks/pre-push", "info/attributes", "objects/info/alternates",
		"packed-refs.lock", "refs/heads/main", "refs/heads/main.lock", "refs/replace/" + tip,
	})
	back := now.changes(before)
	equal(t, "seen from the other side", len(back), len(names))
	equal(t, "lock that went", back[1].After, "")
}
