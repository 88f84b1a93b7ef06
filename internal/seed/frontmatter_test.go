package seed

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestFrontmatterValues(t *testing.T) {
	cases := map[string]string{
		`title: Add it`:                         "Add it",
		`title: Add it # a comment`:             "Add it",
		`title: issue#5`:                        "issue#5",
		`title: # nothing`:                      "",
		`title: "Add: \"it\""`:                  `Add: "it"`,
		`title: "a\tb\\n \u00e9\x21\U0001F600"`: "a\tb\\n é!😀",
		`title: "C:\dir" # comment`:             `"C:\dir"`,
		`title: 'it''s # here'`:                 "it's # here",
		`title: "Add" and "more"`:               `"Add" and "more"`,
		`title: "open`:                          `"open`,
		`"title": quoted key`:                   "quoted key",
		`'title': quoted key`:                   "quoted key",
		"title:\n  on the next\n  line":         "on the next line",
		"title: on this\n  and the next":        "on this and the next",
		"title: >\n  folded\n  text\n\n  more":  "folded text\nmore",
		"title: >-  # folded\n  text":           "text",
		"title: |\n  literal\n    text":         "literal\n  text",
		"title: |2-\n  literal":                 "literal",
		"title: \"quoted\n  over \\\n  lines\"": "quoted over lines",
		"title: 'quoted\n\n  over lines'":       "quoted\nover lines",
		"other:\n  title: nested\ntitle: outer": "outer",
		"other:\n- title: item\ntitle: outer":   "outer",
	}
	for front, want := range cases {
		keys, body, line := splitFrontmatter("---\n" + front + "\n---\nbody")
		got := ""
		for _, k := range keys {
			if k.key == "title" {
				got = k.value.Str
			}
		}
		if got != want || body != "body" || line != strings.Count(front, "\n")+4 {
			t.Errorf("%s\ngot %q (%q in line %d), want %q", front, got, body, line, want)
		}
	}
}

func TestFrontmatterLists(t *testing.T) {
	for front, want := range map[string]string{
		"needs: [T-001, \"T-002\", 'T-003'] # c":    "T-001|T-002|T-003",
		"needs: [T-001,\n  T-002,\n]":               "T-001|T-002",
		"needs: []":                                 "",
		"needs:\n  - T-001\n  # c\n  - \"T-002\"":   "T-001|T-002",
		"needs: # which\n- T-001\n- >\n  T-\n  002": "T-001|T- 002",
	} {
		keys, _, _ := splitFrontmatter("---\n" + front + "\n---\n")
		if len(keys) != 1 || !keys[0].value.IsArray() || joined(keys[0].value) != want {
			t.Errorf("%s: %+v, want %s", front, keys, want)
		}
	}
	keys, _, _ := splitFrontmatter("---\ntitle: [wip] Add it\n---\n")
	if keys[0].value.Str != "[wip] Add it" {
		t.Errorf("%+v", keys)
	}
}

func joined(list gjson.Result) string {
	said, _ := words(list)
	return strings.Join(said, "|")
}

// FuzzFrontmatter: any block gives keys with existing lines, or one clear error; the body is the rest.
func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{
		"id: T-001\ntitle: \"a\\u00e9\"", "a: >\n  b\n\n c", "a: |2\n  b", "'a': 'b\n  c'", "a:\n- b\n-\n  c",
		"a: [b, \"c\"]", "a: \"\\", "\"", "a: [",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, front string) {
		text := "---\n" + front + "\n---\nbody"
		keys, body, line := splitFrontmatter(text)
		if !strings.HasSuffix(text, body) || line < 1 || line > strings.Count(text, "\n")+1 {
			t.Errorf("%q in line %d", body, line)
		}
		for _, k := range keys {
			if k.line < 2 || k.line >= line {
				t.Errorf("%+v", k)
			}
		}
	})
}

// FuzzMarkdown: every line of a parsed task is a line of the text.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"- [ ] a\n<!--\n- [ ] b\n-->", "```\n<!--\n```", "<!-->", "`<!--` -->", "a <!-- b",
		"# h #\n~~~~\n~~~", "### Task 1: a\n- [x] b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		last := 0
		parseMarkdown("x", text, 1).root.within(func(b *block) bool {
			if b.begin < last || b.end < b.begin || b.end > lines {
				t.Fatalf("%+v", b)
			}
			last = b.begin
			return true
		})
	})
}

// A text of hundreds of thousands of lines is joined in one pass over them.
func TestManyLines(t *testing.T) {
	lines := slices.Repeat([]string{" word"}, 400_000)
	for _, head := range []string{"", "a: b: c\n"} { // YAML and other text
		keys, _, _ := splitFrontmatter("---\n" + head + "title: a\n" + strings.Join(lines, "\n") + "\n---\n")
		if got := keys[len(keys)-1].value.Str; len(strings.Fields(got)) <= len(lines) {
			t.Errorf("%d characters", len(got))
		}
	}
	im, err := Import("-", strings.NewReader(strings.Repeat("- [x] word\n  - word\n", 100_000)), false)
	if err != nil || im.Done != 100_000 {
		t.Error(err)
	}
}
