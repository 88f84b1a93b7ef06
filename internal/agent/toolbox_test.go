package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

// fixture is a worktree next to a directory that must not change.
type fixture struct {
	*BuiltinTools
	t       *testing.T
	dir     string
	outside string
	asked   bool // Before was, of the last call
}

func newFixture(t *testing.T, o ToolOptions) *fixture {
	t.Helper()
	base := t.TempDir()
	f := &fixture{t: t, dir: filepath.Join(base, "work"), outside: filepath.Join(base, "outside")}
	for _, d := range []string{f.dir, f.outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.put(".git", "gitdir: /nowhere\n", 0o644)
	if err := os.WriteFile(filepath.Join(f.outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Before = func(context.Context, string, string) (string, bool) {
		f.asked = true
		return "", false
	}
	box, err := OpenTools(f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	f.BuiltinTools = box
	return f
}

func (f *fixture) put(name, content string, mode os.FileMode) {
	f.t.Helper()
	full := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), mode); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Chmod(full, mode); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) link(target, name string) {
	f.t.Helper()
	if err := os.Symlink(target, filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) content(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// call runs a tool with arguments given as key, value, ...
func (f *fixture) call(name string, kv ...string) ToolAnswer {
	f.t.Helper()
	args := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		args[kv[i]] = kv[i+1]
	}
	data, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.raw(name, string(data))
}

func (f *fixture) raw(name, args string) ToolAnswer {
	f.t.Helper()
	f.asked = false
	res := f.Call(context.Background(), name, args)
	if res.Output == "" || !utf8.ValidString(res.Output) || res.Chars != utf8.RuneCountInString(res.Output) {
		f.t.Errorf("%s %s: malformed result %+v", name, args, res)
	}
	if res.Blocked != "" && f.asked {
		f.t.Errorf("%s %s: Before was asked of a call that policy refuses: %s", name, args, res.Blocked)
	}
	return res
}

// ok, fails and blocks check one result and the text that it has to hold.
func (f *fixture) ok(res ToolAnswer, want string) {
	f.t.Helper()
	if res.IsError || res.Blocked != "" || !strings.Contains(res.Output, want) {
		f.t.Errorf("want success with %q, got %+v", want, res)
	}
}

func (f *fixture) fails(res ToolAnswer, want string) {
	f.t.Helper()
	if !res.IsError || res.Blocked != "" || res.Edited != "" || !strings.Contains(res.Output, want) {
		f.t.Errorf("want an error with %q, got %+v", want, res)
	}
}

func (f *fixture) blocks(res ToolAnswer, want string) {
	f.t.Helper()
	if !res.IsError || res.Blocked == "" || res.Edited != "" || !strings.Contains(res.Output, want) {
		f.t.Errorf("want a block with %q, got %+v", want, res)
	}
}

func TestSpecs(t *testing.T) {
	names := func(b *BuiltinTools) string {
		var specs []struct {
			Type     string
			Function struct {
				Name, Description string
				Parameters        struct {
					Properties map[string]struct{ Type string }
					Required   []string
				}
			}
		}
		if err := json.Unmarshal(b.Specs(), &specs); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range specs {
			if s.Type != "function" || s.Function.Description == "" || len(s.Function.Parameters.Properties) == 0 {
				t.Errorf("malformed: %+v", s)
			}
			out = append(out, s.Function.Name+":"+strings.Join(s.Function.Parameters.Required, ","))
		}
		return strings.Join(out, " ")
	}
	const reading = "read_file:path"
	if got := names(newFixture(t, ToolOptions{}).BuiltinTools); got != reading+
		" write_file:path,content edit_file:path,old_string,new_string glob:pattern grep:pattern bash:command" {
		t.Errorf("got %s", got)
	}
	readOnly := newFixture(t, ToolOptions{ReadOnly: true})
	if got := names(readOnly.BuiltinTools); got != reading+" glob:pattern grep:pattern" {
		t.Errorf("read only: got %s", got)
	}
}

func TestArguments(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.put("a", "x", 0o644)
	for args, want := range map[string]string{
		`{"path":"a"`:              "not one JSON object",
		`{"path":"a"}{"path":"a"}`: "not one JSON object",
		`{"path":"a"} x`:           "not one JSON object",
		`["a"]`:                    "not one JSON object",
		`"a"`:                      "not one JSON object",
		`5`:                        "not one JSON object",
		`null`:                     `"path" is missing`,
		`path`:                     "not one JSON object",
		``:                         `"path" is missing; expected read_file {path: string}`,
		`{}`:                       `"path" is missing`,
		`{"path":5}`:               `"path" must be a string`,
		`{"path":null}`:            `"path" must be a string`,
		`{"path":["a"]}`:           `"path" must be a string`,
		`{"path":{"a":1}}`:         `"path" must be a string`,
		`{"path":true}`:            `"path" must be a string`,
		`{"Path":"a"}`:             `"path" is missing`,
		`{"path":""}`:              "empty",
		`{"path":"a\u0000b"}`:      "NUL",
	} {
		f.fails(f.raw("read_file", args), want)
	}
	f.fails(f.raw("bash", `{"command":"true","timeout":"5"}`), `"timeout" must be a number`)
	f.fails(f.raw("bash", `{"command":"true","timeout":0}`), "more than 0")
	f.fails(f.raw("bash", `{"command":"true","timeout":1e400}`), "not one JSON object")
	f.ok(f.raw("bash", `{"command":"true","timeout":null}`), "exit code 0")
	f.ok(f.raw("bash", `{"command":"true","timeout":1e300}`), "exit code 0")
	f.ok(f.raw("bash", `{"command":"true","description":"Do nothing"}`), "exit code 0")
	f.ok(f.raw("read_file", ` {"path":"a","line":3} `), "x")
	f.fails(f.raw("rm_file", `{}`), `no tool "rm_file"; the tools here are read_file, write_file`)
	f.fails(newFixture(t, ToolOptions{ReadOnly: true}).call("bash", "command", "true"), "no tool")
}

func TestReadFile(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.put("dir/a.txt", "one\r\ntwo\n", 0o644)
	f.put("empty", "", 0o644)
	f.put("bin", "a\x00b", 0o644)
	f.put("latin", "caf\xe9", 0o644)
	f.put("long", strings.Repeat("0123456789abcde\n", readCap/8), 0o644)
	f.link("dir/a.txt", "link")
	f.link("dir", "dirlink")
	f.link("dangling-target", "dangling")
	f.link("self", "self")
	if err := syscall.Mkfifo(filepath.Join(f.dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dir/a.txt", "./dir//a.txt", "dir/../dir/a.txt", "link", "dirlink/a.txt",
		f.dir + "/dir/a.txt"} {
		if res := f.call("read_file", "path", name); res.Output != "one\r\ntwo\n" || res.IsError {
			t.Errorf("%s: got %+v", name, res)
		}
	}
	f.ok(f.call("read_file", "path", "empty"), "empty")
	f.ok(f.call("read_file", "path", "latin"), "caf\uFFFD\n[the file is not valid UTF-8")
	f.fails(f.call("read_file", "path", "dir"), "is a directory; list it with glob")
	f.fails(f.call("read_file", "path", "bin"), "binary file of 3 bytes")
	f.fails(f.call("read_file", "path", "nothing"), "nothing: no such file")
	f.fails(f.call("read_file", "path", "dangling"), "no such file")
	f.fails(f.call("read_file", "path", "self"), "too many")
	f.fails(f.call("read_file", "path", "dir/a.txt/b"), "not a directory")
	f.fails(f.call("read_file", "path", "fifo"), "not a regular file")
	f.fails(f.call("read_file", "path", strings.Repeat("x", 5000)), "name too long")
	long := f.call("read_file", "path", "long")
	f.ok(long, "[cut here: 98304 of 196608 bytes (6144 lines) are shown")
}

func TestNothingOutside(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.put("dir/x", "x", 0o644)
	f.link(f.outside, "abs")
	f.link("../outside", "rel")
	f.link("../../outside/secret", "dir/deep")
	f.link("rel", "twice")
	f.link(".git", "gitlink")
	for _, name := range []string{
		"..", "../outside/secret", "dir/../../outside/secret", f.outside + "/secret", "/etc/passwd", "/", "abs/secret",
		"rel/secret",
		"dir/deep", "twice/secret", "../work/dir/x", ".git", "./.git", ".GIT", ".git/config", "dir/.git/x", ".git.",
		"gitlink", f.dir + "/.git",
	} {
		f.blocks(f.call("read_file", "path", name), "blocked: ")
		f.blocks(f.call("write_file", "path", name, "content", "bad"), "blocked: ")
		f.blocks(f.call("edit_file", "path", name, "old_string", "secret", "new_string", "bad"), "blocked: ")
	}
	if err := os.Link(filepath.Join(f.dir, ".git"), filepath.Join(f.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if res := f.Call(context.Background(), "write_file", `{"path":"hard","content":"bad"}`); res.Blocked == "" {
		t.Errorf("hard link to .git: %+v", res)
	}
	for _, pattern := range []string{"../**", "/etc/*", "abs/*", "rel/**", "dir/../../*", ".git", "**/.git/*",
		f.outside + "/*"} {
		if res := f.call("glob", "pattern", pattern); strings.Contains(res.Output, "secret\n") || !res.IsError {
			t.Errorf("glob %s: %+v", pattern, res)
		}
		if res := f.call("grep", "pattern", "secret|gitdir", "path_glob", pattern); strings.Contains(res.Output,
			":secret") || !res.IsError {
			t.Errorf("grep %s: %+v", pattern, res)
		}
	}
	f.ok(f.call("grep", "pattern", "gitdir"), "no match")
	if data, err := os.ReadFile(filepath.Join(f.outside, "secret")); err != nil || string(data) != "secret" {
		t.Errorf("outside is now %q, %v", data, err)
	}
	if f.content(".git") != "gitdir: /nowhere\n" {
		t.Error(".git was changed")
	}
}

// TestNothingOutsideByRace has a link turn from a directory inside to one outside
// and back while files are written through it.
func TestNothingOutsideByRace(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.put("real/keep", "", 0o644)
	f.link("real", "d")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := []string{"real", f.outside, "../outside"}[i%3]
			tmp := filepath.Join(f.dir, "swap")
			_ = os.Symlink(target, tmp)
			_ = os.Rename(tmp, filepath.Join(f.dir, "d"))
		}
	}()
	for range 300 {
		f.Call(context.Background(), "write_file", `{"path":"d/new","content":"x"}`)
		if res := f.Call(context.Background(), "read_file", `{"path":"d/secret"}`); strings.HasPrefix(res.Output, "secret") {
			t.Fatal("a file outside was read")
		}
	}
	close(stop)
	<-stopped
	entries, err := os.ReadDir(f.outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
}

func TestVanishedWorktree(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	all := func() {
		t.Helper()
		f.fails(f.call("write_file", "path", "a/b", "content", "x"), "worktree directory is gone")
		f.fails(f.call("read_file", "path", "a"), "gone")
		f.fails(f.call("edit_file", "path", "a", "old_string", "a", "new_string", "b"), "gone")
		f.fails(f.call("glob", "pattern", "*"), "gone")
		f.fails(f.call("grep", "pattern", "x"), "gone")
		f.fails(f.call("bash", "command", "touch x"), "gone")
	}
	all()
	if _, err := os.Lstat(f.dir); !os.IsNotExist(err) {
		t.Errorf("the worktree was made again: %v", err)
	}
	// Another directory in its place is not the worktree either.
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	all()
	if entries, err := os.ReadDir(f.dir); err != nil || len(entries) != 0 {
		t.Errorf("the new directory holds %v, %v", entries, err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenTools(filepath.Join(dir, "gone"), ToolOptions{}); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	// Temporary files of a killed process are removed, but not by a read-only BuiltinTools.
	stale := filepath.Join(dir, tempPrefix+"x")
	if err := os.WriteFile(stale, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		b, err := OpenTools(dir, ToolOptions{ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if _, err := os.Lstat(stale); (err == nil) != readOnly {
			t.Errorf("read only %v: %v", readOnly, err)
		}
	}
}
