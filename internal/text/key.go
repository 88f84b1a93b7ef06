package text

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

var (
	// keyWord matches a word that makes the name in which it stands that of a credential.
	keyWord = pattern.New(`^(?:(?:API|ACCESS|AUTH|CLIENT|PRIVATE|SECRET)?(?:KEY|TOKEN|SECRET|CREDENTIAL|AUTH|PAT)S?` +
		`|PASS(?:ES)?|OAUTH|.*(?:PASSWORD|PASSWD|PASSPHRASE)S?|PWORD|CREDS|JWT|BEARER|AUTHORIZATION|EXTRAHEADER` +
		`|COOKIE)[0-9]*$`)
	// camelCase matches where one word of a name ends and the next begins with a capital.
	camelCase = pattern.New(`([a-z0-9])([A-Z])`)
	// gitPair matches the variables of git that carry a setting: the name of one is no key.
	gitPair = pattern.New(`^GIT_CONFIG_(?:KEY|VALUE)_[0-9]+$`)
	// urlPassword matches what a URL in a text has for a password, before its host or as a parameter.
	urlPassword = pattern.New(`(?i)[a-z][a-z0-9+.-]*://[^\s/?#@:]*:([^\s/?#@]+)@` +
		`|[a-z][a-z0-9+.-]*://[^\s?]*\?(?:[^\s]*[&;])?(?:password|passwd|pwd)=([^\s&;#]+)`)
)

// IsKey reports whether the name of a variable says that it holds a credential: one of its words does.
func IsKey(name string) bool {
	if gitPair().MatchString(name) {
		return false
	}
	words := strings.FieldsFunc(camelCase().ReplaceAllString(name, "${1}_${2}"), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for _, w := range words {
		if keyWord().MatchString(strings.ToUpper(w)) {
			return true
		}
	}
	return false
}

// IsKeySetting is IsKey for the name of a setting of git's: its last part says what it is.
func IsKeySetting(name string) bool {
	return IsKey(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]))
}

// Passwords are those of the URLs in a text, as they stand there.
func Passwords(s string) []string {
	var found []string
	for _, m := range urlPassword().FindAllStringSubmatch(s, -1) {
		found = append(found, m[1]+m[2])
	}
	return found
}

// HoldsKey reports whether a variable, as NAME=value, is a credential or holds one.
func HoldsKey(entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	return IsKey(name) || strings.Contains(value, "://") && urlPassword().MatchString(value)
}

// NamedIn is the first of the names that stands in a text as a word, "" for none.
func NamedIn(s string, names []string) string {
	for _, name := range names {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(s) {
			return name
		}
	}
	return ""
}

// Unescaped is a password of a URL as it is typed.
func Unescaped(password string) string {
	if plain, err := url.PathUnescape(password); err == nil {
		return plain
	}
	return password
}
