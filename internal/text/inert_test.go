package text

import (
	"regexp"
	"testing"
)

func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"Fixes #1, closes: #23 and o/r#4":        "Fixes # 1, closes: # 23 and o/r# 4",
		"Closes #1, #2 and #3. See #4":           "Closes # 1, # 2 and # 3. See #4",
		"Fixes issue\n#5":                        "Fixes issue\n# 5",
		"Resolves GH-7":                          "Resolves GH- 7",
		"fixed https://h/o/r/issues/12":          "fixed https://h/o/r/issues/ 12",
		"Closes PROJ-12 and PROJ-13":             "Closes PROJ- 12 and PROJ- 13",
		"implements group/project!12":            "implements group/project! 12",
		"No index[no] [skip ci] [ci skip]":       "No index[no] [ skip ci] [ ci skip]",
		"[skip_ci] [no ci] [skip netlify]":       "[ skip_ci] [ no ci] [ skip netlify]",
		"***NO_CI***":                            "*** NO_CI***",
		"Refs #7, see GH-8 and PROJ-9":           "Refs #7, see GH-8 and PROJ-9",
		"Ran pytest: 2 passed.\nFixes: none":     "Ran pytest: 2 passed.\nFixes: none",
		"Adds a parser. It takes C# and UTF-8.":  "Adds a parser. It takes C# and UTF-8.",
		"See https://example.org/a: it says so.": "See https://example.org/a: it says so.",
		"fixed utf-8 by hand":                    "fixed utf-8 by hand",
		"fixed 3/4 of the tests":                 "fixed 3/4 of the tests",
		"fixes a/b.go:12":                        "fixes a/b.go:12",
		"[no index] # Heading\n- item: a":        "[no index] # Heading\n- item: a",
	} {
		if got := Inert(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzInert(f *testing.F) {
	acts := regexp.MustCompile(`(?i)\b(?:fix(?:es)?|close[sd]?) (#|GH-)\d|\[skip ci\]|\*\*\*NO_CI\*\*\*`)
	f.Add("Fixes #1")
	f.Add("fixes #1, #2 [skip ci]")
	f.Fuzz(func(t *testing.T, s string) {
		once := Inert(s)
		if m := acts.FindString(once); m != "" {
			t.Fatalf("%q is left in %q", m, once)
		}
		if again := Inert(once); again != once {
			t.Fatalf("%q becomes %q", once, again)
		}
	})
}
