package text

import (
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

var (
	colours = pattern.New(`\x1b\[[0-9;?]*[ -/]*[@-~]`)
	// varies matches the words that differ between repeats of a message: times, counts, ids, the paths of temporary
	// files.
	varies = pattern.New(`\S*(?:/tmp/|/temp/|/var/folders/)\S*|\S*[0-9]\S*`)
)

// Gist normalises a text by removing numbers, times and other varying parts, so that repeats of a message are equal.
func Gist(s string) string {
	s = colours().ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	s = strings.ReplaceAll(s, "\x1b", "")
	return OneLine(varies().ReplaceAllString(s, "0"))
}

// cutHere begins the note that replaces the rest of a long text.
const cutHere = "\n[... "

// SaySame reports whether two possibly shortened texts have the same gist.
func SaySame(a, b string) bool {
	gist := func(s string) string {
		kept, _, _ := strings.Cut(s, cutHere)
		return Gist(kept)
	}
	a, b = gist(a), gist(b)
	short := min(len(a), len(b))
	return a == b || short > 1000 && a[:short] == b[:short]
}
