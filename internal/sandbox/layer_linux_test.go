package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// TestBoxLayers: caches and state stay unchanged, except for paths that pass through, and the box sees its own writes.
func TestBoxLayers(t *testing.T) {
	w := newWorld(t)
	if _, err := sandbox.Spaces(); err != nil {
		t.Skip("needs mounts of its own: ", err)
	}
	cache, state := filepath.Join(w.home, "cache"), filepath.Join(w.home, "state")
	layers := filepath.Join(filepath.Dir(w.work), "caches")
	for name, text := range map[string]string{
		filepath.Join(cache, "old"): "old", filepath.Join(cache, "dir/in"): "old",
		filepath.Join(state, "settings"): "old", filepath.Join(state, "said/one"): "old",
		filepath.Join(w.home, "state.json"): "old", filepath.Join(state, "said/memory/old"): "old",
		filepath.Join(layers, "copy"): "old",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = proc.RemoveAll(layers) })
	box := w.box.With()
	box.Caches, box.Layers = []string{cache}, filepath.Join(layers, "workspace")
	box.State = []sandbox.Layer{{Path: state, In: filepath.Join(layers, "turn")},
		{Path: filepath.Join(w.home, "state.json"), In: filepath.Join(layers, "copy")},
		{Path: filepath.Join(state, "said/memory"), In: filepath.Join(layers, "memory")}}
	box.Through = []string{filepath.Join(state, "said")}
	const write = `set -e; cd ~; cat cache/old cache/dir/in state/settings state/said/one state/said/memory/old state.json
		for f in state/said/memory/new cache/old cache/new state/settings state/new state/said/one state/said/new state.json; do echo evil >$f; done
		rm -r cache/dir; mkdir cache/dir; mv cache/new cache/dir/new; mv state/new state/newer; ln cache/old cache/linked
		! ln cache/old state/linked 2>/dev/null; ! (echo x >other) 2>/dev/null; chmod 755 cache/old`
	if out, ok := w.sh(t, box, write); !ok || out != "oldoldoldoldoldold" {
		t.Fatalf("%v %q", ok, out)
	}
	if out, ok := w.sh(t, box.Reading(w.home+"/src"),
		"cat ~/cache/old ~/cache/dir/* ~/state/newer ~/state.json"); !ok || out != strings.Repeat("evil\n", 4) {
		t.Errorf("found again: %v %q", ok, out)
	}
	for name, want := range map[string]string{"cache/old": "old", "cache/dir/in": "old", "state/settings": "old",
		"state.json": "old", "state/said/one": "evil\n", "state/said/new": "evil\n"} {
		if data, err := os.ReadFile(filepath.Join(w.home, name)); string(data) != want {
			t.Errorf("%s is %q (%v), want %q", name, data, err, want)
		}
	}
	for _, name := range []string{"state/said/memory/new", "cache/new", "cache/linked", "state/newer",
		"cache/dir/new"} {
		if _, err := os.Lstat(filepath.Join(w.home, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	kept, err := os.ReadFile(filepath.Join(sandbox.Written(filepath.Join(layers, "turn")), "settings"))
	if string(kept) != "evil\n" {
		t.Errorf("the layer has %q (%v)", kept, err)
	}
	// Another layer knows nothing of this one.
	box.Layers = filepath.Join(layers, "judge")
	if out, ok := w.sh(t, box, "cat ~/cache/old ~/cache/dir/in"); !ok || out != "oldold" {
		t.Errorf("another layer: %v %q", ok, out)
	}
	// One above reads the others that are accepted, and is written to in their place.
	box.Layers, box.Above = filepath.Join(layers, "workspace"), filepath.Join(layers, "above")
	if out, ok := w.sh(t, box, "cat ~/cache/old ~/cache/dir/*; rm ~/cache/old; echo above >~/cache/dir/new"); !ok ||
		out != "evil\nevil\n" {
		t.Errorf("above: %v %q", ok, out)
	}
	accepted := filepath.Join(box.Layers, sandbox.Accepted+"1")
	box.Above = filepath.Join(layers, "another")
	if out, ok := w.sh(t, box, "cat ~/cache/old ~/cache/dir/*"); !ok || out != "evil\nevil\n" {
		t.Errorf("beside it: %v %q", ok, out)
	}
	if err := os.Rename(filepath.Join(layers, "above"), accepted); err != nil {
		t.Fatal(err)
	}
	box.Above = filepath.Join(layers, "third")
	if out, ok := w.sh(t, box, "! cat ~/cache/old 2>/dev/null && cat ~/cache/dir/*"); !ok || out != "above\n" {
		t.Errorf("above what was accepted: %v %q", ok, out)
	}
	// A removed layer is created again when it is needed.
	if err := proc.RemoveAll(box.Above); err != nil {
		t.Fatal(err)
	}
	if out, ok := w.sh(t, box.With(t.TempDir()), "cat ~/cache/dir/*; echo again >~/cache/dir/new"); !ok ||
		out != "above\n" {
		t.Errorf("removed and made again: %v %q", ok, out)
	}
}
