package gitx

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPreviewTreeIsWhatStageAllMakes(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"nothing": func(*world) {},
		"edited, added, deleted, build products": func(w *world) {
			write(t, w.path, "a.txt", "two\n", "new/b.txt", "b\n", "x.log", "ignored\n", "node_modules/m.js", "x\n")
			must(t, os.Remove(filepath.Join(w.path, "gone.txt")))
		},
		"half staged": func(w *world) {
			write(t, w.path, "a.txt", "two\n", "b.txt", "b\n")
			w.sh(w.path, "add", "b.txt")
			write(t, w.path, "b.txt", "c\n")
		},
		"without an index":       func(w *world) { must(t, os.Remove(filepath.Join(w.wt().AdminDir, "index"))) },
		"with a lock in the way": func(w *world) { write(t, w.wt().AdminDir, "index.lock", "") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a.txt", "one\n", "gone.txt", "x\n", ".gitignore", "*.log\n")
			change(w)
			before := snapshot(t, w.home)
			ahead, err := dryRun(w.git).PreviewTree(ctx, w.wt(), w.base, "")
			must(t, err)
			after := snapshot(t, w.home)
			equal(t, "number of files", len(after), len(before))
			for p, content := range before {
				equal(t, p, after[p], content)
			}
			tree, _ := w.stage()
			equal(t, "tree", ahead, tree)
		})
	}
}
