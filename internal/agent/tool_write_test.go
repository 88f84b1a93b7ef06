package agent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFile(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	res := f.call("write_file", "path", "a/b/c.txt", "content", "hello\n")
	f.ok(res, "created a/b/c.txt (6 bytes)")
	if res.Edited != "a/b/c.txt" || f.content("a/b/c.txt") != "hello\n" {
		t.Errorf("got %+v", res)
	}
	f.put("script", "old", 0o755)
	f.put("private", "old", 0o600)
	f.put("open", "old", 0o666)
	f.link("script", "to-script")
	for name, mode := range map[string]os.FileMode{"script": 0o755, "private": 0o600, "open": 0o666} {
		f.ok(f.call("write_file", "path", name, "content", "new"), "replaced ")
		info, err := os.Stat(filepath.Join(f.dir, name))
		if err != nil || info.Mode().Perm() != mode || f.content(name) != "new" {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	f.fails(f.call("write_file", "path", "to-script", "content", "x"), "is a symbolic link")
	if info, err := os.Lstat(filepath.Join(f.dir, "to-script")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("a symbolic link was replaced by a file")
	}
	f.ok(f.call("write_file", "path", "script", "content", ""), "replaced script (0 bytes)")
	f.fails(f.call("write_file", "path", "a", "content", ""), "a is a directory")
	f.fails(f.call("write_file", "path", "new/", "content", ""), "names a directory")
	f.fails(f.call("write_file", "path", "script/x", "content", ""), "not a directory")
	if left, err := filepath.Glob(filepath.Join(f.dir, tempPrefix+"*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEditFile(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.put("a", "one\ntwo\nthree\ntwo\n", 0o755)
	res := f.call("edit_file", "path", "./a", "old_string", "three\ntwo", "new_string", "3\n2")
	f.ok(res, "edited a at line 3")
	if info, err := os.Stat(filepath.Join(f.dir, "a")); err != nil || info.Mode().Perm() != 0o755 ||
		res.Edited != "a" || f.content("a") != "one\ntwo\n3\n2\n" {
		t.Errorf("%+v: %q", res, f.content("a"))
	}
	f.put("twice", "xx\nxx\n", 0o644)
	f.put("bin", "a\x00b", 0o644)
	f.fails(f.call("edit_file", "path", "twice", "old_string", "xx", "new_string", "y"), "occurs more than once")
	f.fails(f.call("edit_file", "path", "a", "old_string", "nope", "new_string", "y"), "0 matches")
	f.fails(f.call("edit_file", "path", "a", "old_string", "", "new_string", "y"), "old_string is empty")
	f.fails(f.call("edit_file", "path", "a", "old_string", "one", "new_string", "one"), "the same")
	f.fails(f.call("edit_file", "path", "nothing", "old_string", "a", "new_string", "b"), "no such file")
	f.fails(f.call("edit_file", "path", ".", "old_string", "a", "new_string", "b"), "is a directory")
	f.fails(f.call("edit_file", "path", "bin", "old_string", "a", "new_string", "b"), "binary")
}

func TestEditIsExact(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	for _, c := range []struct{ name, data, old, repl, want, err string }{
		{"plain", "a b c", "b", "x", "a x c", ""},
		{"deletes", "a b c", " b", "", "a c", ""},
		{"overlapping", "aaa", "aa", "b", "", "occurs more than once"},
		{"CRLF file, LF request", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n", ""},
		{"CRLF file, CRLF request", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n", ""},
		{"CRLF file, one line", "a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", ""},
		{"CRLF changes nothing", "a\r\nb\r\n", "a\r\n", "a\n", "", "nothing was changed"},
		{"mixed line ends stay", "a\r\nb\nc\n", "b\n", "x\n", "a\r\nx\nc\n", ""},
		{"Latin-1 around it stays", "caf\xe9 b", "b", "x", "caf\xe9 x", ""},
		{"white space differs", "if x {\n\treturn\n}\n", "if x {\n    return\n}", "y", "", "(0 matches)"},
		{"blank", "a\n", "\n \n", "y", "", "(0 matches)"},
	} {
		f.put("file", c.data, 0o644)
		res := f.call("edit_file", "path", "file", "old_string", c.old, "new_string", c.repl)
		if c.err != "" {
			f.fails(res, c.err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(f.dir, "file")); err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
	}
}
