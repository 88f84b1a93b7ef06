package seed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Bundle is a whole seed: what write_seed proposes, or what an import found.
type Bundle struct {
	Tasks []session.Task
	// TestFiles maps slash-separated paths relative to the worktree to contents.
	TestFiles map[string]string
	// Meta says who made the bundle, when and out of what, and holds its notes; it becomes seed-meta.json.
	Meta session.SeedMeta

	// faults are the broken rules that only the raw form shows (an unknown or
	// repeated key, a status, a wrong type). Check reports them with the rest.
	faults []Violation
}

// Violation is one broken rule. Rule is a short, stable name; Message is a
// sentence that says what broke it and what would mend it.
type Violation struct {
	Rule    string
	Message string
}

func (v Violation) String() string { return v.Rule + ": " + v.Message }

// Explain renders violations as a list, one a line, at most max of them (0 means all).
func Explain(vs []Violation, max int) string {
	var b bytes.Buffer
	for i, v := range vs {
		if max > 0 && i == max {
			fmt.Fprintf(&b, "- and %d more\n", len(vs)-max)
			break
		}
		fmt.Fprintf(&b, "- %s\n", v)
	}
	return b.String()
}

// ErrNotObject says that write_seed's arguments are no JSON object.
var ErrNotObject = errors.New(
	"the arguments are not one JSON object with the keys prd_entries, test_files, " +
		"tldr, open_questions, blockers and scope_notes",
)

// maxArguments bounds what is parsed at all: a little above the sum of the
// limits that Check holds a bundle to, since JSON escapes take room.
const maxArguments = 4 * maxTotalBytes

// bundleKeys are the arguments of write_seed.
var bundleKeys = []string{"prd_entries", "test_files", "tldr", "open_questions", "blockers", "scope_notes"}

// entryKeys are the keys that a proposed prd entry may have. Status is known
// as well, and refused with a rule of its own.
var entryKeys = []string{"id", "title", "description", "acceptance_criteria", "needs"}

// ParseBundle reads write_seed's arguments. It fails only if they are no JSON object; every other fault is kept in the
// bundle and reported by Check, so that a model hears of all of them at once.
func ParseBundle(args []byte) (*Bundle, error) {
	b := &Bundle{TestFiles: map[string]string{}}
	if len(args) > maxArguments {
		b.fault("size", "the bundle is %s; a bundle may hold %s in all", byteSize(len(args)), byteSize(maxTotalBytes))
		return b, nil
	}
	if !utf8.Valid(args) {
		b.fault("utf-8", "the arguments are not valid UTF-8")
		return b, nil
	}
	fields, err := objectFields(args)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNotObject, err)
	}
	if hasLoneSurrogate(args) {
		b.fault("utf-8", `the arguments hold half of a surrogate pair (\ud800 to \udfff), which is no UTF-8 text`)
	}
	b.checkKeys("the bundle", fields, bundleKeys)
	for _, f := range fields {
		b.readField(f)
	}
	if !hasKey(fields, "prd_entries") {
		b.fault("shape", "prd_entries is missing: it is the list of tasks")
	}
	return b, nil
}

func (b *Bundle) fault(rule, format string, args ...any) {
	if len(b.faults) < maxViolations {
		b.faults = append(b.faults, violation(rule, format, args...))
	}
}

func (b *Bundle) readField(f field) {
	switch f.key {
	case "prd_entries":
		b.readEntries(f.raw)
	case "test_files":
		b.readTestFiles(f.raw)
	case "tldr":
		b.readString("tldr", f.raw, &b.Meta.TLDR)
	case "open_questions":
		b.readNotes(f.key, f.raw, &b.Meta.OpenQuestions)
	case "blockers":
		b.readNotes(f.key, f.raw, &b.Meta.Blockers)
	case "scope_notes":
		b.readNotes(f.key, f.raw, &b.Meta.ScopeNotes)
	}
}

func (b *Bundle) readEntries(raw json.RawMessage) {
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil || entries == nil {
		b.fault("shape", "prd_entries is not a list of objects")
		return
	}
	for i, e := range entries {
		if i == maxTasks {
			b.fault("too-many-tasks", "the seed has %d tasks; at most %d are taken: split the feature", len(entries),
				maxTasks)
			return
		}
		b.readEntry(i, e)
	}
}

func (b *Bundle) readEntry(i int, raw json.RawMessage) {
	where := fmt.Sprintf("entry %d", i+1)
	fields, err := objectFields(raw)
	if err != nil {
		b.fault("shape", "%s of prd_entries is not an object", where)
		return
	}
	var t session.Task
	for _, f := range fields {
		if f.key == "id" {
			b.readString("the id of "+where, f.raw, &t.ID)
		}
	}
	if t.ID != "" {
		where = quoteShort(t.ID)
	}
	if hasKey(fields, "status") {
		b.fault("status", "%s has a status; only the harness writes it: leave the key out", where)
	}
	b.checkKeys(where, fields, append([]string{"status"}, entryKeys...))
	for _, f := range fields {
		switch f.key {
		case "title":
			b.readString("the title of "+where, f.raw, &t.Title)
		case "description":
			b.readString("the description of "+where, f.raw, &t.Description)
		case "acceptance_criteria":
			b.readStrings("acceptance_criteria of "+where, f.raw, &t.AcceptanceCriteria)
		case "needs":
			b.readStrings("needs of "+where, f.raw, &t.Needs)
		}
	}
	b.Tasks = append(b.Tasks, t)
}

func (b *Bundle) readTestFiles(raw json.RawMessage) {
	if isNull(raw) {
		return
	}
	fields, err := objectFields(raw)
	if err != nil {
		b.fault("shape", "test_files is not an object that maps paths to contents")
		return
	}
	for _, f := range fields {
		if _, ok := b.TestFiles[f.key]; ok {
			b.fault("duplicate", "test_files names %s twice", quoteShort(f.key))
			continue
		}
		var content string
		b.readString("the content of "+quoteShort(f.key), f.raw, &content)
		b.TestFiles[f.key] = content
	}
}

func (b *Bundle) readString(what string, raw json.RawMessage, into *string) {
	if isNull(raw) {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		b.fault("shape", "%s is not a string", what)
	}
}

func (b *Bundle) readStrings(what string, raw json.RawMessage, into *[]string) {
	if isNull(raw) {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		b.fault("shape", "%s is not a list of strings", what)
		*into = nil
	}
}

// readNotes is readStrings for what is only shown: one string is a list of one, and an empty one of none.
func (b *Bundle) readNotes(what string, raw json.RawMessage, into *[]string) {
	var one string
	if isNull(raw) || json.Unmarshal(raw, &one) != nil {
		b.readStrings(what, raw, into)
	} else if strings.TrimSpace(one) != "" {
		*into = []string{one}
	}
}

// checkKeys reports unknown keys, and known ones that come twice.
func (b *Bundle) checkKeys(where string, fields []field, known []string) {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key] {
			b.fault("duplicate", "%s has the key %s twice", where, quoteShort(f.key))
		}
		seen[f.key] = true
		if !slices.Contains(known, f.key) {
			b.fault("unknown-key", "%s has an unknown key %s", where, quoteShort(f.key))
		}
	}
}

// testPaths lists the test files in a stable order.
func (b *Bundle) testPaths() []string {
	return slices.Sorted(maps.Keys(b.TestFiles))
}
