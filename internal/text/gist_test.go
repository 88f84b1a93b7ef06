package text

import (
	"strings"
	"testing"
)

func TestSaySame(t *testing.T) {
	long := strings.Repeat("line of a linter\n", 200)
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"subject must begin with feat", "\x1b[31msubject\x1b[0m must  begin with feat\n", true},
		{"done in 0.31s, 12 files", "done in 4.12s, 9 files", true},
		{"see /tmp/abc", "see /tmp/xyz", true},
		{"see /var/folders/ab/T/x.log", "see /var/folders/cd/T/y.log", true},
		{"a.go is not formatted", "b.go is not formatted", false},
		{long + "and more", long + "\n[... 40 more characters]", true},
		{"short", "short, and more", false},
		{"", "it says something", false},
	} {
		if got := SaySame(c.a, c.b); got != c.same {
			t.Errorf("%.40q, %.40q: %v", c.a, c.b, got)
		}
	}
}

func FuzzGist(f *testing.F) {
	f.Add("✖ 12 problems (0.3 s), see /tmp/x \x1b[31mred\x1b[0m \xff")
	f.Fuzz(func(t *testing.T, s string) {
		gist := Gist(s)
		if again := Gist(gist); again != gist {
			t.Fatalf("%q says %q, and that says %q", s, gist, again)
		}
		later := []byte(s)
		for i, b := range later {
			if b >= '0' && b <= '9' {
				later[i] = '0' + (b-'0'+1)%10
			}
		}
		if !SaySame(s, string(later)) {
			t.Fatalf("%q is not %q", Gist(string(later)), gist)
		}
	})
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"short", "short"},
		{"one two three", "one two\nthree"},
		{"- one two three", "- one\n  two\n  three"},
		{"a\n\nunbreakable-word b", "a\n\nunbreakable-word\nb"},
		{"    code", "    code"},
		{"- unbreakable-word b", "- unbreakable-word\n  b"},
		{"a  b  c  d", "a  b  c\nd"},
		{"  one two", "  one\n  two"},
	} {
		if got := Wrap(c.in, 7); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}
