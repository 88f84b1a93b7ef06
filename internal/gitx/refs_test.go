package gitx

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveAndHead(t *testing.T) {
	w := newWorld(t)
	w.sh(w.path, "commit", "-q", "--allow-empty", "-m", "second")
	tip := w.sh(w.path, "rev-parse", "HEAD")
	for _, tt := range []struct{ gitDir, rev, want string }{
		{w.common, "HEAD", w.base},
		{filepath.Join(w.common, "worktrees/workspace"), "HEAD", tip},
		{w.common, branch, tip},
		{w.common, tip[:8], tip},
		{w.common, branch + "~1", w.base},
	} {
		got, err := w.git.RevParse(ctx, tt.gitDir, tt.rev+"^{commit}")
		must(t, err)
		equal(t, tt.rev, got, tt.want)
	}
	for _, rev := range []string{"", "nowhere", "--help", "-n", w.base + "^{tree}", strings.Repeat("0", 40), "a b",
		"HEAD:a.txt", "@{upstream}"} {
		if got, err := w.git.RevParse(ctx, w.common, rev+"^{commit}"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %q, %v", rev, got, err)
		}
	}
	_, err := w.git.RevParse(ctx, w.home, "HEAD^{commit}")
	if err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("not a repository: %v", err)
	}
	for dir, want := range map[string]string{w.wt().AdminDir: tip, w.common: w.base} {
		got, err := w.git.RevParse(ctx, dir, "HEAD^{commit}")
		must(t, err)
		equal(t, dir, got, want)
	}
	w.sh(w.home, "init", "-q", "halfCreated")
	if _, err := w.git.RevParse(ctx, filepath.Join(w.home, "halfCreated", ".git"), "HEAD^{commit}"); !errors.Is(err,
		ErrNotFound) {
		t.Errorf("halfCreated: %v", err)
	}
}

func TestBranches(t *testing.T) {
	w := newWorld(t)
	w.sh(w.repo, "branch", "session/s2")
	w.sh(w.repo, "tag", "session/only-a-tag")
	w.sh(w.path, "commit", "-q", "--allow-empty", "-m", "second")
	w.sh(w.repo, "pack-refs", "--all")
	tip := w.sh(w.path, "rev-parse", "HEAD")
	for name, want := range map[string]string{branch: tip, "session/s2": w.base, "session": "",
		"session/only-a-tag": "", "": "", "session/*": ""} {
		sha, ok, err := w.git.BranchTip(ctx, w.common, name)
		must(t, err)
		equal(t, name, sha, want)
		equal(t, name, ok, want != "")
	}
	loose := w.sh(w.path, "commit-tree", "-p", tip, "-m", "loose", tip+"^{tree}")
	w.sh(w.repo, "update-ref", "refs/heads/"+branch, loose)
	got, _, err := w.git.BranchTip(ctx, w.common, branch)
	must(t, err)
	equal(t, "tip of a ref that is packed and loose", got, loose)
}

func TestTreeOf(t *testing.T) {
	w := newWorld(t)
	tree := w.sh(w.repo, "rev-parse", w.base+"^{tree}")
	for oid, want := range map[string]string{w.base: tree, tree: tree, strings.Repeat("1", 40): "", "": "",
		strings.Repeat("1", 64): ""} {
		got, err := w.git.RevParse(ctx, w.common, oid+"^{tree}")
		equal(t, oid, got, want)
		equal(t, oid+" is not there", errors.Is(err, ErrNotFound), want == "")
	}
	if _, err := w.git.RevParse(ctx, w.home, w.base+"^{tree}"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("outside of a repository: %v", err)
	}
}

