package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
	"github.com/git-tilth/git-tilth/internal/view"
)

// question is the model's question to the user.
type question struct {
	Text string `json:"question"`
	// Options are the answers that the model sees, each one line. "Other" is not
	// among them: a terminal always offers it.
	Options []string `json:"options"`
}

// answer is the user's answer. Option is the number of the chosen option from 1, or 0 for free text.
type answer struct {
	Text   string
	Option int
}

// Terminal is the interview's side of a terminal, or of a pipe or file with answers.
//
// The terminal stays in its normal mode throughout: the kernel edits the line, Ctrl-D ends the input and Ctrl-C is a
// signal, which the caller turns into the end of ctx. So there is no state to restore, however the process ends.
type Terminal struct {
	lines *text.Lines
	out   io.Writer
	look  view.Terminal // terminal properties of out
	tty   bool

	asked    int
	spent    string // the usage of the interview
	approved bool   // the user has accepted the plan
	live     bool   // the last line says that the model is working, and the next line replaces it
}

// NewTerminal returns a Terminal that reads answers from in and writes to out in the style of look. With isTTY an empty
// line ends a longer answer. Otherwise in has one answer per line, and a number picks an option.
func NewTerminal(in *text.Lines, out io.Writer, look view.Terminal, isTTY bool) *Terminal {
	look.Color = look.Color && isTTY
	return &Terminal{lines: in, out: out, look: look, tty: isTTY}
}

// ask shows a question and reads its answer. An error ends the interview; ErrAborted and ErrAnswers are the expected
// ones.
func (t *Terminal) ask(ctx context.Context, q question) (answer, error) {
	t.asked++
	t.printf("\n%s\n", t.bold(t.look.Fold(printable(q.Text))))
	for i, o := range q.Options {
		t.printf("%s\n", t.look.Fold(fmt.Sprintf("  %d. %s", i+1, printable(o))))
	}
	if len(q.Options) > 0 {
		t.printf("  %d. other\n", len(q.Options)+1)
	}
	switch {
	case t.tty && len(q.Options) == 0:
		t.hint("(an empty line ends the answer, Ctrl-D the interview)")
	case t.tty:
		t.hint("(1 to %d, or your own words and then an empty line; Ctrl-D ends the interview)", len(q.Options)+1)
	}
	for {
		said, err := t.words(ctx, q)
		if err != nil {
			return answer{}, err
		}
		n, isNumber := optionNumber(said)
		switch menu := len(q.Options) > 0; {
		case menu && isNumber && n >= 1 && n <= len(q.Options):
			t.echo(fmt.Sprintf("%d. %s", n, q.Options[n-1]))
			return answer{Text: q.Options[n-1], Option: n}, nil
		case menu && (isNumber && n == len(q.Options)+1 || t.tty && strings.EqualFold(said, "other")):
			q.Options = nil
			if t.tty {
				t.hint("(your answer; an empty line ends it)")
			}
		case menu && isNumber && t.tty:
			t.hint("there is no option %d", n)
		default:
			t.echo(said)
			return answer{Text: said}, nil
		}
	}
}

// words reads an answer: the number of an option, else the lines up to an empty one (on a terminal) or one line.
// Leading empty lines are skipped.
func (t *Terminal) words(ctx context.Context, q question) (string, error) {
	var lines []string
	for size := 0; len(lines) == 0 || t.tty && size <= maxTextBytes; {
		line, err := t.line(ctx, q)
		if err != nil {
			return "", err
		}
		said := cleanAnswer(line)
		if said == "" && len(lines) > 0 {
			break
		}
		if said != "" {
			lines = append(lines, line)
			size += len(line) + 1
		}
		_, isNumber := optionNumber(said)
		if len(lines) == 1 && len(q.Options) > 0 && (isNumber || strings.EqualFold(said, "other")) {
			break
		}
	}
	return cleanAnswer(strings.Join(lines, "\n")), nil
}

// line reads one line. The end of input ends the interview.
func (t *Terminal) line(ctx context.Context, q question) (string, error) {
	if t.tty {
		t.printf("%s", t.bold("> "))
	}
	line, err := t.lines.Next(ctx)
	if err != nil && t.tty {
		t.printf("\n")
	}
	switch {
	case ctx.Err() != nil:
		return "", aborted(ctx)
	case err != nil && t.tty: // Ctrl-D
		return "", ErrAborted
	case errors.Is(err, io.EOF):
		return "", fmt.Errorf("%w at question %d: %s", ErrAnswers, t.asked,
			quoteShort(text.OneLine(printable(q.Text))))
	}
	return line, err
}

