package text

import (
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

var (
	// skipsChecks is how a commit message tells CI not to look at what is pushed.
	skipsChecks = pattern.New(`(?i)\[((?:skip|no)[ -][\w-]+|[\w-]+[ -]skip)\]|\*\*\*(NO_CI)\*\*\*`)
	// trailerLine begins a line that git, or a server that looks at every line, takes for a trailer.
	trailerLine = pattern.New(`(?m)^[ \t]*([A-Za-z0-9][A-Za-z0-9-]*[ \t]*:(?:[^/\n]|/[^/\n]|$)|\(cherry picked from commit )`)
	// numberSign is how an issue is named, and a command of some trackers; the others name one by its address or key.
	numberSign   = pattern.New(`#(\w)`)
	issueShort   = pattern.New(`\b(GH)-(\d)`)
	issueAddress = pattern.New(`(/(?:issues|pull|merge_requests|work_items|epics)/)(\d)`)
	issueKey     = pattern.New(`(?i)\b((?:clos|fix|resolv|implement|complet)(?:e|es|ed|s|ing)?:?\s+)((?-i:[A-Z]\w+))-(\d)`)
)

// Inert is a text of somebody else's that goes into a commit message: it closes no issue, signs nothing off, and keeps
// no check from running. What it says can still be read.
func Inert(s string) string {
	s = numberSign().ReplaceAllString(s, "# $1")
	s = issueShort().ReplaceAllString(s, "$1 $2")
	s = issueAddress().ReplaceAllString(s, "$1 $2")
	s = issueKey().ReplaceAllString(s, "$1$2 $3")
	s = trailerLine().ReplaceAllString(strings.ReplaceAll(s, "\r", "\n"), "- $1")
	return skipsChecks().ReplaceAllString(s, "($1$2)")
}
