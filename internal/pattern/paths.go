package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Paths is a list of path patterns, with the meaning of a .gitignore at the root of a tree. It is not safe for
// concurrent use.
type Paths struct {
	rules []rule
	named []string        // a path that each rule matches, with a trailing slash if it must be a directory
	below map[string]bool // cache: whether a rule matches everything below a directory
}

// rule is one pattern.
type rule struct {
	negated, dirOnly bool
	anchored         bool           // matches the whole path, not only its last part
	prefix           string         // the part before its first wildcard, else the whole pattern
	wild             *regexp.Regexp // regexp of the whole pattern; nil without a wildcard
}

// NewPaths compiles patterns. An error names no subject, because the caller names the pattern: "is empty".
func NewPaths(patterns ...string) (*Paths, error) {
	p := &Paths{below: map[string]bool{}}
	for _, line := range patterns {
		r, named, err := newRule(line)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
		if !r.negated {
			p.named = append(p.named, named)
		}
	}
	return p, nil
}

// Overlap reports whether both lists match some path of the tree, or a path that either list names. A pattern with
// wildcards names one path that it would match.
func Overlap(a, b *Paths, tree []string) bool {
	both := func(path string) bool { return a.Match(path) && b.Match(path) }
	return slices.ContainsFunc(a.named, both) || slices.ContainsFunc(b.named, both) || slices.ContainsFunc(tree, both)
}

// Match reports whether a path matches; the path of a directory ends in a slash. As in git, the last matching pattern
// decides, and no pattern excludes a path below a matching directory.
func (p *Paths) Match(path string) bool {
	path, isDir := strings.CutSuffix(path, "/")
	base := path
	if at := strings.LastIndexByte(path, '/'); at >= 0 {
		parent := path[:at+1]
		taken, known := p.below[parent]
		if !known {
			taken = p.Match(parent)
			p.below[parent] = taken
		}
		if taken {
			return true
		}
		base = path[at+1:]
	}
	for i := len(p.rules) - 1; i >= 0; i-- {
		if p.rules[i].takes(path, base, isDir) {
			return !p.rules[i].negated
		}
	}
	return false
}

func (r *rule) takes(path, base string, isDir bool) bool {
	if r.anchored {
		base = path
	}
	switch {
	case r.dirOnly && !isDir:
		return false
	case r.wild == nil:
		return base == r.prefix
	}
	return strings.HasPrefix(base, r.prefix) && r.wild.MatchString(base)
}

// newRule parses a line as git does. It refuses a line that git ignores, or that can match no path of a tree.
func newRule(line string) (r rule, named string, err error) {
	glob, r := strings.TrimRight(line, " "), rule{}
	if (len(glob)-len(strings.TrimRight(glob, `\`)))%2 == 1 && len(glob) < len(line) {
		glob += " " // the blank that the backslash keeps
	}
	if strings.HasPrefix(glob, "#") {
		return r, "", errors.New(`git takes for a comment: write \#`)
	}
	if !utf8.ValidString(glob) || strings.ContainsFunc(glob, unicode.IsControl) {
		return r, "", errors.New("contains a control character or is not UTF-8")
	}
	glob, r.negated = strings.CutPrefix(glob, "!")
	glob, r.dirOnly = strings.CutSuffix(glob, "/")
	r.anchored = strings.Contains(glob, "/")
	glob = strings.TrimPrefix(glob, "/")
	if glob == "" {
		return r, "", errors.New("is empty")
	}
	if strings.HasPrefix(glob, "~/") || len(glob) > 2 && glob[1] == ':' && strings.ContainsRune(`/\`, rune(glob[2])) {
		return r, "", errors.New("is absolute: write it relative to the root of the repository")
	}
	for part := range strings.SplitSeq(glob, "/") {
		switch part {
		case "..":
			return r, "", errors.New("leaves the repository")
		case "", ".":
			return r, "", errors.New("no path matches: // and /./ are not allowed")
		}
	}
	named, err = r.translate(glob)
	if r.dirOnly {
		named += "/"
	}
	return r, named, err
}

// translate returns the regular expression of a glob, and a path that it matches.
func (r *rule) translate(glob string) (named string, err error) {
	var expr, path strings.Builder
	for at := 0; at < len(glob); {
		rest := glob[at:]
		c, size := utf8.DecodeRuneInString(rest)
		stars := len(rest) - len(strings.TrimLeft(rest, "*"))
		whole := stars > 1 && (at == 0 || glob[at-1] == '/') // matches directories if the part is only **
		wild, stands := "", "x"
		switch {
		case whole && stars == len(rest):
			wild, size = ".+", stars
		case whole && rest[stars] == '/':
			wild, stands, size = "(?:.*/)?", "", stars+1
		case c == '*':
			wild, size = "[^/]*", stars
		case c == '?':
			wild = "[^/]"
		case c == '[':
			if wild, stands, size, err = bracket(rest); err != nil {
				return "", err
			}
		case c == '\\':
			var escaped int
			if c, escaped = utf8.DecodeRuneInString(rest[1:]); escaped == 0 {
				return "", errors.New("ends in a backslash")
			}
			size += escaped
			fallthrough
		default:
			stands = string(c)
			expr.WriteString(regexp.QuoteMeta(stands))
		}
		if wild != "" && r.wild == nil {
			r.wild, r.prefix = new(regexp.Regexp), path.String()
		}
		expr.WriteString(wild)
		path.WriteString(stands)
		at += size
	}
	if r.wild == nil {
		r.prefix = path.String()
		return r.prefix, nil
	}
	r.wild, err = regexp.Compile(`(?s)\A(?:` + expr.String() + `)\z`)
	return path.String(), err
}

// bracket reads the set of characters at the start of s. It returns its expression, a matching character, and its
// length. A slash never matches.
func bracket(s string) (expr, stands string, size int, err error) {
	var set strings.Builder
	add := func(lo, hi rune) {
		if lo <= '/' && '/' <= hi {
			fmt.Fprintf(&set, `\x{%x}-\x{%x}`, min(lo, '.'), '.')
			lo = '0'
		}
		if lo <= hi {
			fmt.Fprintf(&set, `\x{%x}-\x{%x}`, lo, hi)
		}
	}
	at := 1
	next := func() (c rune) {
		if at < len(s)-1 && s[at] == '\\' {
			at++
		}
		c, n := utf8.DecodeRuneInString(s[at:])
		at += n
		return c
	}
	negated := strings.HasPrefix(s[at:], "!") || strings.HasPrefix(s[at:], "^")
	if negated {
		at++
	}
	var before rune // a range may begin with it
	for begin := at; at == begin || at < len(s) && s[at] != ']'; {
		switch {
		case strings.HasPrefix(s[at:], "[:"):
			return "", "", 0, errors.New("contains a character class like [:alpha:]; list the characters, or use *")
		case before != 0 && s[at] == '-' && at+1 < len(s) && s[at+1] != ']':
			at++
			add(before, next())
			before = 0
		default:
			before = next()
			add(before, before)
			stands = stands + string(before)
		}
		if at >= len(s) {
			break
		}
	}
	if at >= len(s) {
		return "", "", 0, errors.New("has an unclosed [")
	}
	if negated {
		return "[^/" + set.String() + "]", "x", at + 1, nil
	}
	_, first := utf8.DecodeRuneInString(stands)
	return `[\x00` + set.String() + "]", stands[:first], at + 1, nil // a path has no NUL, so the set is never empty
}
