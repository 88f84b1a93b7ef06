package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// TestBoxPlace: commands see the tree at the path of the checkout, with the installed directories of the checkout and
// nothing else of it. Without a mount namespace the checkout is closed.
func TestBoxPlace(t *testing.T) {
	w := newWorld(t)
	checkout := filepath.Join(w.home, "src")
	for name, text := range map[string]string{
		"src/mod": "old", ".env": "secret", ".venv/pyvenv.cfg": "", ".venv/lib": "installed",
		"pkg/node_modules/x": "dep",
		".git/objects/pack":  "object", ".git/worktrees/id/HEAD": "head", "build/out": "stale",
	} {
		path := filepath.Join(checkout, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"src/mod": "new", "pkg/own": "own",
		".git": "gitdir: " + checkout + "/.git/worktrees/id\n"} {
		path := filepath.Join(w.work, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place := sandbox.Place{Tree: w.work, Checkouts: []string{checkout}, Git: filepath.Join(checkout, ".git"),
		Installed: []string{filepath.Join(checkout, ".venv"), filepath.Join(checkout, "pkg/node_modules")}}
	box := w.box.At(place)
	_, none := sandbox.Spaces()
	at := `cd ` + checkout + ` && `
	for _, c := range []struct {
		script string
		works  bool
	}{
		{at + `test "$(cat src/mod)" = new && test "$(cat file)" = mine`, true},
		{`cat ` + checkout + `/src/mod | grep -q old`, false},
		{at + `echo later >top && mkdir -p newdir && echo x >newdir/x && test -e ` + w.work + `/newdir/x && cat ` +
			w.work + `/top && rm -r top newdir`, true},
		{`echo there >` + w.work + `/there && cat ` + checkout + `/there && rm there`, true},
		{at + "cat .env", false},
		{at + "cat build/out", false},
		{"cat " + checkout + "/.venv/lib " + checkout + "/pkg/node_modules/x", true},
		{"echo x >" + checkout + "/.venv/lib", false},
		{"rm " + checkout + "/pkg/node_modules/x", false},
		{at + `d=$(sed 's/gitdir: //' .git) && test "$(cat $d/HEAD)" = head`, true},
		{at + `echo x >.git`, false},
		{at + "echo x >$(sed 's/gitdir: //' .git)/HEAD", false},
		{"ls ~; ls " + filepath.Dir(w.work) + "; cat ~/.ssh/id", false},
	} {
		works := c.works && (none == nil || !strings.HasPrefix(c.script, at) && !strings.Contains(c.script, "there"))
		if out, ok := w.sh(t, box, c.script); ok != works {
			t.Errorf("%s: %v\n%s", c.script, ok, out)
		}
	}
	if out, ok := w.sh(t, w.box, "test -e "+checkout+"/.env"); !ok {
		t.Errorf("without a place: %s", out)
	}
	place.Starts = true
	want := checkout
	if none != nil {
		want = w.work
	}
	out, _ := w.sh(t, w.box.At(place), `pwd; echo "$PWD"; cat src/mod`)
	if out != want+"\n"+want+"\nnew" {
		t.Errorf("%q", out)
	}
	if data, _ := os.ReadFile(filepath.Join(checkout, ".venv/lib")); string(data) != "installed" {
		t.Error("a command changed the checkout")
	}
}
