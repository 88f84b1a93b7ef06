// Package pattern has regular expressions that are compiled at their first use. Most commands use none, and compiling
// all of them would take longer than the rest of the program's start.
package pattern

import (
	"regexp"
	"sync"
)

// Regexp gives a regular expression, for package-level variables and tables.
type Regexp func() *regexp.Regexp

// New returns the expression, not compiled. An invalid expression panics at its first use, as in regexp.MustCompile; a
// test of this package compiles all expressions of the project.
func New(expr string) Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
