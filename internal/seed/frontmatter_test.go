package seed

import (
	"slices"
	"strings"
	"testing"
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
		"title: one # c\n  two":                 "one two",
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
		keys, body, line, err := splitFrontmatter("x", "---\n"+front+"\n---\nbody")
		got := ""
		for _, k := range keys {
			if k.key == "title" {
				got = k.value
			}
		}
		if err != nil || got != want || body != "body" || line != strings.Count(front, "\n")+4 {
			t.Errorf("%s\ngot %q (%q in line %d, %v), want %q", front, got, body, line, err, want)
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
		keys, _, _, err := splitFrontmatter("x", "---\n"+front+"\n---\n")
		if err != nil || len(keys) != 1 || strings.Join(keys[0].list, "|") != want || keys[0].value != "" {
			t.Errorf("%s: %+v %v, want %s", front, keys, err, want)
		}
	}
	keys, _, _, _ := splitFrontmatter("x", "---\ntitle: [wip] Add it\n---\n")
	if keys[0].value != "[wip] Add it" {
		t.Errorf("%+v", keys)
	}
}

// FuzzFrontmatter: any block gives keys with existing lines, or one clear error, and the body is the rest.
func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{
		"id: T-001\ntitle: \"a\\u00e9\"", "a: >\n  b\n\n c", "a: |2\n  b", "'a': 'b\n  c'", "a:\n- b\n-\n  c",
		"a: [b, \"c\"]", "a: \"\\", "\"", "a: [",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, front string) {
		text := "---\n" + front + "\n---\nbody"
		keys, body, line, err := splitFrontmatter("x", text)
		if err != nil {
			return
		}
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

// FuzzMarkdown: every line that is read is one of the text, with no more than the text has.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"- [ ] a\n<!--\n- [ ] b\n-->", "```\n<!--\n```", "<!-->", "`<!--` -->", "a <!-- b",
		"# h #\n~~~~\n~~~", "### Task 1: a\n- [x] b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		last := 0
		for _, l := range scanMarkdown(text, 1) {
			if l.n <= last || l.n > len(lines) || len(l.raw) > len(lines[l.n-1]) {
				t.Fatalf("%+v", l)
			}
			last = l.n
			if l.heading > 6 || (l.box && !l.bullet) || (l.fenced && (l.bullet || l.heading > 0)) {
				t.Fatalf("%+v", l)
			}
		}
	})
}

// A text of hundreds of thousands of lines is joined in one pass over them.
func TestManyLines(t *testing.T) {
	lines := slices.Repeat([]string{" word"}, 400_000)
	for _, head := range []string{"", "@"} { // YAML, and none
		if got, _ := frontValue(head, lines); len(strings.Fields(got)) < len(lines) {
			t.Errorf("%d characters", len(got))
		}
	}
	list := criteriaList{}
	list.add(mdLine{bullet: true, text: "word"})
	for range lines[1:] {
		list.add(mdLine{text: "word"})
	}
	if got := list.done(); len(got) != 1 || len(got[0]) != 5*len(lines)-1 {
		t.Errorf("%d criteria", len(got))
	}
}
