package loop

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestLeadsOut(t *testing.T) {
	links := map[string]bool{"sub/up": true}
	for _, c := range []struct {
		link, target string
		want         bool
	}{
		{"a", "b", false}, {"a", "/etc/passwd", true}, {"a", "..", true}, {"sub/a", "../b", false},
		{"sub/a", "../../b", true},
		{"sub/a", "x/../../b", false}, {"a", "sub/up/../x", true}, {"a", "sub/up/x", false}, {"a", ".", false},
		{"a", "./sub/../../b", true},
	} {
		if got := leadsOut(links, c.link, c.target); got != c.want {
			t.Errorf("%s -> %s: %v", c.link, c.target, got)
		}
	}
}

// TestFilesOfNoText checks which files are code for a loader, and which can be shown as text.
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
		if got := onlyLoaded("f", []byte(content)) != ""; got != want.loaded {
			t.Errorf("%q is loaded: %v", content, got)
		}
		if got := isReadable([]byte(content)); got != want.readable && !want.loaded {
			t.Errorf("%q is readable: %v", content, got)
		}
	}
}

// A zip archive is code for a loader by its name or its members, with anything before it; a document is not.
func TestArchives(t *testing.T) {
	archive := func(prefix string, members ...string) []byte {
		var b bytes.Buffer
		b.WriteString(prefix)
		w := zip.NewWriter(&b)
		for _, m := range members {
			f, err := w.Create(m)
			if err == nil {
				_, err = f.Write([]byte("content"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	broken := append(archive("", "a.txt"), 1, 2)
	for _, c := range []struct {
		name string
		data []byte
		want bool
	}{
		{"data.zip", archive("", "a.csv"), true}, {"lib.whl", archive("", "a.txt"), true},
		{"notes.txt", archive("# only a comment\n", "site/__main__.py"), true},
		{"picture.png", archive("\x89PNG\r\n", "a.class"), true},
		{"table.xlsx", archive("", "[Content_Types].xml", "xl/workbook.xml"), false},
		{"bad.bin", broken[:len(broken)-4], true}, {"text", []byte("a text about PK and zip"), false},
		{"empty.zip", archive(""), false},
	} {
		if got := onlyLoaded(c.name, c.data) != ""; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestGitDirectories(t *testing.T) {
	got := gitDirectories([]string{"a/HEAD", "a/objects/x", "b/HEAD", "b/commondir", "c/HEAD", "c/refs/x", "d.git/Head",
		"d.git/Objects/pack/p", "d.git/refs/heads/main", "e/head/objects", "e/refs/x", "f/x/HEAD", "f/x/objects/o",
		"f/x/refs/r", "HEAD", "objects/o", "refs/r"})
	slices.Sort(got)
	if want := []string{"b/", "d.git/", "f/x/"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}
