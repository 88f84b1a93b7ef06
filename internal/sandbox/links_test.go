package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinks resolves paths like filepath.EvalSymlinks, also missing ones, and reads each once.
func TestLinks(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	for _, err := range []error{
		os.MkdirAll(at("real/below"), 0o700), os.Symlink("real", at("link")), os.Symlink(at("link/below"), at("twice")),
		os.Symlink("nowhere", at("dangling")), os.Symlink("round", at("round")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	known := links{}
	for path, want := range map[string]string{
		"real/below": "real/below", "link": "real", "link/below": "real/below", "twice": "real/below",
		"link/none/at/all": "real/none/at/all", "dangling": "dangling", "dangling/x": "dangling/x",
		"round/x": "round/x",
	} {
		if got := known.real(at(path)); got != at(want) || real(at(path)) != got {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	if err := os.Remove(at("link")); err != nil {
		t.Fatal(err)
	}
	if known.real(at("link")) != at("real") || real(at("link")) != at("link") {
		t.Error("a link is looked at again while one command is started, or not for the next")
	}
}
