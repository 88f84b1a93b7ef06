package seed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/ttytest"
	"github.com/git-tilth/git-tilth/internal/view"
)

// childMark makes the test binary an interview at its own terminal, so that
// signals and the line discipline are the real ones.
const childMark = "SEED_TEST_CHILD"

// TestChild is the child process; by itself it does nothing.
func TestChild(t *testing.T) {
	config := strings.Split(os.Getenv(childMark), "\n")
	if len(config) != 3 {
		return
	}
	url, source, sess := config[0], config[1], config[2]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	d := interviewDeps(t, url, source, filepath.Join(sess, "workspace"), sess)
	d.Terminal = NewTerminal(text.NewLines(os.Stdin), os.Stdout,
		view.Terminal{TTY: true, Color: true, Width: 80}, os.Getenv("SEED_TEST_TTY") != "")
	b, err := Interview(ctx, d)
	switch {
	case errors.Is(err, ErrAborted):
		fmt.Printf("\nCHILD: aborted, interrupted %v\n", errors.Is(err, context.Canceled))
	case err != nil:
		fmt.Printf("\nCHILD: %v\n", err)
	default:
		fmt.Printf("\nCHILD: %d tasks, %d tokens\n", len(b.Tasks), b.Meta.Tokens)
	}
}

// console is a child at a pseudo-terminal, and its session directory.
type console struct {
	*ttytest.Console
	sess string
}

func start(t *testing.T, steps ...scripted.Step) *console {
	t.Helper()
	server, err := scripted.Start(&scripted.Script{Interview: steps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	_, sess := sessionDirs(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childMark+"="+strings.Join([]string{server.URL, sourceTree(t), sess}, "\n"),
		"SEED_TEST_TTY=1", "TERM=xterm", "NO_COLOR=")
	return &console{Console: ttytest.Start(t, cmd), sess: sess}
}

func TestInterviewAtATerminal(t *testing.T) {
	c := start(t, fullScript(t)...)
	c.Expect("What about floats?")
	c.Expect("3. other")
	c.Expect("> ")
	c.Send("\r") // an empty line is no answer
	c.Expect("> ")
	c.Send("9\r")
	c.Expect("there is no option 9")
	c.Send("2\r")
	c.Expect("What should sub(\"a\", 1) do?")
	c.Expect("> ")
	c.Send("raise\x1b[A TypeError\r")
	c.Expect("> ")
	c.Send("with the argument's name\r\r")
	c.Expect("task-without-test")
	c.Expect("2 tasks")
	c.Expect("720 tokens")
	c.Expect("CHILD: 2 tasks, 720 tokens")
	if !strings.Contains(c.Seen(), "\x1b[1m") {
		t.Error("no colours at a terminal")
	}
	_, text := transcriptRoles(t, c.sess)
	if !strings.Contains(text, `raise TypeError\nwith the argument's name`) {
		t.Error("the longer answer is not in the transcript")
	}
	if _, err := os.Stat(filepath.Join(c.sess, "prd.json")); err != nil {
		t.Error(err)
	}
}

func TestOtherAndOwnWordsAtAMenu(t *testing.T) {
	c := start(t, step(ask(t, "First?", "a", "b")),
		scripted.Step{Tools: []scripted.Tool{ask(t, "Second?", "a", "b")}, Expect: scripted.Strings{"my own\\nwords"}},
		scripted.Step{Tools: []scripted.Tool{writeSeed(t, 1, nil)}, Expect: scripted.Strings{"straight away"}})
	c.Expect("First?")
	c.Expect("> ")
	c.Send("3\r")
	c.Expect("your answer")
	c.Send("my own\rwords\r\r")
	c.Expect("Second?")
	c.Expect("> ")
	c.Send("straight away\r\r")
	c.Expect("CHILD: 1 tasks")
}

func TestEndsAtATerminal(t *testing.T) {
	cases := map[string]struct{ keys, says string }{
		"Ctrl-D":                  {"\x04", "CHILD: aborted, interrupted false"},
		"Ctrl-C":                  {"\x03", "CHILD: aborted, interrupted true"},
		"Ctrl-C in a line":        {"half a line\x03", "CHILD: aborted, interrupted true"},
		"Ctrl-D in a long answer": {"own words\r\x04", "CHILD: aborted, interrupted false"},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			c := start(t, step(ask(t, "Well?", "a", "b")))
			c.Expect("> ")
			c.Send(k.keys)
			c.Expect(k.says)
			noBundle(t, c.sess)
		})
	}
}

func TestCtrlCWhileTheModelThinks(t *testing.T) {
	c := start(t, scripted.Step{Tools: []scripted.Tool{call(t, "read_file", map[string]any{"path": "calc.py"})}},
		scripted.Step{Hang: true})
	c.Expect("read_file calc.py")
	c.Send("\x03")
	c.Expect("CHILD: aborted, interrupted true")
	noBundle(t, c.sess)
}

func TestKilledInterviewLeavesNoBundle(t *testing.T) {
	c := start(t, step(ask(t, "Well?")))
	c.Expect("> ")
	c.Kill()
	noBundle(t, c.sess)
	if roles, _ := transcriptRoles(t, c.sess); strings.Join(roles, " ") != "system user assistant" {
		t.Errorf("%v", roles)
	}
}

func TestTerminalThatGoesAway(t *testing.T) {
	c := start(t, step(ask(t, "Well?")))
	c.Expect("> ")
	c.HangUp() // it ends, by SIGHUP or by the end of its input
	noBundle(t, c.sess)
}
