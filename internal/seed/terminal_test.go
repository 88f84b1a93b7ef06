package seed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func TestAnswersFromAPipe(t *testing.T) {
	options := []string{"yes", "no"}
	cases := []struct {
		name, in string
		options  []string
		want     answer
		err      error
	}{
		{"a number", "2\n", options, answer{"no", 2}, nil},
		{"a number with a dot", "2.\r\n", options, answer{"no", 2}, nil},
		{"words", "maybe\n", options, answer{"maybe", 0}, nil},
		{"no newline at the end", "1", options, answer{"yes", 1}, nil},
		{"other", "3\nmaybe\n", options, answer{"maybe", 0}, nil},
		{"other without words", "3\n", options, answer{}, ErrAnswers},
		{"a number that is no option", "17\n", options, answer{"17", 0}, nil},
		{"a number without options", "3\n", nil, answer{"3", 0}, nil},
		{"zero", "0\n", options, answer{"0", 0}, nil},
		{"empty lines", "\n  \n1\n", options, answer{"yes", 1}, nil},
		{"nothing", "", options, answer{}, ErrAnswers},
		{"only empty lines", "\n\n", options, answer{}, ErrAnswers},
		{"escape sequences", "\x1b[31mred\x1b[0m\x07\n", nil, answer{"red", 0}, nil},
		{"not UTF-8", "a\xffb\n", nil, answer{"ab", 0}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			got, err := NewTerminal(text.NewLines(strings.NewReader(c.in)), &out,
				view.Terminal{}, false).ask(context.Background(), question{Text: "Well?", Options: c.options})
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%+v %v", got, err)
			}
			if errors.Is(err, ErrAnswers) &&
				(!strings.Contains(err.Error(), "question 1") || !strings.Contains(err.Error(), "Well?")) {
				t.Error(err)
			}
		})
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	_, err := NewTerminal(text.NewLines(strings.NewReader(strings.Repeat("x", maxTextBytes+2)+"\n")), io.Discard,
		view.Terminal{}, false).ask(context.Background(), question{Text: "?"})
	if err == nil || errors.Is(err, ErrAnswers) {
		t.Error(err)
	}
}

func TestQuestionsCannotDriveTheTerminal(t *testing.T) {
	var out bytes.Buffer
	term := NewTerminal(text.NewLines(strings.NewReader("1\n")), &out, view.Terminal{}, false)
	term.say("a\x1b]0;title\x07b")
	term.step("one\ntwo\u202e")
	if _, err := term.ask(context.Background(),
		question{Text: "\x1b[2Jq\x9b31m", Options: []string{"\ro"}}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\r\u009b\u202e") {
		t.Errorf("%q", out.String())
	}
	if !strings.Contains(out.String(), "one two") {
		t.Errorf("%q", out.String())
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	term := NewTerminal(text.NewLines(r), io.Discard, view.Terminal{}, true)
	cancel()
	_, err := term.ask(ctx, question{Text: "?"})
	for _, want := range []error{ErrAborted, context.Canceled} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}
