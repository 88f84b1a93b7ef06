package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Bundle is a whole seed, proposed by write_seed or imported.
type Bundle struct {
	Tasks     []session.Task
	TestFiles map[string]string // maps slash-separated paths relative to the worktree to contents
	// Meta has the bundle's author, time, origin and notes; it becomes seed-meta.json.
	Meta session.SeedMeta

	// faults are the broken rules that only the raw form shows (an unknown or
	// repeated key, a status, a wrong type). Check reports them with the rest.
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

func (vs *violations) put(more violations) {
	*vs = append(*vs, more[:min(len(more), max(maxViolations-len(*vs), 0))]...)
}

// one is a judgement that came to one violation.
func one(rule, format string, args ...any) violations {
	return violations{{Rule: rule, Message: fmt.Sprintf(format, args...)}}
}

// Explain renders violations as a list, one a line, at most max of them.
func Explain(vs []Violation, max int) string {
	var b bytes.Buffer
	for i, v := range vs {
		if i == max {
			fmt.Fprintf(&b, "- and %d more\n", len(vs)-max)
			break
		}
		fmt.Fprintf(&b, "- %s\n", v)
	}
	return b.String()
}

// maxArguments bounds the parsed input, in bytes. It is above the sum of the limits in Check, because JSON escapes take
// room.
const maxArguments = 4 * maxTotalBytes

// bundleKeys are the arguments of write_seed.
var bundleKeys = []string{"prd_entries", "test_files", "tldr", "open_questions", "blockers", "scope_notes"}

// entryKeys are the keys that a proposed prd entry may have. Status is known
// as well, and refused with a rule of its own.
var entryKeys = []string{"id", "title", "description", "acceptance_criteria", "needs", "touches", "type", "scope"}

// parseBundle reads write_seed's arguments. It fails only if they are no JSON object; every other fault is kept in the
// bundle and reported by Check, so that a model hears of all of them at once.
func parseBundle(args []byte) (*Bundle, error) {
	b := &Bundle{TestFiles: map[string]string{}}
	if len(args) > maxArguments {
		b.faults.add("size", "the bundle is %s; a bundle may hold %s in all", byteSize(len(args)),
			byteSize(maxTotalBytes))
		return b, nil
	}
	if !utf8.Valid(args) {
		b.faults.add("utf-8", "the arguments are not valid UTF-8")
		return b, nil
	}
	given, err := objectFields(args)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not one JSON object with the keys prd_entries, test_files, tldr, "+
			"open_questions, blockers and scope_notes: %w", err)
	}
	if !pairedSurrogates().Match(args) {
		b.faults.add("utf-8", `the arguments hold half of a surrogate pair (\ud800 to \udfff), which is no UTF-8 text`)
	}
	b.checkKeys("the bundle", given, bundleKeys)
	if entries := given.get("prd_entries"); entries != nil {
		b.readEntries(entries)
	} else {
		b.faults.add("shape", "prd_entries is missing: it is the list of tasks")
	}
	b.readTestFiles(given.get("test_files"))
	b.Meta.TLDR = read[string](b, "tldr", given.get("tldr"))
	b.Meta.OpenQuestions = b.readNotes("open_questions", given)
	b.Meta.Blockers = b.readNotes("blockers", given)
	b.Meta.ScopeNotes = b.readNotes("scope_notes", given)
	return b, nil
}

func (b *Bundle) readEntries(raw json.RawMessage) {
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil || entries == nil {
		b.faults.add("shape", "prd_entries is not a list of objects")
		return
	}
	for i, e := range entries {
		if i == maxTasks {
			b.faults.add("too-many-tasks", "the seed has %d tasks; at most %d are taken: split the feature",
				len(entries), maxTasks)
			return
		}
		b.readEntry(i, e)
	}
}

func (b *Bundle) readEntry(i int, raw json.RawMessage) {
	where := fmt.Sprintf("entry %d", i+1)
	given, err := objectFields(raw)
	if err != nil {
		b.faults.add("shape", "%s of prd_entries is not an object", where)
		return
	}
	t := session.Task{ID: read[string](b, "the id of "+where, given.get("id"))}
	if t.ID != "" {
		where = quoteShort(t.ID)
	}
	if given.get("status") != nil {
		b.faults.add("status", "%s has a status; only the harness writes it: leave the key out", where)
	}
	b.checkKeys(where, given, append([]string{"status"}, entryKeys...))
	t.Title = read[string](b, "the title of "+where, given.get("title"))
	t.Description = read[string](b, "the description of "+where, given.get("description"))
	t.AcceptanceCriteria = read[[]string](b, "acceptance_criteria of "+where, given.get("acceptance_criteria"))
	t.Needs = read[[]string](b, "needs of "+where, given.get("needs"))
	t.Touches = read[[]string](b, "touches of "+where, given.get("touches"))
	t.Type = read[string](b, "the type of "+where, given.get("type"))
	t.Scope = read[string](b, "the scope of "+where, given.get("scope"))
	b.Tasks = append(b.Tasks, t)
}

func (b *Bundle) readTestFiles(raw json.RawMessage) {
	if isNull(raw) {
		return
	}
	given, err := objectFields(raw)
	if err != nil {
		b.faults.add("shape", "test_files is not an object that maps paths to contents")
		return
	}
	for _, f := range given {
		if _, ok := b.TestFiles[f.key]; ok {
			b.faults.add("duplicate", "test_files names %s twice", quoteShort(f.key))
			continue
		}
		b.TestFiles[f.key] = read[string](b, "the content of "+quoteShort(f.key), f.raw)
	}
}

// read decodes a string or a list of strings, or nothing if it is missing or null.
func read[T string | []string](b *Bundle, what string, raw json.RawMessage) (value T) {
	if isNull(raw) || json.Unmarshal(raw, &value) == nil {
		return value
	}
	kind := "a string"
	if _, isList := any(value).([]string); isList {
		kind = "a list of strings"
	}
	b.faults.add("shape", "%s is not %s", what, kind)
	return *new(T)
}

// readNotes reads a list that is only shown: one string is a list of one, and an empty one of none.
func (b *Bundle) readNotes(key string, given fields) []string {
	raw, one := given.get(key), ""
	switch {
	case isNull(raw) || json.Unmarshal(raw, &one) != nil:
		return read[[]string](b, key, raw)
	case strings.TrimSpace(one) == "":
		return nil
	}
	return []string{one}
}

// checkKeys reports unknown keys, and known ones that come twice.
func (b *Bundle) checkKeys(where string, given fields, known []string) {
	for _, key := range given.repeated() {
		b.faults.add("duplicate", "%s has the key %s twice", where, quoteShort(key))
	}
	for _, f := range given {
		if !slices.Contains(known, f.key) {
			b.faults.add("unknown-key", "%s has an unknown key %s", where, quoteShort(f.key))
		}
	}
}

// WithTasks is the bundle with its plan as a person edited it, without the tests of tasks that are gone.
func (b *Bundle) WithTasks(plan []byte) (*Bundle, error) {
	tasks, err := session.ParseTasks(plan)
	if err != nil {
		return nil, err
	}
	changed := &Bundle{Tasks: tasks, TestFiles: map[string]string{}, Meta: b.Meta}
	for p, content := range b.TestFiles {
		id, _ := taskOf(p)
		if session.IndexOf(tasks, id) >= 0 {
			changed.TestFiles[p] = content
		}
	}
	return changed, nil
}

// testPaths lists the test files in a stable order.
func (b *Bundle) testPaths() []string {
	return slices.Sorted(maps.Keys(b.TestFiles))
}
