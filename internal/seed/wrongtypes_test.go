package seed

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// goWords are words of a program that a list never has.
var goWords = regexp.MustCompile(`json: |yaml: |unmarshal|Unmarshal|float64|\bGo\b|struct|map\[|interface|\[\][a-z]|%!|<nil>|nil\b`)

// TestWrongTypes gives every key of every JSON format, and of a front matter, values of other types.
func TestWrongTypes(t *testing.T) {
	values := []string{`1e308`, `-0.5`, `true`, `{}`, `{"a":{"b":[1]}}`, `[]`, `[[1,[2]]]`, `[true]`, `[{"x":1}]`,
		`"x"`, `""`, `null`, `[null,""]`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)}
	shapes := map[string]string{
		"prd.json": `[
{"id":"T-001","title":"A","acceptance_criteria":["a"],
 KEY:VALUE}]`,
		"ralph.json": `{"userStories":[
{"id":"US-1","title":"A","acceptanceCriteria":["a"],"passes":false,
 KEY:VALUE}]}`,
		"top.json": `{"project":"P",
 KEY:VALUE,
"userStories":[{"id":1,"title":"A"}]}`,
		"tasks.json": `{"master":{"tasks":[
{"id":1,"title":"A","status":"pending",
 KEY:VALUE}]}}`,
		"issues.json": `[
{"number":1,"title":"A","body":"b",
 KEY:VALUE}]`,
		"b.jsonl": `{"id":"bd-1","title":"A","status":"open"}
{"id":"bd-2","title":"B",KEY:VALUE}`,
		"seed.json": `{"prd_entries":[{"id":"T-001","title":"A","acceptance_criteria":["a"]}],
KEY:VALUE}`,
		"T-001-a.md": "---\ntitle: A\nKEY: VALUE\n---\n## Acceptance criteria\n- a\n",
		"todo.md":    "---\nKEY: VALUE\n---\n- [ ] A\n",
	}
	keys := []string{"userStories", "tasks", "prd_entries", "test_files", "tldr", "scope_notes", "project", "metadata",
		"acceptance_criteria", "owner", "depends_on"}
	for key := range taskKeys {
		keys = append(keys, key)
	}
	for name, shape := range shapes {
		for i, key := range keys {
			for _, value := range values {
				if len(value) > 1000 && i%8 != 0 {
					continue
				}
				text := strings.Replace(strings.Replace(shape, "KEY", `"`+key+`"`, 1), "VALUE", value, 1)
				im, err := importReader(name, strings.NewReader(text), false)
				if err != nil {
					var ie *ImportError
					whole := strings.Contains(text, "prd_entries") // is refused as a whole
					if !errors.As(err, &ie) || ie.Fix == "" || goWords.MatchString(ie.Msg) || len(ie.Msg) > 1000 ||
						ie.Line == 0 && !whole && !strings.Contains(ie.Msg, "no tasks") {
						t.Errorf("%s %s %.40s: %v", name, key, value, err)
					}
					continue
				}
				for _, line := range im.Dropped {
					if goWords.MatchString(line) {
						t.Errorf("%s %s %.40s: %s", name, key, value, line)
					}
				}
			}
		}
	}
}

// TestBrokenTexts gives every format texts that are truncated or have a changed byte.
func TestBrokenTexts(t *testing.T) {
	for name, text := range map[string]string{
		"prd.json":   `[{"id":"T-001","title":"A","acceptance_criteria":["a"],"needs":[]}]`,
		"ralph.json": `{"userStories":[{"id":"US-1","title":"A","acceptanceCriteria":["a"],"priority":1e3}]}`,
		"b.jsonl":    `{"id":"bd-1","title":"A"}` + "\n" + `{"id":"bd-2","title":"B"}` + "\n",
		"T-001-a.md": "---\ntitle: \"A: b\"\nneeds: [T-002, \"x\"]\nscope: >\n  a\n---\n## Acceptance criteria\n- a\n",
		"todo.md":    "---\ntitle: a\n\t- b: [\n---\n- [ ] A\n  ```\n  - [ ] b\n",
	} {
		for i := 1; i < len(text); i++ {
			for _, broken := range []string{text[:i], text[:i] + "{" + text[i+1:], text[:i] + "\"" + text[i+1:],
				text[:i] + "\x01" + text[i:]} {
				_, err := importReader(name, strings.NewReader(broken), false)
				var ie *ImportError
				if err != nil && (!errors.As(err, &ie) || goWords.MatchString(err.Error()) || ie.Fix == "") {
					t.Errorf("%q: %v", broken, err)
				}
			}
		}
	}
}
