package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Redactor replaces secrets by [redacted:NAME]. A nil Redactor replaces nothing. It is immutable and safe for
// concurrent use.
type Redactor struct {
	plain []secret // what to look for in text: values as they are, and as JSON has them
	json  []secret // what to look for in JSON: only what can stand inside one of its strings
}

// secret is one form in which a value can turn up, and what takes its place. The bytes are the same as the strings, kept
// so that the hot path converts nothing.
type secret struct {
	form, mark           string
	formBytes, markBytes []byte
}

func newSecret(form, mark string) secret { return secret{form, mark, []byte(form), []byte(mark)} }

// NewRedactor collects the secrets of an environment (NAME=value entries), by the names of the variables, and more:
// secrets known by other means, such as an API key from a credential helper, by the name to show for each.
func NewRedactor(environ []string, more map[string]string) *Redactor {
	found := &collector{byValue: map[string]string{}}
	names := make([]string, 0, len(more))
	for name := range more {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		found.add(name, more[name], minGivenSecret)
	}
	found.environment(environ)

	r := &Redactor{}
	for value, name := range found.byValue {
		mark := "[redacted:" + name + "]"
		r.plain = append(r.plain, newSecret(value, mark))
		for _, form := range jsonForms(value) {
			r.json = append(r.json, newSecret(form, mark))
			if form != value {
				r.plain = append(r.plain, newSecret(form, mark))
			}
		}
	}
	for _, list := range [][]secret{r.plain, r.json} {
		// The longest first: a secret may be a part of another, and what is left of that one would still be secret.
		slices.SortFunc(list, func(a, b secret) int {
			return cmp.Or(cmp.Compare(len(b.form), len(a.form)), cmp.Compare(a.form, b.form))
		})
	}
	return r
}

// String replaces the secrets in a text.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	for _, sec := range r.plain {
		if strings.Contains(s, sec.form) {
			s = strings.ReplaceAll(s, sec.form, sec.mark)
		}
	}
	return s
}

// JSON replaces the secrets in the strings of a JSON text, which stays one. raw itself is returned, not a copy, when
// there is nothing to replace.
func (r *Redactor) JSON(raw []byte) []byte {
	if r == nil {
		return raw
	}
	out := raw
	for _, sec := range r.json {
		if bytes.Contains(out, sec.formBytes) {
			out = bytes.ReplaceAll(out, sec.formBytes, sec.markBytes)
		}
	}
	if len(out) == len(raw) && (len(out) == 0 || &out[0] == &raw[0]) {
		return raw
	}
	if json.Valid(out) {
		return out
	}
	// A secret can match across what JSON means: digits that are a number, the n of \n. Then string by string.
	return r.jsonStrings(raw)
}

// jsonStrings redacts each string of a JSON text by itself, decoded.
func (r *Redactor) jsonStrings(raw []byte) []byte {
	var out []byte
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '"')
		if i < 0 {
			break
		}
		end := stringEnd(raw, i)
		var value string
		if json.Unmarshal(raw[i:end], &value) == nil {
			if clean := r.String(value); clean != value {
				if enc, err := encodeJSON(clean); err == nil {
					out = append(append(out, raw[:i]...), enc...)
					raw = raw[end:]
					continue
				}
			}
		}
		out = append(out, raw[:end]...)
		raw = raw[end:]
	}
	return append(out, raw...)
}

// stringEnd is the offset behind the JSON string that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// jsonForms are the ways in which JSON writers put value into a string, without the quotes.
func jsonForms(value string) []string {
	quote := func(html bool) string {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(value) != nil {
			return value
		}
		return strings.TrimSuffix(b.String()[1:], "\"\n")
	}
	plain := quote(false)
	forms := []string{plain, quote(true), strings.ReplaceAll(plain, "/", `\/`), asciiJSON(plain)}
	// A JSON text in a JSON string, as tool arguments are, escapes what is escaped once more.
	for _, form := range slices.Clone(forms) {
		forms = append(forms, strings.ReplaceAll(strings.ReplaceAll(form, `\`, `\\`), `"`, `\"`))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// asciiJSON escapes what is not ASCII, as Python's json module does.
func asciiJSON(form string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	unit := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&0xf])
		}
	}
	for _, c := range form {
		switch {
		case c < 0x80:
			b.WriteRune(c)
		case c > 0xffff:
			unit(0xd800 + (c-0x10000)>>10)
			unit(0xdc00 + (c-0x10000)&0x3ff)
		default:
			unit(c)
		}
	}
	return b.String()
}
