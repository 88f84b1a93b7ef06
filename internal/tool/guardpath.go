package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reaches refuses commands with a word that leads into a protected directory. A word that merely looks like a relative
// path (a pattern for grep, say) counts only if there is something at that place.
func (in *inspector) reaches(words []shWord) string {
	for _, w := range words {
		for _, part := range pathsIn(w.text) {
			if p, ok := in.locate(part, in.cwd); ok && in.isProtected(p) && exists(p) {
				return harnessDir
			}
		}
	}
	return ""
}

// pathsIn returns what may be a path in a word: all of it, what follows `=` or
// `:`, and the value attached to a short option.
func pathsIn(word string) []string {
	parts := []string{word}
	if i := strings.IndexAny(word, "=:"); i >= 0 {
		parts = append(parts, word[i+1:])
	}
	if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		parts = append(parts, word[2:])
	}
	return slices.DeleteFunc(parts, func(p string) bool {
		return p == "" || !strings.ContainsAny(p[:1], "/~.$")
	})
}

// writesTo judges one place that is written to.
func (in *inspector) writesTo(w shWord) string {
	p, ok := in.locate(w.text, in.cwd)
	if !ok {
		return ""
	}
	if in.isProtected(p) {
		return harnessDir
	}
	// A linked worktree's repository has its own files elsewhere. Repositories
	// that a test has made for itself are let through.
	if hasGit(p) && (in.inTops(p) || !within(os.TempDir(), p)) {
		return "git's own files are not to be written; use git commands"
	}
	return ""
}

// tooMuch reports whether a place is not this worktree's to remove: the worktree itself and what is above it, a home,
// what a way up leads to, and directories right below the root. Deeper places elsewhere (/tmp/x/y) are let through.
func (s *simple) tooMuch(w shWord) bool {
	if w.text == "" {
		return false
	}
	text := strings.TrimRight(w.text, "*")
	all := text != w.text // what is in the directory, not the directory
	if text == "" {
		text = "."
	}
	atHome := strings.HasPrefix(text, "~") && !w.quoted ||
		strings.HasPrefix(text, "$HOME") || strings.HasPrefix(text, "${HOME}")
	p, ok := s.locate(text, s.cwd)
	if !ok {
		// From a directory that is not known, a way up leads anywhere.
		return atHome || text == ".." || strings.HasPrefix(text, "../")
	}
	if s.inTops(p) {
		return slices.Contains(s.tops, p) && !all
	}
	for _, top := range s.tops {
		if within(p, top) {
			return true
		}
	}
	home := s.home
	if atHome || home != "" && (within(p, home) || within(home, p)) {
		return true
	}
	// A relative path out of the worktree went up.
	return !filepath.IsAbs(text) && s.inTops(s.cwd) || strings.Count(p, "/") <= 1
}
