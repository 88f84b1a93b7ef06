// Package pattern holds regular expressions that are compiled when they are first used. Most commands use none of them,
// and compiling all of those in the program's tables would take longer than the rest of its start.
package pattern

import (
	"regexp"
	"sync"
)

// Regexp gives a regular expression, for package-level variables and tables.
type Regexp func() *regexp.Regexp

// New returns the expression, not compiled. One with a mistake in it panics at its first use, as regexp.MustCompile
// does; this package's test compiles all that the project has.
func New(expr string) Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
