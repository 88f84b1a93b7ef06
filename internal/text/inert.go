package text

import (
	"github.com/git-tilth/git-tilth/internal/pattern"
)

var (
	// skipsChecks matches the words in a commit message that keep CI from running.
	skipsChecks = pattern.New(`(?i)(\[|\*\*\*)((?:skip[ _-][\w-]+|no[ _-]ci|[\w-]+[ _-]skip)\]|NO_CI\*\*\*)`)
	// closes matches a closing word with the references that follow it.
	closes = pattern.New(`(?i)\b(?:clos|fix|resolv|implement|complet)(?:e|es|ed|s|ing)?\b:?\s+(?:issues?\s+)?` +
		`(?:(?:,\s*|and\s+|\s+)*(?:\S*[#!]|GH-|\S*/(?:issues|pull|merge_requests|work_items|epics)/|(?-i:[A-Z]\w+)-)\d+)+`)
	// reference matches the number of an issue behind its sign, key or address.
	reference = pattern.New(`([#!]|\b[A-Z]\w+-|/)(\d)`)
)

// Inert returns untrusted text for a commit message. A reference behind a closing word, and words that keep CI from
// running, get a space.
func Inert(s string) string {
	s = closes().ReplaceAllStringFunc(s, func(m string) string {
		return reference().ReplaceAllString(m, "$1 $2")
	})
	return skipsChecks().ReplaceAllString(s, "$1 $2")
}
