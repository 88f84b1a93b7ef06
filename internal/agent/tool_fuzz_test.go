package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// FuzzCall sends any arguments to the file tools: the answer is always a text, and
// nothing outside the worktree changes.
func FuzzCall(f *testing.F) {
	for _, args := range []string{
		`{"path":"a"}`, `{"path":"../outside/secret","content":"x"}`, `{"path":"a","old_string":"x","new_string":"y"}`,
		`{"pattern":"**","path_glob":"**/*.go"}`, `{"pattern":"(a|b)*"}`, `{"path":"`, `[]`, `{"path":"\ud800"}`, `{"pattern":"{a,b{c,d}}"}`, `{"pattern":"../*"}`,
	} {
		for tool := range uint8(6) {
			f.Add(tool, args)
		}
	}
	f.Fuzz(func(t *testing.T, tool uint8, args string) {
		base := t.TempDir()
		work, outside := filepath.Join(base, "work"), filepath.Join(base, "outside")
		for _, d := range []string{work, outside} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{filepath.Join(work, "a"), filepath.Join(work, ".git"),
			filepath.Join(outside, "secret")} {
			if err := os.WriteFile(file, []byte("x\r\ny\r\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := OpenTools(work, ToolOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		name := []string{"read_file", "write_file", "edit_file", "glob", "grep", "unknown"}[tool%6]
		res := b.Call(context.Background(), name, args)
		if res.Output == "" || !utf8.ValidString(res.Output) || res.Blocked != "" && !res.IsError {
			t.Errorf("malformed result %+v", res)
		}
		for dir, want := range map[string]int{base: 2, outside: 1} {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
				t.Fatalf("%s holds %v, %v", dir, entries, err)
			}
		}
		for _, file := range []string{filepath.Join(work, ".git"), filepath.Join(outside, "secret")} {
			if data, err := os.ReadFile(file); err != nil || string(data) != "x\r\ny\r\n" {
				t.Fatalf("%s holds %q, %v", file, data, err)
			}
		}
	})
}
