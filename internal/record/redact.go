package record

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
	plain wordList // what to look for in text: values as they are, and as JSON has them
	json  wordList // what to look for in JSON: only what can stand inside one of its strings
}

// wordList is what to look for, and a quick way to see that there is nothing.
type wordList struct {
	secrets []secret
	finder  *finder
}

// secret is one form in which a value can turn up, and what takes its place.
type secret struct{ form, mark string }

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

	var plain, inJSON []secret
	for value, name := range found.byValue {
		mark := "[redacted:" + name + "]"
		plain = append(plain, secret{value, mark})
		for _, form := range jsonForms(value) {
			inJSON = append(inJSON, secret{form, mark})
			if form != value {
				plain = append(plain, secret{form, mark})
			}
		}
	}
	return &Redactor{plain: newWordList(plain), json: newWordList(inJSON)}
}

func newWordList(secrets []secret) wordList {
	// The longest first: a secret may be a part of another, and what is left of that one would still be secret.
	slices.SortFunc(secrets, func(a, b secret) int {
		return cmp.Or(cmp.Compare(len(b.form), len(a.form)), cmp.Compare(a.form, b.form))
	})
	words := make([][]byte, len(secrets))
	for i, sec := range secrets {
		words[i] = []byte(sec.form)
	}
	return wordList{secrets, newFinder(words)}
}

// String replaces the secrets in a text.
func (r *Redactor) String(s string) string {
	if r == nil || !r.plain.finder.in(bytesOf(s)) {
		return s
	}
	for _, sec := range r.plain.secrets {
		s = strings.ReplaceAll(s, sec.form, sec.mark)
	}
	return s
}

// JSON replaces the secrets in the strings of a JSON text, which stays one. raw itself is returned, not a copy, when
// there is nothing to replace.
func (r *Redactor) JSON(raw []byte) []byte {
	if r == nil || len(r.json.secrets) == 0 {
		return raw
	}
	odd := hasASCIIEscape(raw)
	if !odd && !r.json.finder.in(raw) {
		return raw
	}
	if !odd {
		out := raw
		for _, sec := range r.json.secrets {
			out = bytes.ReplaceAll(out, []byte(sec.form), []byte(sec.mark))
		}
		if json.Valid(out) {
			return out
		}
		// A secret can match across what JSON means: digits that are a number, the n of \n. Then string by string.
	}
	return r.jsonStrings(raw)
}

// hasASCIIEscape reports whether there may be an escape like \u0041, of a character that needs none: behind one, a
// secret would hide from a search of the text.
func hasASCIIEscape(raw []byte) bool {
	// Backslashes are everywhere in JSON; these three are not, and are found the faster for it.
	return bytes.Contains(raw, []byte("u00"))
}

// jsonStrings redacts each string of a JSON text by itself, decoded.
func (r *Redactor) jsonStrings(raw []byte) []byte {
	var out []byte
	rest := raw
	for len(rest) > 0 {
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			break
		}
		end := stringEnd(rest, i)
		literal := rest[i:end]
		out = append(out, rest[:i]...)
		if hasASCIIEscape(literal) || r.json.finder.in(literal) {
			literal = r.jsonString(literal)
		}
		out = append(out, literal...)
		rest = rest[end:]
	}
	return append(out, rest...)
}

// jsonString redacts one string with its quotes; it comes back as it was when there is no secret in it.
func (r *Redactor) jsonString(literal []byte) []byte {
	var value string
	if json.Unmarshal(literal, &value) != nil {
		return literal
	}
	clean := r.String(value)
	if clean == value {
		return literal
	}
	enc, err := encodeJSON(clean)
	if err != nil {
		return literal
	}
	return enc
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

// jsonForms are the ways in which JSON writers put value into a string, without the quotes; and those in which they put
// a JSON text with that string into another string, as they do with the arguments of a tool.
func jsonForms(value string) []string {
	enc, err := encodeJSON(value)
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

// spellings are the texts that different writers make of what JSON lets them choose.
func spellings(form string) []string {
	return []string{form, escapeHTML.Replace(form), escapeSlash.Replace(form), asciiJSON(form)}
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
