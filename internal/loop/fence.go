package loop

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// fence marks untrusted text in a prompt: text of the worker, a tool, a test or the repository. Its random name is made
// after the text was written, so the text can neither end its part nor start another one.
type fence struct{ name string }

func newFence() fence { return fence{randomHex(6)} }

// wrap returns a text as a part of the prompt; "" stays "".
func (f fence) wrap(part, s string) string {
	if s == "" {
		return ""
	}
	mark := " " + part + " " + f.name + " -----"
	return "----- BEGIN" + mark + "\n" + strings.TrimRight(text.Visible(s), "\n") + "\n----- END" + mark
}

// fenced wraps a text in a new fence, for a prompt with one part.
func fenced(part, s string) string { return newFence().wrap(part, s) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails, by its documentation
	return hex.EncodeToString(b)
}
