package text

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisibleLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                        "plain text",
		"tab\tand\nline\r":                  "tab and line ",
		"\x1b[31mred\x07":                   "␛[31mred␇",
		"\x7f":                              "␡",
		"\u009b2J":                          "<U+009B>2J",
		"a\u202eb\u2066c":                   "a<U+202E>b<U+2066>c",
		"zero\u200bwidth\ufeff":             "zero<U+200B>width<U+FEFF>",
		"broken \xff\xfe":                   "broken \uFFFD\uFFFD",
		"line\u2028separator":               "line<U+2028>separator",
		"naïve 日本 👩\u200d🔬":                 "naïve 日本 👩\u200d🔬",
		"a\ufe0f b\ufe01 \U000E0100 \u3164": "a\ufe0f b<U+FE01> <U+E0100> <U+3164>",
		"tag \U000E0041 private \ue000":     "tag <U+E0041> private <U+E000>",
	} {
		if got := VisibleLine(in); got != want {
			t.Errorf("VisibleLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestVisibleKeepsLines(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\tb":             "a\n\tb",
		"dos\r\nline\r\n":    "dos\nline\n",
		"over\rwritten":      "over␍written",
		"\x1b]0;t\x07\nnext": "␛]0;t␇\nnext",
		"a\u202eb":           "a<U+202E>b",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b]0;title\x07 \u202e\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Visible(s), VisibleLine(s)} {
			if !utf8.ValidString(got) {
				t.Fatalf("not UTF-8: %q", got)
			}
		}
		for _, r := range VisibleLine(s) + strings.NewReplacer("\n", "", "\t", "").Replace(Visible(s)) {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}

func TestShortening(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Head("日本語", 2), "日本"}, {Head("ab", 2), "ab"}, {Head("ab", 0), ""},
		{HeadBytes("日本語", 4), "日"}, {HeadBytes("ab", 5), "ab"}, {HeadBytes("日", 1), ""},
		{Clip("日本語", 3), "日本語"}, {Clip("日本語", 2), "日本…"},
		{OneLine(" a\n\t b "), "a b"}, {Plural(1, "task"), "1 task"}, {Plural(0, "task"), "0 tasks"},
		{GlobQuote(`/a[b]*?\`), `/a\[b]\*\?\\`},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.js": "a/b.js", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "é": "'é'",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
	if got := ShellQuote("git", "-C", "a b"); got != "git -C 'a b'" {
		t.Error(got)
	}
}

func TestFailingLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"ok  a 0.1s\n--- FAIL: TestAdd (0.00s)\n    add_test.go:9: got 3\n": "TestAdd: add_test.go:9: got 3",
		"--- FAIL: TestAdd (0.00s)\nFAIL\n":                                 "--- FAIL: TestAdd (0.00s)",
		"F   [100%]\n=== FAILURES ===\n____ test_add ____\n    raise Error(1)\n>   assert 1 == 2\nE   assert 1 == 2\n" +
			"t.py:3: AssertionError\n": "assert 1 == 2",
		"Traceback (most recent call last):\n  File \"a.py\", line 1\n    raise X(1)\nX: 1\n": "X: 1",
		"__ ERROR collecting t.py __\nx.py:1: in f\nE     File \"/j/src/y.py\", line 10\nE       f(\n" +
			"E        ^\nE   SyntaxError: '(' was never closed\n": "/j/src/y.py:10: SyntaxError: '(' was never closed",
		"Traceback (most recent call last):\n  File \"/j/a.py\", line 1, in <module>\n    import b\n" +
			"  File \"/j/b.py\", line 7\n    f(\n     ^\n" +
			"SyntaxError: '(' was never closed\n": "/j/b.py:7: SyntaxError: '(' was never closed",
		"file:///j/a.js:3\nlet a = (\n" +
			"        ^\n\nSyntaxError: Unexpected end\n    at wrapSafe\n": "/j/a.js:3: SyntaxError: Unexpected end",
		"java.lang.IllegalStateException: no table\n\tat a.B.c(B.java:3)\n" +
			"Caused by: a.Closed: no file\n\t... 9 more\n": "Caused by: a.Closed: no file",
		"__ test_a __\nE   KeyError: 'a'\n\nDuring handling\nE   ValueError: b\nE     more\n" +
			"__ test_b __\nE   TypeError\n": "ValueError: b",
		"E       assert 1 == 2\nE        +  where 1 = f()\nE\nE         - x\n": "assert 1 == 2",
		"FAIL: test_a (t.T)\n---\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 1\n\n" +
			"During handling of the above exception, another exception occurred:\n\n" +
			"Traceback (most recent call last):\n  File \"a\"\nValueError: 2\n\n" +
			"FAIL: test_b\nTraceback (most recent call last):\n  File \"a\"\nX: 3\n": "ValueError: 2",
		"/w/a.js:3\n  throw new Error('boom')\n  ^\n\nTypeError: boom\n    at a.js:3\n": "TypeError: boom",
		"\n> errors@1.0.0 test\n> jest\n\n1 failing\n":                                  "1 failing",
		"$ jest\n> errors@1.0.0 test\n":                                                 "",
		"sh: 1: vitest: not found\n":                                                    "sh: 1: vitest: not found",
		"\n-----\nsomething\nmore\n":                                                    "something",
	} {
		if got := FailingLine(in); got != want {
			t.Errorf("of %q: %q, want %q", in, got, want)
		}
	}
}

func TestFailingLineOfGo(t *testing.T) {
	const head = "--- FAIL: TestA (0.00s)\n"
	for in, want := range map[string]string{
		"    --- FAIL: TestA/b (0.00s)\n        a_test.go:7: log\n        a_test.go:8: got 1\n" +
			"--- FAIL: TestC (0.00s)\n    a_test.go:9: got 2\nFAIL\n": "TestA/b: a_test.go:8: got 1",
		"    a_test.go:9: \n        \tError Trace:\t/w/a_test.go:9\n        \t            \t/w/b_test.go:3\n" +
			"        \tError:      \tNot equal: \n        \t            \texpected: 1\n" +
			"        \t            \tactual  : 2\n        \t            \t\n        \t            \tDiff:\n" +
			"        \t            \t--- Expected\n        \tTest:       \tTestA\n": "TestA: a_test.go:9: Not equal: " +
			"expected: 1 actual : 2",
		"panic: boom [recovered]\n\tpanic: boom\n\ngoroutine 7 [running]:\nFAIL\tx\t0.004s\n": "TestA: " +
			"panic: boom [recovered]",
		"FAIL\tx\t0.004s\n": strings.TrimSpace(head),
	} {
		if got := FailingLine(head + in); got != want {
			t.Errorf("of %q: %q, want %q", in, got, want)
		}
	}
}

func TestIsSHA(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "abc": false, "abcd": true, "ABCD": true, "0123456789abcdef0123456789abcdef01234567": true,
		"HEAD": false, "main~0": false, "abcd~1": false, "abcd^": false, "-abc": false, "abcd:x": false,
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef":  true,
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0": false,
	} {
		if got := IsSHA(s); got != want {
			t.Errorf("IsSHA(%q) = %v", s, got)
		}
	}
}

func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"é 世"}`:                   `{"a":"é 世"}`,
		"\"\u202e\u009b31m\x7f\"\n":     `"\u202e\u009b31m\u007f"` + "\n",
		"\"\U000e0041\" \x9b not UTF-8": `"\udb40\udc41"` + " \x9b not UTF-8",
	} {
		if shown, rest := Escaped([]byte(in)); string(shown) != want || len(rest) > 0 {
			t.Errorf("%q becomes %q and %q, want %q", in, shown, rest, want)
		}
		var all, part []byte // written byte by byte
		for i := range len(in) {
			var shown []byte
			shown, part = Escaped(append(part, in[i]))
			all = append(all, shown...)
		}
		if string(all) != want {
			t.Errorf("%q becomes %q in parts, want %q", in, all, want)
		}
	}
}

// JSON for display has no raw character that a terminal does not draw, and its value stays the same.
func FuzzEscaped(f *testing.F) {
	f.Add("a\u202e\u009b b\U000E0041\ufe01\x7f\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		in, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		shown, rest := Escaped(bytes.Clone(in))
		if len(rest) > 0 {
			t.Fatalf("%q is left of %q", rest, in)
		}
		for _, r := range string(shown) {
			if r < 0x20 || isUndrawn(r) {
				t.Fatalf("%U is in %q", r, shown)
			}
		}
		var back, was string
		if json.Unmarshal(shown, &back) != nil || json.Unmarshal(in, &was) != nil || back != was {
			t.Fatalf("%q became %q", in, shown)
		}
		for _, r := range Visible(s) {
			if r < 0x20 && r != '\n' && r != '\t' || isUndrawn(r) {
				t.Fatalf("%U is visible in %q", r, s)
			}
		}
	})
}
