package gitx

import (
	"os"
	"path/filepath"
	"testing"
)

// A bundle holds what the repository may prune any moment, and the repository never hears of the scratch one.
func TestBundleOutlivesGC(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			w := newWorldOf(t, []string{"--object-format=" + format}, "a.txt", "one\n")
			write(t, w.path, "b.txt", "two\n")
			w.sh(w.path, "add", "-A")
			w.sh(w.path, "commit", "-q", "-m", "work")
			tip := w.sh(w.path, "rev-parse", "HEAD")
			refs := w.sh(w.repo, "for-each-ref")
			dir, bundle := filepath.Join(w.home, `scr"atch`), filepath.Join(w.home, "kept.bundle")
			s, err := w.git.NewScratch(w.common, dir)
			if err != nil {
				t.Fatal(err)
			}
			other, err := s.Commit(t.Context(), w.sh(w.path, "rev-parse", "HEAD^{tree}"), w.base, "beside")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Bundle(t.Context(), bundle, w.base, map[string]string{"tip": tip, "other": other}); err != nil {
				t.Fatal(err)
			}
			if err := s.Remove(); err != nil {
				t.Fatal(err)
			}
			if now := w.sh(w.repo, "for-each-ref"); now != refs {
				t.Errorf("the refs are\n%s\nand were\n%s", now, refs)
			}
			w.sh(w.path, "reset", "-q", "--hard", w.base)
			w.sh(w.repo, "reflog", "expire", "--expire=all", "--expire-unreachable=all", "--all")
			w.sh(w.repo, "gc", "-q", "--prune=now")
			if _, err := w.git.ResolveCommit(t.Context(), w.common, tip); err == nil {
				t.Fatal("gc left the commit")
			}
			if err := w.git.Unbundle(t.Context(), w.common, bundle); err != nil {
				t.Fatal(err)
			}
			for _, sha := range []string{tip, other} {
				if _, err := w.git.ResolveCommit(t.Context(), w.common, sha); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What the base has needs no bundle.
func TestBundleOfNothing(t *testing.T) {
	w := newWorld(t)
	s, err := w.git.NewScratch(w.common, filepath.Join(w.home, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(w.home, "kept.bundle")
	if err := s.Bundle(t.Context(), bundle, w.base, map[string]string{"tip": w.base}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bundle); err == nil {
		t.Error("there is a bundle")
	}
}
