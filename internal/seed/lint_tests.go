package seed

import (
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// language is how the tests of one language assert. Rows, so that a new language is a line.
type language struct {
	endings string // of file names, without the dot
	comment string // begins a comment that goes to the end of the line
	assert  pattern.Regexp
	empty   pattern.Regexp // finds assertions that hold whatever the code does; they are taken off the count
}

var languages = []language{
	{"py", "#",
		pattern.New(`\bassert\b|\.assert\w+\(|\bpytest\.(?:raises|fail|warns)\b|\bself\.fail\(|\.assert_\w+\(|\bassert_\w+\(|\bexpect\(`),
		pattern.New(`(?m)\bassert\s*\(?\s*(?:True|1|"[^"]*"|not\s+False)\s*\)?\s*(?:,.*)?$|\.assertTrue\(\s*True\s*\)`)},
	{"go", "//",
		pattern.New(`\b\w+\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require|is|qt|must|check)\.[A-Z]\w*\(|\bpanic\(|// Output:`),
		pattern.New(`\b(?:assert|require)\.True\(\s*\w+\s*,\s*true\s*[,)]`)},
	{"js mjs cjs jsx ts mts cts tsx vue svelte", "//",
		pattern.New(`\bexpect(?:\.\w+)?\s*\(|\bassert(?:\.\w+)*\s*\(|\b(?:strictEqual|deepEqual|deepStrictEqual|throws|rejects)\s*\(|\bt\.(?:is|not|deepEqual|equal|equals|same|ok|true|false|truthy|falsy|throws|throwsAsync|regex|match|assert\.\w+)\s*\(|\.should\b|\bthrow\s+new\s+\w*Error`),
		pattern.New(`\bexpect\(\s*true\s*\)\.to(?:Be|Equal)\(\s*true\s*\)|\bexpect\(\s*1\s*\)\.to(?:Be|Equal)\(\s*1\s*\)|\bassert(?:\.ok)?\(\s*(?:true|1)\s*\)`)},
	{"rs", "//",
		pattern.New(`\b(?:debug_)?(?:prop_)?assert(?:_\w+)?!|\bpanic!|\bshould_panic\b|\bunreachable!|\binsta::`),
		pattern.New(`\bassert!\(\s*true\s*\)|\bassert_eq!\(\s*1\s*,\s*1\s*\)`)},
	{"rb", "#",
		pattern.New(`\bassert\w*\b|\brefute\w*\b|\bexpect\b|\.should\b|\.must_\w+`),
		pattern.New(`\bassert\(?\s*true\b`)},
	{"java kt kts scala groovy", "//",
		pattern.New(`\bassert\w*\s*[({]?|\bverify\(|\bfail\(|\bshould\w*\b`),
		pattern.New(`\bassertTrue\(\s*true\s*\)`)},
	{"cs", "//",
		pattern.New(`\bAssert\.\w+|\.Should\(|\bVerify\(`),
		pattern.New(`\bAssert\.(?:True|IsTrue)\(\s*true\s*\)`)},
	{"php", "//", pattern.New(`\bassert\w*\(|->expect\w*\(|\bexpect\(`), pattern.New(`\bassertTrue\(\s*true\s*\)`)},
	{"ex exs", "#", pattern.New(`\bassert\w*\b|\brefute\w*\b`), pattern.New(`\bassert\s+true\b`)},
	{"swift", "//",
		pattern.New(`\bXCT(?:Assert\w*|Fail)\(|#expect\(|#require\(`),
		pattern.New(`\bXCTAssertTrue\(\s*true\s*\)`)},
	{"c cc cpp cxx h hpp", "//",
		pattern.New(`\b(?:ASSERT|EXPECT|CHECK|REQUIRE|TEST_ASSERT)\w*\s*\(|\bassert\w*\s*\(|\bck_assert\w*`),
		pattern.New(`\b(?:ASSERT|EXPECT)_TRUE\(\s*true\s*\)`)},
	{"sh bash bats", "#",
		pattern.New(`\[\[? |\btest |\bexit\b|\bassert\w*|\bdiff\b|\bcmp\b|\bgrep\b|\bset -[a-z]*e`),
		nil},
}

func ending(p string) string { return strings.ToLower(strings.TrimPrefix(path.Ext(p), ".")) }

// countAssertions counts what a test asserts; known is false for a language that no row describes. It is a reading of
// the text and may be fooled: its findings are for a person.
func countAssertions(p, text string) (n int, known bool) {
	for _, l := range languages {
		if !slices.Contains(strings.Fields(l.endings), ending(p)) {
			continue
		}
		text = dropComments(text, l.comment)
		n = len(l.assert().FindAllString(text, -1))
		if l.empty != nil {
			n -= len(l.empty().FindAllString(text, -1))
		}
		return max(n, 0), true
	}
	return 0, false
}

// dropComments takes out lines that are comments altogether; a comment behind code is left, since telling it from a
// string would take a parser. Go's "// Output:" is an assertion and stays.
func dropComments(text, mark string) string {
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, l := range lines {
		t := strings.TrimSpace(l)
		if strings.HasPrefix(t, mark) && !strings.HasPrefix(t, "// Output:") && !strings.HasPrefix(t, "#[") &&
			!strings.HasPrefix(t, "#expect") {
			continue
		}
		kept = append(kept, l)
	}
	return strings.Join(kept, "\n")
}
