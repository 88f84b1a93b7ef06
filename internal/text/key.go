package text

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

var (
	// camelCase matches where one word of a name ends and the next begins with a capital.
	camelCase = pattern.New(`([a-z0-9])([A-Z])`)
	// gitPair matches git's variables for settings, which are not keys.
	gitPair = pattern.New(`^GIT_CONFIG_(?:KEY|VALUE)_[0-9]+$`)
	// urlPassword matches the password of a URL in a text, before its host or as a parameter.
	urlPassword = pattern.New(`(?i)[a-z][a-z0-9+.-]*://[^\s/?#@:]*:([^\s/?#@]+)@` +
		`|[a-z][a-z0-9+.-]*://[^\s?]*\?(?:[^\s]*[&;])?(?:password|passwd|pwd)=([^\s&;#]+)`)
)

// Words that mark a name as a credential's: these; the plain ones, also after one of the kinds; and endings of
// password. The last two may be plural, and all may have a number.
var (
	keyWords = []string{"PASS", "PASSES", "OAUTH", "PWORD", "CREDS", "JWT", "BEARER", "AUTHORIZATION", "EXTRAHEADER",
		"COOKIE"}
	keyPlain  = []string{"KEY", "TOKEN", "SECRET", "CREDENTIAL", "AUTH", "PAT"}
	keyKinds  = []string{"", "API", "ACCESS", "AUTH", "CLIENT", "PRIVATE", "SECRET"}
	passwords = []string{"PASSWORD", "PASSWD", "PASSPHRASE"}
)

func isKeyWord(word string) bool {
	word = strings.TrimRight(word, "0123456789")
	one := strings.TrimSuffix(word, "S")
	return slices.Contains(keyWords, word) ||
		slices.ContainsFunc(passwords, func(end string) bool { return strings.HasSuffix(one, end) }) ||
		slices.ContainsFunc(keyKinds, func(kind string) bool {
			plain, of := strings.CutPrefix(one, kind)
			return of && slices.Contains(keyPlain, plain)
		})
}

// IsKey reports whether a variable's name marks a credential.
func IsKey(name string) bool {
	if strings.HasPrefix(name, "GIT_CONFIG_") && gitPair().MatchString(name) {
		return false
	}
	upper := strings.ToUpper(name)
	if upper != name || strings.ContainsAny(name, "0123456789") {
		upper = strings.ToUpper(camelCase().ReplaceAllString(name, "${1}_${2}"))
	}
	return slices.ContainsFunc(strings.FieldsFunc(upper, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), isKeyWord)
}

// IsKeySetting is IsKey for the last part of a git setting's name.
func IsKeySetting(name string) bool {
	return IsKey(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]))
}

// Passwords returns the passwords of the URLs in a text, as written.
func Passwords(s string) []string {
	var found []string
	for _, m := range urlPassword().FindAllStringSubmatch(s, -1) {
		found = append(found, m[1]+m[2])
	}
	return found
}

// HoldsKey reports whether a variable, as NAME=value, is a credential or contains one.
func HoldsKey(entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	return IsKey(name) || strings.Contains(value, "://") && urlPassword().MatchString(value)
}

// NamedIn returns the first of the names that occurs in a text as a word, or "".
func NamedIn(s string, names []string) string {
	for _, name := range names {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(s) {
			return name
		}
	}
	return ""
}

// Unescaped returns the typed form of a URL's password.
func Unescaped(password string) string {
	if plain, err := url.PathUnescape(password); err == nil {
		return plain
	}
	return password
}
