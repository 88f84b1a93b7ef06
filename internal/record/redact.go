package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Redactor replaces secrets by [redacted:NAME]. A nil Redactor replaces nothing. It is immutable and safe for
// concurrent use.
type Redactor struct {
	// cores are a part of each value that all JSON writers leave as it is. Every message of a run passes through here,
	// several times, and hardly ever is there anything to find: these say so.
	cores []string
	plain []secret // what to look for in text: values as they are, and as JSON has them
	json  []secret // what to look for in JSON: only what can stand inside one of its strings
}

// secret is one spelling of a secret value, and its replacement.
type secret struct{ form, mark string }

// NewRedactor collects the secrets of an environment (NAME=value entries), by the names of the variables, and more:
// secrets known by other means, such as an API key from a credential helper, by the name to show for each.
func NewRedactor(environ []string, more map[string]string) *Redactor {
	found := &collector{byValue: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		found.add(name, more[name], minGivenSecret)
	}
	found.environment(environ)

	r := &Redactor{}
	for value, name := range found.byValue {
		mark := "[redacted:" + name + "]"
		r.cores = append(r.cores, coreOf(value))
		r.plain = append(r.plain, secret{value, mark})
		for _, form := range jsonForms(value) {
			r.json = append(r.json, secret{form, mark})
			if form != value {
				r.plain = append(r.plain, secret{form, mark})
			}
		}
	}
	for _, secrets := range [][]secret{r.plain, r.json} {
		// The longest first: if a secret is part of another one, the rest of the longer one would remain.
		slices.SortFunc(secrets, func(a, b secret) int {
			return cmp.Or(cmp.Compare(len(b.form), len(a.form)), cmp.Compare(a.form, b.form))
		})
	}
	return r
}

var escapable = pattern.New(`[^A-Za-z0-9 ._+-]+`)

// coreOf is the longest part of value that no JSON writer escapes, perhaps empty.
func coreOf(value string) string {
	return slices.MaxFunc(escapable().Split(value, -1), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// mayHold reports whether there may be a secret in s.
func (r *Redactor) mayHold(s string) bool {
	return slices.ContainsFunc(r.cores, func(core string) bool { return strings.Contains(s, core) })
}

func replace(s string, secrets []secret) string {
	for _, sec := range secrets {
		s = strings.ReplaceAll(s, sec.form, sec.mark)
	}
	return s
}

// String replaces the secrets in a text.
func (r *Redactor) String(s string) string {
	if r == nil || !r.mayHold(s) {
		return s
	}
	return replace(s, r.plain)
}

// JSON replaces the secrets in the strings of a JSON text, which stays one. raw itself is returned, not a copy, when
// there is nothing to replace.
func (r *Redactor) JSON(raw []byte) []byte {
	if r == nil || len(r.cores) == 0 {
		return raw
	}
	text := jsonl.Text(raw)
	if !hasASCIIEscape(raw) {
		if !r.mayHold(text) {
			return raw
		}
		clean := replace(text, r.json)
		if clean == text {
			return raw
		}
		if json.Valid([]byte(clean)) {
			return []byte(clean)
		}
		// A match can cross JSON syntax, such as digits of a number or the n of \n. Then each string is redacted alone.
	}
	return jsonString().ReplaceAllFunc(raw, r.jsonString)
}

// hasASCIIEscape reports whether there may be an escape like \u0041, of a character that needs none: behind one, a
// secret would hide from a search of the text.
func hasASCIIEscape(raw []byte) bool {
	// Backslashes are everywhere in JSON; these three are not, and are found the faster for it.
	return bytes.Contains(raw, []byte("u00"))
}

// Line replaces the secrets in a line of a program, which is JSON or a text.
func (r *Redactor) Line(line []byte) []byte {
	switch {
	case r == nil:
		return line
	case json.Valid(line):
		return r.JSON(line)
	}
	return []byte(r.String(string(line)))
}

var jsonString = pattern.New(`(?s)"(?:[^"\\]|\\.)*"`)

// jsonString redacts one string with its quotes, decoded; it comes back as it was when there is no secret in it.
func (r *Redactor) jsonString(literal []byte) []byte {
	var value string
	if !hasASCIIEscape(literal) && !r.mayHold(jsonl.Text(literal)) || json.Unmarshal(literal, &value) != nil {
		return literal
	}
	clean := r.String(value)
	if clean == value {
		return literal
	}
	return JSON(clean)
}

// jsonForms are the ways in which JSON writers put value into a string, without the quotes; and those in which they put
// a JSON text with that string into another string, as they do with the arguments of a tool.
func jsonForms(value string) []string {
	enc, err := jsonl.Encode(value)
	if err != nil {
		return []string{value}
	}
	once := spellings(string(enc[1 : len(enc)-1]))
	forms := once
	for _, form := range once {
		forms = append(forms, spellings(escapeAgain.Replace(form))...)
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

var (
	escapeAgain = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	escapeHTML  = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)
	escapeSlash = strings.NewReplacer("/", `\/`)
)

// spellings returns the different JSON spellings of a text.
func spellings(form string) []string {
	return []string{form, escapeHTML.Replace(form), escapeSlash.Replace(form), asciiJSON(form)}
}

// asciiJSON escapes non-ASCII characters, as Python's json module does.
func asciiJSON(form string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(form)) {
		if unit < 0x80 {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
