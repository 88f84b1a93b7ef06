package seed

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	maxSpecs     = 3
	maxSpecBytes = 60000
	maxFileLines = 200
)

// spec is a document of the repository that the brief names.
type spec struct {
	Path      string // relative to the source tree
	Text      string
	Truncated bool
}

// specEndings tell documents from the code files that a brief may mention too.
var specEndings = []string{".md", ".markdown", ".txt", ".rst", ".adoc", ".asciidoc", ".org", ".textile"}

// namedSpecs reads the documents below source that the brief names. Paths that
// lead out of the tree, also through a symlink, are not read.
func namedSpecs(source, brief string) []spec {
	var out []spec
	seen := map[string]bool{}
	for _, word := range append([]string{strings.TrimSpace(brief)}, briefWords(brief)...) {
		p, ok := specPath(source, word)
		if !ok || seen[p] || len(out) == maxSpecs {
			continue
		}
		seen[p] = true
		raw, err := jsonl.ReadIn(source, p, maxSpecBytes+1)
		says := strings.TrimSpace(strings.ToValidUTF8(text.HeadBytes(string(raw), maxSpecBytes), "\uFFFD"))
		if err == nil && says != "" {
			out = append(out, spec{Path: p, Text: says, Truncated: len(raw) > maxSpecBytes})
		}
	}
	return out
}

// briefWords splits a brief at blanks and takes quotes and punctuation off the words.
func briefWords(brief string) []string {
	words := strings.FieldsFunc(brief,
		func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`\"'<>()[]{},;", r) })
	for i, w := range words {
		words[i] = strings.TrimRight(strings.TrimPrefix(w, "@"), ".:!?")
	}
	return words
}

// specPath reports whether a word of the brief can be the path of a document.
func specPath(source, word string) (string, bool) {
	if len(word) > maxPathBytes || !slices.Contains(specEndings, strings.ToLower(path.Ext(word))) {
		return "", false
	}
	if filepath.IsAbs(word) {
		rel, err := filepath.Rel(source, word)
		if err != nil {
			return "", false
		}
		word = rel
	}
	word = path.Clean(filepath.ToSlash(word))
	return word, filepath.IsLocal(word)
}

// fileList shows some paths, one a line.
func fileList(files []string) string {
	if len(files) > maxFileLines {
		files = append(append([]string(nil), files[:maxFileLines]...), "...")
	}
	return strings.Join(files, "\n")
}
