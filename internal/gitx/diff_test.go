package gitx

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDiffIsIndependentOfSettings(t *testing.T) {
	w := newWorld(t, "a.txt", "one\ntwo\n\nfour\n", "old name.txt", strings.Repeat("same\n", 20), "z.c",
		"int main() {\n")
	w.restart("GIT_EXTERNAL_DIFF=/bin/false", "GIT_DIFF_OPTS=-u0")
	w.sh(w.path, "mv", "old name.txt", "new name.txt")
	write(t, w.path, "a.txt", "one\n2\n\nfour\n", "z.c", "int main() {\n}\n", ".gitattributes", "*.c diff=mine\n")
	tree, _ := w.stage()
	diff := func() string {
		t.Helper()
		patch, truncated, err := w.git.Diff(ctx, w.common, w.base, tree, 0)
		must(t, err)
		equal(t, "truncated", truncated, false)
		return string(patch)
	}
	plain := diff()
	if !containsAll(plain, "diff --git a/a.txt b/a.txt", "-two\n+2\n \n", "rename from old name.txt") {
		t.Errorf("patch:\n%s", plain)
	}
	for _, s := range []string{
		"diff.external=/bin/false", "diff.noprefix=true", "diff.mnemonicPrefix=true", "color.ui=always",
		"color.diff=always",
		"diff.renames=false", "diff.context=0", "diff.interHunkContext=9", "diff.suppressBlankEmpty=true",
		"diff.algorithm=patience",
		"diff.mine.command=/bin/false", "diff.mine.textconv=/bin/false", "diff.submodule=log",
		"diff.ignoreSubmodules=all",
		"diff.relative=true", "diff.wsErrorHighlight=all", "diff.statGraphWidth=3", "core.pager=/bin/false",
		"diff.srcPrefix=x/", "diff.orderFile=/nowhere",
	} {
		key, value, _ := strings.Cut(s, "=")
		write(t, w.home, "setting", "")
		w.sh(w.home, "config", "--file", "setting", key, value)
		w.sh(w.home, "config", "--global", "include.path", filepath.Join(w.home, "setting"))
		if got := diff(); got != plain {
			t.Errorf("%s changes the patch:\n%s", s, got)
		}
	}
}

func TestDiffBytesAndLimit(t *testing.T) {
	w := newWorld(t)
	write(t, w.path, "a.txt", "latin \xe9\xff\n", "bin", "a\x00b", "café", "x\n")
	tree, _ := w.stage()
	patch, _, err := w.git.Diff(ctx, w.common, w.base, tree, 0)
	must(t, err)
	if !bytes.Contains(patch, []byte("+latin \xe9\xff\n")) ||
		!bytes.Contains(patch, []byte("Binary files /dev/null and b/bin differ")) {
		t.Errorf("patch: %q", patch)
	}
	same, truncated, err := w.git.Diff(ctx, w.common, w.base, tree, int64(len(patch)))
	must(t, err)
	equal(t, "truncated at its length", truncated, false)
	equal(t, "patch", string(same), string(patch))
	write(t, w.path, "big.txt", strings.Repeat("a line of some length\n", 200_000))
	tree, _ = w.stage()
	cut, truncated, err := w.git.Diff(ctx, w.common, w.base, tree, 10_000)
	must(t, err)
	equal(t, "truncated", truncated, true)
	if len(cut) > 10_000 || len(cut) < 9_000 || cut[len(cut)-1] != '\n' {
		t.Errorf("%d bytes, ending in %q", len(cut), cut[len(cut)-1:])
	}
	none, _, err := w.git.Diff(ctx, w.common, tree, tree, 10)
	must(t, err)
	equal(t, "no difference", len(none), 0)
}

func TestDiffOfACommit(t *testing.T) {
	w := newWorld(t)
	w.sh(w.home, "config", "--global", "diff.noprefix", "true")
	root, _, err := w.git.Diff(ctx, w.common, "", w.base, 0)
	must(t, err)
	if !bytes.Contains(root, []byte("+++ b/a.txt\n")) {
		t.Errorf("first commit:\n%s", root)
	}
	write(t, w.path, "a.txt", "side\n")
	w.sh(w.path, "commit", "-q", "-a", "-m", "side")
	w.sh(w.repo, "commit", "-q", "--allow-empty", "-m", "main")
	w.sh(w.repo, "merge", "-q", "-m", "merge", branch)
	merge, _, err := w.git.Diff(ctx, w.common, "", w.sh(w.repo, "rev-parse", "HEAD"), 0)
	must(t, err)
	if !bytes.HasPrefix(merge, []byte("diff --git a/a.txt b/a.txt\n")) || !bytes.Contains(merge, []byte("+side")) {
		t.Errorf("merge:\n%s", merge)
	}
	_, truncated, err := w.git.Diff(ctx, w.common, "", w.base, 10)
	must(t, err)
	equal(t, "truncated", truncated, true)
}

