package pattern

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustPaths(t testing.TB, patterns ...string) *Paths {
	t.Helper()
	p, err := NewPaths(patterns...)
	if err != nil {
		t.Fatalf("%q %v", patterns, err)
	}
	return p
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		patterns, takes, leaves string
	}{
		{"src/", "src/a.go src/b/c.go x/src/a.go src/", "src asrc/a.go"},
		{"/src", "src src/a.go", "x/src"},
		{"*.md", "a.md docs/a.md .md x.md/y", "a.mdx"},
		{"docs/*.md", "docs/a.md", "docs/b/a.md x/docs/a.md"},
		{"docs/**", "docs/a docs/b/c", "docs x/docs/a"},
		{"**/docs", "docs a/docs a/b/docs/c", "adocs"},
		{"a/**/b", "a/b a/x/b a/x/y/b/z", "ab a/xb"},
		{"src/** !src/gen", "src/gen/a src/a", "src/gen"}, // excludes only the named paths
		{"/* !/src", "a.go docs/a.md", "src src/a.go"},
		{"src !src/a.go", "src/a.go src/b.go", ""},
		{"*.go !a.go", "b.go x/b.go", "a.go x/a.go"},
		{"!a.go *.go", "a.go", ""},
		{`a\*b \!c \#d`, "a*b !c #d", "axb c d"},
		{"[a-c]x [!0-9]y []-]z", "ax cx ay ]z -z", "dx 0y az"},
		{"[+-0]x/[^b]", "+x/a", "+x/b /x/a"},
		{"é?", "éx", "é"},
	} {
		p := mustPaths(t, strings.Fields(c.patterns)...)
		for _, path := range strings.Fields(c.takes) {
			if !p.Match(path) {
				t.Errorf("%q does not take %q", c.patterns, path)
			}
		}
		for _, path := range strings.Fields(c.leaves) {
			if p.Match(path) {
				t.Errorf("%q takes %q", c.patterns, path)
			}
		}
	}
	if p := mustPaths(t, `a\ `, `b\\ `, "c  "); !p.Match("a ") || !p.Match(`b\`) || !p.Match("c") {
		t.Error("blanks at the end are not read as git reads them")
	}
}

func TestPathsRefused(t *testing.T) {
	for _, c := range []struct{ pattern, why string }{
		{"", "is empty"}, {"  ", "is empty"}, {"/", "is empty"}, {"!", "is empty"}, {"# a", "comment"},
		{"../x", "leaves"}, {"a/../b", "leaves"}, {"!/..", "leaves"},
		{"~/x", "absolute"}, {"C:/x", "absolute"}, {`C:\x`, "absolute"},
		{"//x", "no path matches"}, {"./x", "no path matches"}, {"a//b", "no path matches"}, {"a//", "no path matches"},
		{"[a", "unclosed ["}, {"[]", "unclosed ["}, {"[!", "unclosed ["}, {`[\`, "unclosed ["},
		{"[a-", "unclosed ["}, {`x\`, "backslash"}, {"[[:alpha:]]", "[:alpha:]"}, {"a\nb", "control"},
		{"a\xff", "UTF-8"},
	} {
		if _, err := NewPaths("ok", c.pattern); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: %v, want %q", c.pattern, err, c.why)
		}
	}
}

func TestOverlap(t *testing.T) {
	tree := []string{"README.md", "docs/a.md", "src/a.go", "src/lib/b.go", "test/a_test.go"}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"src/", "docs/", false},
		{"src/", "*.md", false},
		{"docs/", "*.md", true},
		{"src/lib/", "src/*.go", false},
		{"src/lib/", "src/**/*.go", true},
		{"new.go", "new.go", true}, // of no tree yet
		{"pkg/new/", "pkg/new/a.go", true},
		{"pkg/new/*.go", "pkg/new/*.go", true},
		{"pkg/new", "pkg/new/", true},
		{"pkg/new", "pkg/newer", false},
		{"** !docs", "docs/", true}, // docs is let go, and docs/a.md is not
		{"/* !/docs/", "docs/", false},
		{"src/ !src/lib/", "src/lib/b.go", true}, // src/ is taken whole
		{"src/* !src/lib/", "src/lib/b.go", false},
	} {
		a, b := mustPaths(t, strings.Fields(c.a)...), mustPaths(t, strings.Fields(c.b)...)
		if Overlap(a, b, tree) != c.want || Overlap(b, a, tree) != c.want {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.want)
		}
	}
}

// TestPathsAsGit compares random lists with git check-ignore. Stars next to other characters are single, because git's
// documentation and its matcher disagree about more.
func TestPathsAsGit(t *testing.T) {
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: no path is ignored
			t.Fatalf("git %q: %v\n%s", args, err, said.String())
		}
		return out.String()
	}
	git("", "init", "-q")
	rules := filepath.Join(dir, ".git", "info", "exclude")
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	paths := randomPaths(random, 300)
	for range 60 {
		var patterns []string
		for range 1 + random.IntN(5) {
			patterns = append(patterns, randomPattern(random))
		}
		p, err := NewPaths(patterns...)
		if err != nil {
			t.Fatalf("%q: %v", patterns, err)
		}
		if err := os.WriteFile(rules, []byte(strings.Join(patterns, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		said := git(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
		ignored := strings.Split(said, "\x00")
		for _, path := range paths {
			if p.Match(path) != slices.Contains(ignored, path) {
				t.Fatalf("seed %d: %q and %q: git says %v", seed, patterns, path, !p.Match(path))
			}
		}
	}
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func randomPaths(r *rand.Rand, n int) (paths []string) {
	for range n {
		var parts []string
		for range 1 + r.IntN(4) {
			parts = append(parts,
				pick(r, "a", "b", "ab", "ba", "a.go", "b.go", "a-b", "!a", "#a", "a*", "a]", "A", ".a", "0"))
		}
		paths = append(paths, strings.Join(parts, "/"))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func randomPattern(r *rand.Rand) string {
	var parts []string
	for range 1 + r.IntN(3) {
		part := pick(r, "**", "*", "a", "b", "?", "*.go", "a*", "*b")
		if r.IntN(2) == 0 {
			part = ""
			for range 1 + r.IntN(3) {
				part += pick(r, "a", "b", "?", ".go", "[ab]", "[!a]", "[^b-z]", "[]a]", "[+-0]", "[a\\-b]", "[-a]",
					"[z-a]", "\\*", "\\!", "\\#", "\\a")
			}
		}
		parts = append(parts, part)
	}
	return pick(r, "", "", "", "!") + pick(r, "", "", "/") + strings.Join(parts, "/") + pick(r, "", "", "/")
}

// FuzzPaths searches for patterns that compile and fail, and for a pattern that does not match the path it names.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"src/", "/a/**/b", "[a-z]*", `\#x\`, "[!a]", "**", "a/[]-]/?", "[é-ü]x", "***/a"} {
		f.Add(seed, "src/a/b")
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		p, err := NewPaths(glob)
		if err != nil {
			return
		}
		p.Match(path)
		if !Overlap(p, p, nil) && len(p.named) > 0 && !strings.ContainsAny(glob, "[") {
			t.Errorf("%q does not take %q", glob, p.named)
		}
	})
}

func BenchmarkOverlap(b *testing.B) {
	var tree []string
	for i := range 20_000 {
		tree = append(tree, fmt.Sprintf("pkg%d/sub%d/file%d.go", i%200, i%2000, i))
	}
	for b.Loop() {
		var tasks []*Paths
		for i := range 50 {
			tasks = append(tasks, mustPaths(b, fmt.Sprintf("pkg%d/sub%d/", i, i), fmt.Sprintf("docs/%d*.md", i),
				fmt.Sprintf("*_%d_test.go", i)))
		}
		for i, one := range tasks[1:] {
			if Overlap(tasks[i], one, tree) {
				b.Fatal("they overlap")
			}
		}
	}
}
