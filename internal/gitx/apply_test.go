package gitx

import (
	"os"
	"path/filepath"
	"testing"
)

// TestApplyChange stashes a change, lets git forget all of it, and restores it: on its base, on a tree that has half of
// it, and on a tree that it does not fit.
func TestApplyChange(t *testing.T) {
	for name, args := range map[string][]string{"sha1": nil, "sha256": {"--object-format=sha256"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, args, "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "gone.txt", "x\n", "run.sh", "#!/bin/sh\n")
			wt := w.wt()
			write(t, w.path, "a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n", "new/b.bin", "\x00\xff", ".gitignore",
				"cache/\n")
			must(t, os.Remove(filepath.Join(w.path, "gone.txt")))
			must(t, os.Chmod(filepath.Join(w.path, "run.sh"), 0o755))
			must(t, os.Symlink("a.txt", filepath.Join(w.path, "link")))
			tree, _ := w.stage()
			sha := w.sh(w.repo, "commit-tree", "-p", w.base, "-m", "partial", tree)
			must(t, w.git.Reset(ctx, wt, w.base, true))
			equal(t, "status", w.sh(w.path, "status", "--porcelain", "--ignored"), "")

			for _, test := range []struct {
				name  string
				files []string
				clean bool
			}{
				{"on its base", nil, true},
				{"on half of it", []string{"a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n", ".gitignore", "cache/\n"}, true},
				{"beside another change of a file", []string{"a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"}, true},
				{"against another change of a line", []string{"a.txt", "uno\n2\n3\n4\n5\n6\n7\n8\n9\n"}, false},
				{"where a file is in a directory's place", []string{"new", "x\n"}, false},
			} {
				must(t, w.git.Reset(ctx, wt, w.base, true))
				write(t, w.path, test.files...)
				onto, _ := w.stage()
				got, err := w.git.ApplyChange(ctx, w.common, w.base, sha, onto)
				must(t, err)
				equal(t, test.name, got != "", test.clean)
				if test.clean && test.name != "beside another change of a file" {
					equal(t, test.name, got, tree)
				}
				still, err := w.git.Mutate(ctx, w.git.InWorktree(wt, "write-tree"))
				must(t, err)
				equal(t, "the index "+test.name, still, onto)
			}
		})
	}
}
