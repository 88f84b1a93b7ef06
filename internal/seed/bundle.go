package seed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Bundle is a whole seed, proposed by write_seed or imported.
type Bundle struct {
	Tasks     []session.Task
	TestFiles map[string]string // maps slash-separated paths relative to the worktree to contents
	// Meta has the bundle's author, time, origin and notes; it becomes seed-meta.json.
	Meta session.SeedMeta

	// faults are the broken rules that only the raw form shows (an unknown or repeated key, a wrong type). Check
	// reports them with the rest.
	faults violations
}

// Violation is one broken rule. Rule is a short, stable name; Message is a sentence with the fault and its fix.
type Violation struct {
	Rule    string
	Message string
}

func (v Violation) String() string { return v.Rule + ": " + v.Message }

// violations are the findings so far.
type violations []Violation

func (vs *violations) add(rule, format string, args ...any) { vs.put(one(rule, format, args...)) }

func (vs *violations) put(more violations) { *vs = append(*vs, more...) }

// one returns a list with one violation.
func one(rule, format string, args ...any) violations {
	return violations{{Rule: rule, Message: fmt.Sprintf(format, args...)}}
}

// Explain renders violations as a list, one per line, at most max of them.
func Explain(vs []Violation, max int) string {
	var b strings.Builder
	for _, v := range vs[:min(max, len(vs))] {
		fmt.Fprintf(&b, "- %s\n", v)
	}
	if len(vs) > max {
		fmt.Fprintf(&b, "- and %d more\n", len(vs)-max)
	}
	return b.String()
}

// bundleKeys are the arguments of write_seed.
var bundleKeys = []string{"prd_entries", "test_files", "tldr", "open_questions", "blockers", "scope_notes"}

// entryKeys are the keys that a proposed prd entry may have; only the harness writes a status.
var entryKeys = []string{"id", "title", "description", "acceptance_criteria", "needs", "touches", "type", "scope"}

// parseBundle reads write_seed's arguments. It fails only if they are not a JSON object. Check reports every other
// fault, so that a model gets all of them at once.
func parseBundle(args []byte) (*Bundle, error) {
	b := &Bundle{TestFiles: map[string]string{}}
	err, whole := json.Unmarshal(args, new(json.RawMessage)), gjson.ParseBytes(args)
	if err == nil && !whole.IsObject() {
		err = errors.New("not a JSON object")
	}
	if err != nil {
		return nil, fmt.Errorf("the arguments are not one JSON object with the keys %s: %w",
			strings.Join(bundleKeys, ", "), err)
	}
	given := fieldsOf(whole, 1)
	b.checkKeys("the bundle", given, bundleKeys)
	entries := given.get("prd_entries")
	if !entries.IsArray() {
		b.faults.add("shape", "prd_entries is not a list of objects: it is the list of tasks")
	}
	for i, e := range fieldsOf(entries, 1) {
		t, err := parseTask([]byte(e.value.Raw))
		where := quoteShort(cmp.Or(t.ID, fmt.Sprint("entry ", i+1)))
		if err != nil {
			b.faults.add("shape", "%s is not a task: %s", where, err)
		}
		b.checkKeys(where, fieldsOf(e.value, 1), entryKeys)
		b.Tasks = append(b.Tasks, t)
	}
	files := given.get("test_files")
	b.checkKeys("test_files", fieldsOf(files, 1), nil)
	b.read("test_files", "an object that maps paths to contents", files, &b.TestFiles)
	b.read("tldr", "a string", given.get("tldr"), &b.Meta.TLDR)
	b.Meta.OpenQuestions = b.notes("open_questions", given)
	b.Meta.Blockers = b.notes("blockers", given)
	b.Meta.ScopeNotes = b.notes("scope_notes", given)
	return b, nil
}

// notes reads a list of texts, or one text.
func (b *Bundle) notes(key string, given fields) []string {
	said, ok := words(given.get(key))
	if !ok {
		b.faults.add("shape", "%s is not a list of strings", key)
	}
	return said
}

// read decodes a value, unless it is missing or null.
func (b *Bundle) read(what, kind string, v gjson.Result, into any) {
	if v.Exists() && json.Unmarshal([]byte(v.Raw), into) != nil {
		b.faults.add("shape", "%s is not %s", what, kind)
	}
}

// checkKeys reports repeated and unknown keys; with nil all keys are known.
func (b *Bundle) checkKeys(where string, given fields, known []string) {
	for _, f := range given.repeated() {
		b.faults.add("duplicate", "%s has the key %s twice", where, quoteShort(f.key))
	}
	for _, f := range given {
		if known != nil && !slices.Contains(known, f.key) {
			b.faults.add("unknown-key", "%s has an unknown key %s", where, quoteShort(f.key))
		}
	}
}

// WithTasks returns the bundle with the user's edited plan, without the tests of removed tasks.
func (b *Bundle) WithTasks(plan []byte) (*Bundle, error) {
	tasks, err := session.ParseTasks(plan)
	if err != nil {
		return nil, err
	}
	changed := &Bundle{Tasks: tasks, TestFiles: maps.Clone(b.TestFiles), Meta: b.Meta}
	maps.DeleteFunc(changed.TestFiles, func(p, _ string) bool {
		id, _ := taskOf(p)
		return session.IndexOf(tasks, id) < 0
	})
	return changed, nil
}

// testPaths lists the test files in a stable order.
func (b *Bundle) testPaths() []string {
	return slices.Sorted(maps.Keys(b.TestFiles))
}