func TestAttachHead(t *testing.T) {
	for name, move := range map[string]func(w *world){
		"branch":   func(w *world) { w.sh(w.path, "checkout", "-q", "-b", "other") },
		"detached": func(w *world) { w.sh(w.path, "checkout", "-q", "--detach") },
		"rebase": func(w *world) {
			w.sh(w.path, "checkout", "-q", "-b", "other", w.base)
			write(w.t, w.path, "a.txt", "other\n")
			w.sh(w.path, "commit", "-q", "-a", "-m", "other")
			w.sh(w.path, "checkout", "-q", branch)
			write(w.t, w.path, "a.txt", "branch\n")
			w.sh(w.path, "commit", "-q", "-a", "-m", "branch")
			if _, err := w.try(w.path, "rebase", "other"); err == nil {
				w.t.Fatal("the rebase should stop")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.t = t
			move(w)
			write(t, w.path, "a.txt", "kept\n", "new.txt", "kept\n")
			if name != "rebase" {
				w.sh(w.path, "commit", "-q", "-a", "-m", "elsewhere")
			}
			wt, err := w.git.Worktree(ctx, w.common, w.path, "")
			must(t, err)
			must(t, w.git.AttachHead(ctx, wt, branch))
			equal(t, "file", read(t, w.path, "a.txt"), "kept\n")
			tree, _ := w.stage()
			equalLists(t, "files", w.files(tree), []string{"a.txt", "new.txt"})
			must(t, w.git.Reset(ctx, w.wt(), w.base, false))
			sha, _, err := w.commit(ctx, w.wt(), "x", false)
			must(t, err)
			equal(t, "tree", w.sh(w.repo, "rev-parse", sha+"^{tree}"), tree)
			equal(t, "parents", w.sh(w.repo, "rev-list", "--parents", "-1", branch), sha+" "+w.base)
		})
	}
}

func TestLog(t *testing.T) {
	w := newWorld(t)
	messages := []string{"one\n\nbody\nmore\n\nKey: v1\nKey: v2\nOther: w\n folded\n", "FAILED (x): T-001 y",
		" \n\n lead", "subject\nstill the subject\n\nlast: no\n\nnot a trailer"}
	for _, m := range messages {
		w.sh(w.path, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", m)
	}
	w.sh(w.repo, "config", "log.showSignature", "true")
	w.restart()
	log, err := w.git.Log(ctx, w.common, branch, w.base, 0)
	must(t, err)
	equal(t, "commits", len(log), 4)
	equal(t, "subject", log[0].Subject, "subject still the subject")
	equal(t, "trailers", len(log[0].Trailers), 0)
	equal(t, "subject", log[2].Subject, "FAILED (x): T-001 y")
	equal(t, "tree", log[2].Tree, w.sh(w.repo, "rev-parse", w.base+"^{tree}"))
	equalLists(t, "trailer", log[3].Trailers["Key"], []string{"v1", "v2"})
	equalLists(t, "folded trailer", log[3].Trailers["Other"], []string{"w folded"})
	log, err = w.git.Log(ctx, w.common, branch, "", 2)
	must(t, err)
	equal(t, "commits", len(log), 2)
	log, err = w.git.Log(ctx, w.common, w.base, w.base, 0)
	must(t, err)
	equal(t, "commits", len(log), 0)
	if _, err := w.git.Log(ctx, w.common, "--all", "", 0); err == nil {
		t.Error("an option passed for a revision")
	}
}

// Reading refs from git's files, packed or not, starts no process.
func TestRefsWithoutAProcess(t *testing.T) {
	w := newWorld(t)
	started := 0
	g := New(w.environ, false, func(Call) { started++ })
	for _, pack := range []bool{false, true} {
		if pack {
			w.sh(w.repo, "pack-refs", "--all", "--prune")
		}
		sha, ok, err := g.BranchTip(ctx, w.common, branch)
		must(t, err)
		equal(t, "the branch", sha, w.base)
		_, other, err := g.BranchTip(ctx, w.common, "session")
		must(t, err)
		equal(t, "branches", ok && !other, true)
		head, err := g.RevParse(ctx, w.common, "HEAD^{commit}")
		must(t, err)
		equal(t, "HEAD", head, w.base)
	}
	equal(t, "processes", started, 0)
}
