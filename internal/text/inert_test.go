package text

import (
	"regexp"
	"testing"
)

func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"Fixes #1, closes: #23 and o/r#4":        "Fixes # 1, closes: # 23 and o/r# 4",
		"Resolves GH-7":                          "Resolves GH 7",
		"fixed https://h/o/r/issues/12":          "fixed https://h/o/r/issues/ 12",
		"Closes PROJ-12":                         "Closes PROJ 12",
		"PROJ-1 #close #time 2h":                 "PROJ-1 # close # time 2h",
		"Done.\n\nSigned-off-by: A <a@b>":        "Done.\n\n- Signed-off-by: A <a@b>",
		"Co-authored-by:x\r\nChange-Id: I1":      "- Co-authored-by:x\n\n- Change-Id: I1",
		"  Reviewed-by : y":                      "- Reviewed-by : y",
		"Fixes:\nskip-checks: true":              "- Fixes:\n- skip-checks: true",
		"(cherry picked from commit 12)":         "- (cherry picked from commit 12)",
		"Tilth-Task: T-001":                      "- Tilth-Task: T-001",
		"No index[no] [skip ci] [ci skip]":       "No index[no] (skip ci) (ci skip)",
		"***NO_CI***":                            "(NO_CI)",
		"Adds a parser. It takes C# and UTF-8.":  "Adds a parser. It takes C# and UTF-8.",
		"See https://example.org/a: it says so.": "See https://example.org/a: it says so.",
		"https://example.org/issues says so":     "https://example.org/issues says so",
		"fixed utf-8 by hand":                    "fixed utf-8 by hand",
		"# Heading\n- item: a":                   "# Heading\n- item: a",
	} {
		if got := Inert(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzInert(f *testing.F) {
	acts := regexp.MustCompile(`(?m)#\d|\bGH-\d|/issues/\d|^[A-Za-z][A-Za-z-]*:[ ]|(?i)\[skip ci\]|\*\*\*NO_CI\*\*\*`)
	f.Add("Fixes #1")
	f.Add("a\rSigned-off-by: x")
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
