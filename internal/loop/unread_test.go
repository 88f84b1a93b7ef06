package loop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLeadsOut(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(top, "sub", "up")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		link, target string
		want         bool
	}{
		{"a", "b", false}, {"a", "/etc/passwd", true}, {"a", "..", true}, {"sub/a", "../b", false},
		{"sub/a", "../../b", true},
		{"sub/a", "x/../../b", false}, {"a", "sub/up/../x", true}, {"a", "sub/up/x", false}, {"a", ".", false},
		{"a", "./sub/../../b", true},
	} {
		if got := leadsOut(top, c.link, c.target); got != c.want {
			t.Errorf("%s -> %s: %v", c.link, c.target, got)
		}
	}
}

// TestFilesOfNoText: which are code that only a loader reads, and which can be shown all the same.
func TestFilesOfNoText(t *testing.T) {
	pe := "MZ" + strings.Repeat("\x00", 58) + "\x40\x00\x00\x00PE\x00\x00"
	for content, want := range map[string]struct{ loaded, readable bool }{
		"\x7fELF\x02\x01\x01\x00\x00":                         {true, false},
		"\xca\xfe\xba\xbe\x00\x00\x00\x3d":                    {true, false},
		"\xcb\x0d\x0d\x0a" + strings.Repeat("\x00", 12) + "c": {true, false},
		pe: {true, false},
		"MZ is how this text begins, and it goes on for more than sixty-four bytes, as one sees": {false, true},
		"[pytest]\n# \x00\naddopts = -k x\n":                                                     {false, true},
		"\xff\xfeh\x00e\x00l\x00l\x00o\x00\n\x00":                                                {false, true},
		"one\r\ntwo\r\n": {false, true},
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x1f": {false, false},
	} {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := onlyLoaded(name) != ""; got != want.loaded {
			t.Errorf("%q is loaded: %v", content, got)
		}
		if got := isReadable(name); got != want.readable && !want.loaded {
			t.Errorf("%q is readable: %v", content, got)
		}
	}
}
