package record

import (
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// A value of the environment shorter than this is no secret worth the damage of replacing it everywhere; a key that is
// given as such may be a little shorter.
const (
	minSecret      = 8
	minGivenSecret = 6
	minSecretLine  = 16 // of a value of several lines, such as a private key
)

// placeWords end the name of a variable with the location of a secret rather than the secret.
var placeWords = map[string]bool{
	"FILE": true, "PATH": true, "DIR": true, "HOME": true, "SOCK": true, "NAME": true, "USERNAME": true, "USER": true,
	"HELPER": true, "HOST": true, "URL": true,
}

// placeholders are values that stand where a key is asked for and there is none.
var placeholders = map[string]bool{
	"password": true, "disabled": true, "required": true, "optional": true, "changeme": true, "undefined": true,
	"localhost": true, "ollama": true, "lm-studio": true, "lmstudio": true, "not-needed": true, "no-key": true,
	"no-key-required": true, "unused": true,
}

var (
	lastWord   = pattern.New(`[A-Za-z0-9]*$`)
	configPair = pattern.New(`^GIT_CONFIG_(KEY|VALUE)_([0-9]+)$`)
)

// collector gathers secrets, each value under the first name that it was seen with.
type collector struct{ byValue map[string]string }

// environment adds the NAME=value entries that look like credentials.
func (c *collector) environment(environ []string) {
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
		c.addURLPassword(name, value)
	}
}

// add adds a value, and each line of a value of several lines, because tools number, indent and mark lines.
func (c *collector) add(name, value string, shortest int) {
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

func (c *collector) take(name, value string, shortest int) {
	if len(value) < shortest || placeholders[strings.ToLower(value)] || isCount(value) {
		return
	}
	if _, known := c.byValue[value]; !known {
		c.byValue[value] = markName(name)
	}
}

// addURLPassword takes the passwords out of a value like postgres://user:password@host/db, whatever the name.
func (c *collector) addURLPassword(name, value string) {
	for _, password := range text.Passwords(value) {
		c.take(name, text.Unescaped(password), minSecret)
		c.take(name, password, minSecret)
	}
}

// looksSecret reports whether a variable's value is a credential, and not where there is one.
func looksSecret(name string) bool {
	return text.IsKey(name) && !placeWords[strings.ToUpper(lastWord().FindString(name))]
}

// isCount reports whether a value is a number, too short to be a secret: MAX_TOKENS=10000000.
func isCount(value string) bool {
	return len(value) < 16 && strings.Trim(value, "0123456789.,_") == ""
}

// markName makes a name fit to stand in a JSON string and in a text.
func markName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-", r)) {
			return r
		}
		return '_'
	}, name)
}