func TestChanges(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", "del.txt", "x\ny\n", "r.txt", strings.Repeat("same\n", 20), "t", "x\n")
	w.sh(w.path, "mv", "r.txt", "new\nname.txt")
	w.sh(w.path, "rm", "-q", "del.txt")
	write(t, w.path, "a.txt", "two\nthree\n", "bin", "a\x00b", "b \"q\".txt", "b\n")
	tree, _ := w.stage()
	got, _, _, err := w.git.Changes(ctx, w.common, w.base, tree, 0)
	must(t, err)
	want := []FileChange{
		{Path: "a.txt", Status: "M", Added: 2, Deleted: 1},
		{Path: "b \"q\".txt", Status: "A", Added: 1},
		{Path: "bin", Status: "A", Binary: true},
		{Path: "del.txt", Status: "D", Deleted: 2},
		{Path: "new\nname.txt", OldPath: "r.txt", Status: "R"},
	}
	for i := range got {
		got[i].Mode, got[i].OID = "", ""
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestObjectsAsTheyAre: neither attributes in any file nor a replace ref hides a committed change.
func TestObjectsAsTheyAre(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			w := newWorldOf(t, []string{"--object-format=" + format}, "gen.lock", "1\n", ".gitattributes",
				"*.lock -diff\n")
			write(t, w.path, "gen.lock", "2\n", "code.txt", "evil\n", ".gitattributes", "* -diff\n", "bin", "a\x00b")
			write(t, w.common, "info/attributes", "* -diff\n", ".gitattributes", "* -diff\n")
			w.sh(w.repo, "config", "core.attributesFile", filepath.Join(w.common, "info", "attributes"))
			tree, _ := w.stage()
			evil := w.sh(w.path, "rev-parse", ":code.txt")
			write(t, w.home, "benign", "benign\n")
			w.sh(w.repo, "replace", "-f", evil, w.sh(w.repo, "hash-object", "-w", filepath.Join(w.home, "benign")))
			patch, _, err := w.git.Diff(ctx, w.common, w.base, tree, 0)
			must(t, err)
			for _, shown := range []string{"+2", "+evil", "Binary files /dev/null and b/bin differ"} {
				if !bytes.Contains(patch, []byte(shown)) {
					t.Errorf("%s is hidden:\n%s", shown, patch)
				}
			}
			changes, _, _, err := w.git.Changes(ctx, w.common, w.base, tree, 0)
			must(t, err)
			for _, c := range changes {
				equal(t, c.Path+" is binary", c.Binary, c.Path == "bin")
			}
			sha, _, err := w.commit(ctx, w.wt(), "x", false)
			must(t, err)
			patch, _, err = w.git.Diff(ctx, w.common, "", sha, 0)
			must(t, err)
			if !bytes.Contains(patch, []byte("+evil")) {
				t.Errorf("the commit hides it:\n%s", patch)
			}
		})
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(":100644 100644 a b M\x00p\x001\t2\tp\x00")
	f.Add(":100644 100644 a b R90\x00o\x00n\x001\t2\t\x00o\x00n\x00")
	f.Add("worktree /a\x00HEAD x\x00branch refs/heads/b\x00\x00")
	f.Add("global\x00file:x\x00a.b\nc\x00")
	f.Add("a\x00b\x00c\x001\x00e\x00f\x00g\x00K: v\n\x00\n")
	f.Add(": \x00x\x00")
	f.Fuzz(func(t *testing.T, s string) {
		parseChanges(fields([]byte(s)))
		parseWorktrees(fields([]byte(s)))
		parseConfig(fields([]byte(s)))
		parseCommits(s)
		ProductRoot("/nowhere", s)
		exactRule(s)
	})
}

func TestChangesIsBothInOne(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", "old.txt", strings.Repeat("same\n", 20))
	w.sh(w.path, "mv", "old.txt", "new.txt")
	write(t, w.path, "a.txt", strings.Repeat("line\n", 100), "zz.txt", "z\n")
	tree, _ := w.stage()
	want, _, _, err := w.git.Changes(ctx, w.common, w.base, tree, 0)
	must(t, err)
	for _, max := range []int64{100, 1 << 20} {
		files, patch, cut, err := w.git.Changes(ctx, w.common, w.base, tree, max)
		must(t, err)
		if !slices.Equal(files, want) || len(files) != 3 {
			t.Errorf("files %v, want %v", files, want)
		}
		wantPatch, wantCut, err := w.git.Diff(ctx, w.common, w.base, tree, max)
		must(t, err)
		equal(t, "patch", string(patch), string(wantPatch))
		equal(t, "cut", cut, wantCut)
	}
	files, patch, cut, err := w.git.Changes(ctx, w.common, w.base, w.base, 100)
	if err != nil || len(files)+len(patch) > 0 || cut {
		t.Errorf("nothing changed: %v %q %v %v", files, patch, cut, err)
	}
}
