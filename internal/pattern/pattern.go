// Package pattern holds regular expressions that are compiled when they are first used. Most commands use none of them,
// and compiling all of those in the program's tables would take longer than the rest of its start.
package pattern

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression for package-level variables and tables. Its methods are those of regexp.Regexp.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// New returns the expression, not compiled. One with a mistake in it panics at its first use, as regexp.MustCompile
// does; this package's test compiles all that the project has.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

// Of returns an expression that is compiled already, such as one of the user's.
func Of(re *regexp.Regexp) *Regexp {
	r := &Regexp{re: re}
	r.once.Do(func() {})
	return r
}

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

// MatchString reports whether s contains a match.
func (r *Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

// FindString returns the first match in s, or "".
func (r *Regexp) FindString(s string) string { return r.get().FindString(s) }

// FindStringSubmatch returns the first match in s and its groups, or nil.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// FindAllString returns up to n matches in s, all for a negative n.
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }

// FindSubmatch returns the first match in b and its groups, or nil.
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.get().FindSubmatch(b) }

// ReplaceAllString returns s with all matches replaced; $1 in repl is the first group.
func (r *Regexp) ReplaceAllString(s, repl string) string { return r.get().ReplaceAllString(s, repl) }
