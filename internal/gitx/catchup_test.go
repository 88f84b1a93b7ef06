package gitx

import (
	"os"
	"path/filepath"
	"testing"
)

// A killed CatchUp leaves missing or half-written files. The next one writes these and no others.
func TestCatchUpAfterAKill(t *testing.T) {
	w := newWorld(t, "gone", "1\n", "old", "2\n", "mine", "3\n")
	wt := w.wt()
	was, _ := w.stage()
	for _, name := range []string{"gone", "old", "mine", "new", "half", "theirs", "zeros"} {
		write(t, wt.Path, name, "what it is to be\n")
	}
	to, _ := w.stage()
	for name, text := range map[string]string{"old": "", "mine": "a person's", "half": "what it", "theirs": "what else",
		"new": "", "zeros": "what\x00\x00"} {
		write(t, wt.Path, name, text)
	}
	if err := os.Remove(filepath.Join(wt.Path, "gone")); err != nil {
		t.Fatal(err)
	}
	now, _ := w.stage()
	must(t, w.git.CatchUp(ctx, wt, was, to, now, true))
	for _, name := range []string{"gone", "old", "new", "half", "zeros"} {
		equal(t, name, read(t, wt.Path, name), "what it is to be\n")
	}
	equal(t, "mine", read(t, wt.Path, "mine"), "a person's")
	equal(t, "theirs", read(t, wt.Path, "theirs"), "what else")
}