// echo prints an answer that was not typed, so that the output is complete.
func (t *Terminal) echo(said string) {
	if !t.tty {
		t.printf("> %s\n", printable(said))
	}
}

func (t *Terminal) hint(format string, args ...any) {
	t.printf("%s\n", t.dim(fmt.Sprintf(format, args...)))
}

// optionNumber reads "2", "2." and "2)".
func optionNumber(s string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimRight(s, ".)"))
	return n, err == nil && n >= 0 && len(s) <= 6
}

// cleanAnswer removes escape sequences of terminal keys, such as arrow keys, from a line.
func cleanAnswer(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(escapeSequence().ReplaceAllString(s, ""), "")))
}

// escapeSequence matches the bytes of a terminal key other than a character.
var escapeSequence = pattern.New(`\x1b(?:[\[O][^\x40-\x7e]*[\x40-\x7e]?)?`)

// say shows the model's text.
func (t *Terminal) say(said string) {
	if said = printable(said); said != "" {
		t.printf("\n%s\n", t.look.Fold(said))
	}
}

// step shows a read of the model; warn shows a problem that does not end the interview.
func (t *Terminal) step(what string) { t.marked("2", "· ", what) }
func (t *Terminal) warn(what string) { t.marked("33", "! ", what) }

func (t *Terminal) marked(style, mark, what string) {
	if what = text.OneLine(printable(what)); what != "" {
		t.printf("%s\n", t.look.Paint(style, mark+what))
	}
}

// wait shows that the model is working, on a terminal that can remove the line.
func (t *Terminal) wait() {
	if !t.look.Color || t.live {
		return
	}
	t.printf("%s", t.dim(strings.TrimSpace("thinking… "+t.spent)))
	t.live = true
}

// usage stores the count, which is shown while the model works and at the end.
func (t *Terminal) usage(tokens int64, cost float64) {
	if t.spent = view.Count(tokens) + " tokens"; cost > 0 {
		t.spent += ", " + view.Money(cost)
	}
}

// ErrEdit means that the user wants to edit the plan.
var ErrEdit = errors.New("the user edits the plan")

// Approve shows the plan and asks the user to accept it. The error is ErrEdit, an *Objection, or Ask's own.
func (t *Terminal) Approve(ctx context.Context, b *Bundle) error {
	t.summary(b)
	a, err := t.ask(ctx, question{
		Text:    "Is this the plan? Accept it, edit it, or describe in your own words what is wrong.",
		Options: []string{"accept it", "edit it in your editor"},
	})
	switch {
	case err != nil:
		return err
	case a.Option == 0:
		return &Objection{a.Text}
	case a.Option == 2:
		return ErrEdit
	}
	t.approved = true
	return nil
}

// summary shows a seed: its tasks, test files, open questions, blockers and scope notes.
func (t *Terminal) summary(b *Bundle) {
	t.printf("\n") // also removes the live line
	if text := printable(b.Meta.TLDR); text != "" {
		t.printf("%s\n\n", t.look.Fold(text))
	}
	t.printf("%s\n", t.bold(text.Plural(len(b.Tasks), "task")))
	for _, task := range b.Tasks {
		t.printf("  %s  %s  %s\n", printable(task.ID), printable(text.OneLine(task.Title)),
			t.dim("("+criteriaCount(len(task.AcceptanceCriteria))+", "+
				text.Plural(len(validator.AcceptanceTests(b.testPaths(), task.ID)), "test file")+")"))
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{"open questions", b.Meta.OpenQuestions}, {"blockers", b.Meta.Blockers}, {"left out", b.Meta.ScopeNotes}} {
		if len(list.lines) > 0 {
			t.printf("%s\n", t.bold(list.name))
		}
		for _, l := range list.lines {
			t.printf("%s\n", t.look.Fold("  - "+printable(text.OneLine(l))))
		}
	}
	t.printf("%s\n", t.dim("— "+t.spent+" —"))
}

// printf ignores write errors: a closed terminal ends the interview by its input, not by its output.
func (t *Terminal) printf(format string, args ...any) {
	if t.live {
		t.live = false
		_, _ = io.WriteString(t.out, "\r\x1b[K")
	}
	_, _ = fmt.Fprintf(t.out, format, args...)
}

func (t *Terminal) bold(text string) string { return t.look.Paint("1", text) }
func (t *Terminal) dim(text string) string  { return t.look.Paint("2", text) }

// printable makes model text safe for a terminal: no escape sequences and no reordering characters.
func printable(s string) string { return strings.TrimSpace(text.Visible(s)) }
