package seed

import (
	"context"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// Question is what the model asks a person.
type Question struct {
	Text string
	// Options are the answers that the model sees, each one line. "Other" is not
	// among them: a frontend always offers it.
	Options []string
}

// Answer is what the person said. Option is the number of the chosen option
// from 1, or 0 if the text is the person's own.
type Answer struct {
	Text   string
	Option int
}

// SayKind says what a line of the interview is.
type SayKind int

// The kinds of lines: the model's own words, a step that it takes, something that went wrong but goes on.
const (
	Note SayKind = iota
	Step
	Warn
)

// Frontend is how an interview meets a person. Errors that Ask returns end the
// interview; ErrAborted and ErrAnswers are the expected ones.
type Frontend interface {
	// Ask puts one question and waits for its answer or for the end of ctx.
	Ask(ctx context.Context, q Question) (Answer, error)
	Say(kind SayKind, text string)
	// Wait says that the model has been asked and its answer may take a while.
	Wait()
	// Usage tells what the interview has taken so far, in tokens and dollars.
	Usage(tokens int64, cost float64)
	// Done closes an interview whose seed was taken.
	Done(b *Bundle)
}

// printable makes model text safe to show: no escape sequence reaches a terminal, and nothing reorders what is read.
func printable(s string) string { return strings.TrimSpace(text.Visible(s)) }
