package seed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

func TestTick(t *testing.T) {
	for _, c := range []struct{ name, before, id, title, after string }{
		{"an item", "- [ ] a\n- [ ] b\n", "T-002", "b", "- [ ] a\n- [x] b\n"},
		{"with an id", "1. [ ] T-004: a\n2. [ ] a\n", "T-004", "a", "1. [x] T-004: a\n2. [ ] a\n"},
		{"two of one title", "- [ ] a\n- [ ] a\n", "T-001", "a", "- [ ] a\n- [ ] a\n"},
		{"Windows, and front matter", "---\r\nx: y\r\n---\r\n* [ ] a\r\n", "T-001", "a",
			"---\r\nx: y\r\n---\r\n* [x] a\r\n"},
		{"a heading", "### Task 1: a\n- [ ] x\n- [ ] y\n### Task 2: b\n- [ ] z\n", "T-001", "a",
			"### Task 1: a\n- [x] x\n- [x] y\n### Task 2: b\n- [ ] z\n"},
		{"no more there", "- [ ] c\n", "T-001", "a", "- [ ] c\n"},
		{"in a code block", "```\n- [ ] a\n```\n", "T-001", "a", "```\n- [ ] a\n```\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "d", "TODO.md"), c.before)
			for range 2 {
				if _, err := Tick(dir, "d/TODO.md", session.Task{ID: c.id, Title: c.title}); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := os.ReadFile(filepath.Join(dir, "d", "TODO.md")); string(got) != c.after {
				t.Errorf("got %q, want %q", got, c.after)
			}
		})
	}
}

// A worker can put a link in the place of the list.
func TestTickFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "precious"), "- [ ] a\n")
	write(t, filepath.Join(dir, "tree", "x"), "")
	for _, to := range []string{"../precious", filepath.Join(dir, "precious")} {
		os.Remove(filepath.Join(dir, "tree", "TODO.md"))
		if err := os.Symlink(to, filepath.Join(dir, "tree", "TODO.md")); err != nil {
			t.Fatal(err)
		}
		if n, err := Tick(filepath.Join(dir, "tree"), "TODO.md", session.Task{Title: "a"}); n != 0 || err != nil {
			t.Error(n, err)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "precious")); string(got) != "- [ ] a\n" {
		t.Errorf("got %q", got)
	}
}
