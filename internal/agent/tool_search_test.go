package agent

import (
	"fmt"
	"strings"
	"testing"
)

func searchFixture(t *testing.T) *fixture {
	f := newFixture(t, ToolOptions{})
	for name, content := range map[string]string{
		"main.go": "package main\n\nfunc main() {}\n", "README.md": "# Main\r\nmain text\r\n",
		"src/b.go": "package src\n",
		"src/a.go": "package src\n// main\n", "src/deep/c_test.go": "package deep\n", "sp ace/ü.txt": "main\n",
		"node_modules/x/i.js": "main\n", ".venv/y.py": "main\n", ".hidden/z.txt": "main\n", "bin": "main\x00",
		"latin": "main \xe9\n",
	} {
		f.put(name, content, 0o644)
	}
	f.link("src", "linked")
	return f
}

func TestGlob(t *testing.T) {
	f := searchFixture(t)
	for pattern, want := range map[string]string{
		"*.go": "main.go", "**/*.go": "main.go src/a.go src/b.go src/deep/c_test.go",
		"src/*":  "src/a.go src/b.go src/deep/",
		"src/**": "src/a.go src/b.go src/deep/c_test.go", "**/*_test.go": "src/deep/c_test.go",
		"*.{md,go}":  "README.md main.go",
		"./src/*.go": "src/a.go src/b.go", "node_modules/**": "node_modules/x/i.js", "**/i.js": "<none>",
		"*/ü.txt":     "sp ace/ü.txt",
		"linked/*.go": "linked/a.go linked/b.go", "src/a.go": "src/a.go", "nowhere/**": "<none>",
		"**/z.txt":          ".hidden/z.txt",
		f.dir + "/src/*.go": "src/a.go src/b.go", "src/[ab].go": "src/a.go src/b.go", "*.GO": "<none>",
	} {
		res := f.call("glob", "pattern", pattern)
		got := strings.ReplaceAll(strings.TrimSpace(res.Output), "\n", " ")
		if strings.HasPrefix(got, "no file matches") {
			got = "<none>"
		}
		if got != want || res.IsError {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
	f.fails(f.call("glob", "pattern", "["), "not a valid pattern")
	f.fails(f.call("glob", "pattern", " "), "empty")
}

func TestGlobIsCapped(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	for i := range globCap + 7 {
		f.put(fmt.Sprintf("d/%05d", i), "", 0o644)
	}
	f.ok(f.call("glob", "pattern", "d/*"), "[7 more matches are not shown")
}

func TestGrep(t *testing.T) {
	f := searchFixture(t)
	for _, c := range []struct{ pattern, glob, want string }{
		{"main", "*.go", "main.go:1:package main main.go:3:func main() {} src/a.go:2:// main"},
		{"main", "src", "src/a.go:2:// main"},
		{"main", "src/**", "src/a.go:2:// main"},
		{"main", "linked/", "linked/a.go:2:// main"},
		{"main", "README.md", "README.md:2:main text"},
		{"(?i)^# main$", "**/*.md", "README.md:1:# Main"},
		{"main", "sp ace/*", "sp ace/ü.txt:1:main"},
		{"main", "node_modules", "node_modules/x/i.js:1:main"},
		{"main\\s+func", "", "no match in 8 files"},
		{"x", "*.nope", "no text file matches *.nope"},
		{"main .", "latin", "latin:1:main \uFFFD"},
	} {
		kv := []string{"pattern", c.pattern}
		if c.glob != "" {
			kv = append(kv, "path_glob", c.glob)
		}
		res := f.call("grep", kv...)
		if got := strings.ReplaceAll(strings.TrimSpace(res.Output), "\n", " "); got != c.want || res.IsError {
			t.Errorf("%s in %s: got %q, want %q", c.pattern, c.glob, got, c.want)
		}
	}
	if res := f.call("grep", "pattern", "main"); strings.Contains(res.Output, "bin:") ||
		strings.Contains(res.Output, "node_modules") {
		t.Errorf("got %s", res.Output)
	}
	f.fails(f.call("grep", "pattern", "("), "not a valid regular expression")
	f.fails(f.call("grep", "pattern", "x", "path_glob", "[a"), "not a valid pattern")
}

func TestGrepIsCapped(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.put("long", "needle"+strings.Repeat("é", 5000)+"\n", 0o644)
	res := f.call("grep", "pattern", "needle")
	f.ok(res, "needle")
	if res.Chars > 400 {
		t.Errorf("%d characters", res.Chars)
	}
	f.put("many", strings.Repeat("needle\n", 5*grepCap), 0o644)
	f.ok(f.call("grep", "pattern", "needle", "path_glob", "many"),
		fmt.Sprintf("many:%d:needle\n[only the first %d matching lines", grepCap, grepCap))
	f.put("big", strings.Repeat("needle\n", grepFileCap/6), 0o644)
	f.ok(f.call("grep", "pattern", "needle", "path_glob", "big"),
		"[1 files are too large to be searched]")
}
