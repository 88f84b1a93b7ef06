package loop

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// fence sets off what others wrote in a prompt: the worker, a tool, a test, the repository. Its name is drawn for one
// prompt, after all that stands in it was written, so that nothing in it can end the part that it stands in or begin
// another one.
type fence struct{ name string }

func newFence() fence { return fence{randomHex(6)} }

// wrap is a text as the part of a prompt; "" stays "".
func (f fence) wrap(part, s string) string {
	if s == "" {
		return ""
	}
	mark := " " + part + " " + f.name + " -----"
	return "----- BEGIN" + mark + "\n" + strings.TrimRight(text.Visible(s), "\n") + "\n----- END" + mark
}

// fenced is wrap with a fence of its own, for a prompt of one part.
func fenced(part, s string) string { return newFence().wrap(part, s) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails, by its documentation
	return hex.EncodeToString(b)
}
