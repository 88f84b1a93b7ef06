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
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/git-tilth/git-tilth/internal/model/scripted"
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
	d.Frontend = NewTerminal(os.Stdin, os.Stdout, os.Getenv("SEED_TEST_TTY") != "")
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

// console is a child at a pseudo-terminal and what it has shown so far.
type console struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	seen strings.Builder
	at   int
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
	c := &console{t: t, sess: sess, cmd: exec.Command(os.Args[0], "-test.run=^TestChild$")}
	c.cmd.Env = append(os.Environ(), childMark+"="+strings.Join([]string{server.URL, sourceTree(t), sess}, "\n"), "SEED_TEST_TTY=1", "TERM=xterm", "NO_COLOR=")
	if c.tty, err = pty.Start(c.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.tty.Close(); _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	keepOutput(t, c.tty)
	return c
}

// expect reads until the text has been shown behind what was expected before.
func (c *console) expect(text string) {
	c.t.Helper()
	buf := make([]byte, 4096)
	for {
		if i := strings.Index(c.seen.String()[c.at:], text); i >= 0 {
			c.at += i + len(text)
			return
		}
		n, err := c.tty.Read(buf)
		c.seen.Write(buf[:n])
		if err != nil && n == 0 {
			c.t.Fatalf("%q was not shown: %v\n%s", text, err, c.seen.String())
		}
	}
}

func (c *console) send(text string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

func TestInterviewAtATerminal(t *testing.T) {
	c := start(t, fullScript(t)...)
	c.expect("What about floats?")
	c.expect("3. other")
	c.expect("> ")
	c.send("\r") // an empty line is no answer
	c.expect("> ")
	c.send("9\r")
	c.expect("there is no option 9")
	c.send("2\r")
	c.expect("What should sub(\"a\", 1) do?")
	c.expect("> ")
	c.send("raise\x1b[A TypeError\r")
	c.expect("> ")
	c.send("with the argument's name\r\r")
	c.expect("task-without-test")
	c.expect("2 tasks")
	c.expect("720 tokens")
	c.expect("CHILD: 2 tasks, 720 tokens")
	if !strings.Contains(c.seen.String(), "\x1b[1m") {
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
	c.expect("First?")
	c.expect("> ")
	c.send("3\r")
	c.expect("your answer")
	c.send("my own\rwords\r\r")
	c.expect("Second?")
	c.expect("> ")
	c.send("straight away\r\r")
	c.expect("CHILD: 1 tasks")
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
			c.expect("> ")
			c.send(k.keys)
			c.expect(k.says)
			noBundle(t, c.sess)
		})
	}
}

func TestCtrlCWhileTheModelThinks(t *testing.T) {
	c := start(t, scripted.Step{Tools: []scripted.Tool{call(t, "read_file", map[string]any{"path": "calc.py"})}}, scripted.Step{Hang: true})
	c.expect("read calc.py")
	c.send("\x03")
	c.expect("CHILD: aborted, interrupted true")
	noBundle(t, c.sess)
}

func TestKilledInterviewLeavesNoBundle(t *testing.T) {
	c := start(t, step(ask(t, "Well?")))
	c.expect("> ")
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	noBundle(t, c.sess)
	if roles, _ := transcriptRoles(t, c.sess); strings.Join(roles, " ") != "system user assistant" {
		t.Errorf("%v", roles)
	}
}

func TestTerminalThatGoesAway(t *testing.T) {
	c := start(t, step(ask(t, "Well?")))
	c.expect("> ")
	c.tty.Close()
	_ = c.cmd.Wait() // it ends, by SIGHUP or by the end of its input
	noBundle(t, c.sess)
}
