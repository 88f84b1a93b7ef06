package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Redactor replaces secrets by [redacted:NAME]. A nil Redactor replaces nothing. It is immutable and safe for
// concurrent use.
type Redactor struct {
	// cores are a part of each value that no JSON writer escapes. Every message of a run passes through here several
	// times, and rarely contains a secret: the cores show that quickly.
	cores []string
	forms []secret // the values, plain and in JSON form
}

// secret is one spelling of a secret value, and its replacement.
type secret struct{ form, mark string }

// NewRedactor collects the secrets in an environment (NAME=value entries), by the names of the variables. more has
// other secrets, such as an API key from a credential helper, by the name to show for each.
func NewRedactor(environ []string, more map[string]string) *Redactor {
	found := collector{}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		found.add(name, more[name], minGivenSecret)
	}
	found.environment(environ)

	r := &Redactor{}
	for value, name := range found {
		r.cores = append(r.cores, coreOf(value))
		for _, form := range jsonForms(value) {
			r.forms = append(r.forms, secret{form, "[redacted:" + name + "]"})
		}
	}
	// The longest first: if a secret is part of another one, the rest of the longer one would remain.
	slices.SortFunc(r.forms, func(a, b secret) int {
		return cmp.Or(cmp.Compare(len(b.form), len(a.form)), cmp.Compare(a.form, b.form))
	})
	return r
}

var escapable = pattern.New(`[^A-Za-z0-9 ._+-]+`)

// coreOf returns the longest part of value that no JSON writer escapes, perhaps empty.
func coreOf(value string) string {
	return slices.MaxFunc(escapable().Split(value, -1), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// mayHold reports whether s may have a secret.
func (r *Redactor) mayHold(s string) bool {
	return slices.ContainsFunc(r.cores, func(core string) bool { return strings.Contains(s, core) })
}

// String replaces the secrets in a text.
func (r *Redactor) String(s string) string {
	if r == nil || !r.mayHold(s) {
		return s
	}
	for _, sec := range r.forms {
		s = strings.ReplaceAll(s, sec.form, sec.mark)
	}
	return s
}

// JSON replaces the secrets in the strings of a JSON text. If there are none it returns raw itself, not a copy.
func (r *Redactor) JSON(raw []byte) []byte {
	if r == nil || !hasASCIIEscape(raw) && !r.mayHold(jsonl.Text(raw)) {
		return raw
	}
	return jsonString().ReplaceAllFunc(raw, r.jsonString)
}

// hasASCIIEscape reports whether there may be an escape like \u0041, of a character that needs none: behind one, a
// secret would hide from a search of the text.
func hasASCIIEscape(raw []byte) bool {
	// Backslashes are frequent in JSON. These three are rare, so the search for them is faster.
	return bytes.Contains(raw, []byte("u00"))
}

// Line replaces the secrets in an output line, which is JSON or text.
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

// jsonString redacts one quoted string, decoded. It returns a string without a secret unchanged.
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

// jsonForms returns value and its spellings in a JSON string, without quotes. It includes the spellings in a JSON text
// that is itself a JSON string, such as the arguments of a tool.
func jsonForms(value string) []string {
	enc := JSON(value)
	once := spellings(string(enc[1 : len(enc)-1]))
	forms := append([]string{value}, once...)
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

// A shorter value of the environment is not treated as a secret, because it would be replaced everywhere. An explicit
// key may be a little shorter.
const (
	minSecret      = 8
	minGivenSecret = 6
	minSecretLine  = 16 // shortest line of a secret with several lines, such as a private key
)

// placeWords end the name of a variable with the location of a secret rather than the secret.
var placeWords = map[string]bool{
	"FILE": true, "PATH": true, "DIR": true, "HOME": true, "SOCK": true, "NAME": true, "USERNAME": true, "USER": true,
	"HELPER": true, "HOST": true, "URL": true,
}

// placeholders are values for a required but missing key.
var placeholders = map[string]bool{
	"password": true, "disabled": true, "required": true, "optional": true, "changeme": true, "undefined": true,
	"localhost": true, "ollama": true, "lm-studio": true, "lmstudio": true, "not-needed": true, "no-key": true,
	"no-key-required": true, "unused": true,
}

var (
	lastWord   = pattern.New(`[A-Za-z0-9]*$`)
	configPair = pattern.New(`^GIT_CONFIG_(KEY|VALUE)_([0-9]+)$`)
)

// collector has the names of secrets by their values, each value under the first name that it was seen with.
type collector map[string]string

// environment adds the NAME=value entries that look like credentials.
func (c collector) environment(environ []string) {
	values := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			values[name] = value
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if m := configPair().FindStringSubmatch(name); m != nil {
			// GIT_CONFIG_KEY_0 is a setting's name; its value is in another variable.
			key := values["GIT_CONFIG_KEY_"+m[2]]
			if m[1] == "VALUE" && text.IsKeySetting(key) {
				c.add(name, value, minSecret)
			}
		}
		if looksSecret(name) {
			c.add(name, value, minSecret)
		}
		for _, password := range text.Passwords(value) { // passwords in a URL of any variable
			c.take(name, text.Unescaped(password), minSecret)
			c.take(name, password, minSecret)
		}
	}
}

// add adds a value, and each line of a value with several lines, because tools number, indent and mark lines.
func (c collector) add(name, value string, shortest int) {
	value = strings.TrimSpace(value)
	if strings.Contains(value, "\n") {
		for line := range strings.SplitSeq(value, "\n") {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				c.take(name, line, minSecretLine)
			}
		}
	}
	c.take(name, value, shortest)
}

func (c collector) take(name, value string, shortest int) {
	if len(value) < shortest || placeholders[strings.ToLower(value)] || isCount(value) {
		return
	}
	if _, known := c[value]; !known {
		c[value] = markName(name)
	}
}

// looksSecret reports whether a variable's value is a credential, and not the path of one.
func looksSecret(name string) bool {
	return text.IsKey(name) && !placeWords[strings.ToUpper(lastWord().FindString(name))]
}

// isCount reports whether a value is a number, too short to be a secret: MAX_TOKENS=10000000.
func isCount(value string) bool {
	return len(value) < 16 && strings.Trim(value, "0123456789.,_") == ""
}

// markName makes a name valid in a JSON string and in a text.
func markName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-", r)) {
			return r
		}
		return '_'
	}, name)
}
