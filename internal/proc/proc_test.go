package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sh runs a script to its end.
func sh(t *testing.T, script string, change ...func(*Cmd)) Outcome {
	t.Helper()
	c := Cmd{Argv: []string{"sh", "-c", script}}
	for _, f := range change {
		f(&c)
	}
	o, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// gone reports whether a process does not exist, not even as a zombie.
func gone(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil || n < 2 {
		t.Fatalf("no pid: %q", pid)
	}
	return errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

func TestExit(t *testing.T) {
	o := sh(t, "echo out; echo err >&2; exit 3")
	if o.ExitCode != 3 || o.Signal != "" || string(o.Output) != "out\nerr\n" || o.Truncated ||
		o.Ended || o.Took <= 0 {
		t.Errorf("got %+v", o)
	}
	if o := sh(t, "kill -9 $$"); o.ExitCode != 137 || o.Signal != "SIGKILL" {
		t.Errorf("got %+v", o)
	}
	o = sh(t, "echo out; echo err >&2", func(c *Cmd) { c.SeparateStderr = true })
	if string(o.Output) != "out\n" || string(o.Stderr) != "err\n" {
		t.Errorf("got %q, %q", o.Output, o.Stderr)
	}
}

func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/nonexistent/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cmd  Cmd
		want error
	}{
		{Cmd{}, nil},
		{Cmd{Argv: []string{""}}, nil},
		{Cmd{Argv: []string{"no-such-program"}}, exec.ErrNotFound},
		{Cmd{Argv: []string{"./no-such-program"}, Dir: dir}, exec.ErrNotFound},
		{Cmd{Argv: []string{"sh"}, Env: []string{"PATH="}}, exec.ErrNotFound},
		{Cmd{Argv: []string{"script"}, Dir: dir, Env: []string{"PATH=.:"}}, exec.ErrNotFound},
		{Cmd{Argv: []string{"sh"}, Dir: filepath.Join(dir, "gone")}, ErrDir},
		{Cmd{Argv: []string{"sh"}, Dir: script}, ErrDir},
		{Cmd{Argv: []string{script}}, syscall.ENOENT},
	} {
		o, err := Run(context.Background(), c.cmd)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%q in %q: got %+v, %v", c.cmd.Argv, c.cmd.Dir, o, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "A=1", "A=2", "PWD=/elsewhere"}
	o := sh(t, "echo $A; pwd; echo $PWD", func(c *Cmd) { c.Dir, c.Env = dir, env })
	lines := strings.Split(string(o.Output), "\n")
	if lines[0] != "2" || lines[1] != dir || lines[2] != dir {
		t.Errorf("got %q", lines)
	}
}

func TestStdin(t *testing.T) {
	if o := sh(t, "cat"); len(o.Output) != 0 {
		t.Errorf("without input: %q", o.Output)
	}
	big := strings.Repeat("x", 1<<20)
	o := sh(t, "wc -c", func(c *Cmd) { c.Stdin = strings.NewReader(big) })
	if strings.TrimSpace(string(o.Output)) != strconv.Itoa(len(big)) {
		t.Errorf("got %q", o.Output)
	}
	// A command that does not read, and an input that never ends.
	if o := sh(t, "exit 4", func(c *Cmd) { c.Stdin = strings.NewReader(big) }); o.ExitCode != 4 {
		t.Errorf("got %+v", o)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if o := sh(t, "exit 5", func(c *Cmd) { c.Stdin = r }); o.ExitCode != 5 {
		t.Errorf("got %+v", o)
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := sh(t, "echo first; yes | head -100000; echo last", func(c *Cmd) { c.OutputCap = 1000 })
	text := string(o.Output)
	if !o.Truncated || len(text) > 1100 || !strings.HasPrefix(text, "first\n") ||
		!strings.HasSuffix(text, "y\nlast\n") {
		t.Errorf("%v, %q", o.Truncated, text)
	}
	var note int
	if _, after, ok := strings.Cut(text, "[... "); !ok {
		t.Error("no note")
	} else if _, err := fmt.Sscanf(after, "%d bytes left out", &note); err != nil ||
		note+len(text)-len("[...  bytes left out here ...]\n")-len(strconv.Itoa(note)) != 200011 {
		t.Errorf("the note's %d does not add up", note)
	}
}

func TestLines(t *testing.T) {
	var lines []string
	var errLine string
	o := sh(t, "printf 'a\\n\\nb'; echo err >&2", func(c *Cmd) {
		c.OnErrLine = func(line []byte) { errLine = string(line) }
		c.OnLine = func(line []byte) { lines = append(lines, string(line)) }
	})
	if strings.Join(lines, "|") != "a||b" || errLine != "err" || string(o.Stderr) != "err\n" ||
		string(o.Output) != "a\n\nb" {
		t.Errorf("got %q, %q", lines, o.Output)
	}
}

func TestTimeLimit(t *testing.T) {
	o := sh(t, "echo begun; sleep 1000; echo never", func(c *Cmd) { c.Timeout = 100 * time.Millisecond })
	if !o.TimedOut || o.Canceled || o.ExitCode == 0 || string(o.Output) != "begun\n" {
		t.Errorf("got %+v", o)
	}
}

// TestStubborn: a process that ignores SIGTERM is killed with all its children.
func TestStubborn(t *testing.T) {
	for name, script := range map[string]string{
		"ignores the request": `trap "" TERM; echo $$; while :; do sleep 1000; done`,
		"forks on request":    `trap 'sh -c "trap \"\" TERM; sleep 1000" & ' TERM; echo $$; while :; do sleep 1000 & wait; done`,
		"is stopped":          `echo $$; kill -STOP $$`,
		"child ignores it":    `(trap "" TERM; exec sleep 1000) & echo $!; sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			o := sh(t, script, func(c *Cmd) { c.Timeout, c.Grace = 200*time.Millisecond, 100*time.Millisecond })
			if !o.TimedOut {
				t.Errorf("got %+v", o)
			}
			pid, _, _ := strings.Cut(string(o.Output), "\n")
			if !gone(t, pid) {
				t.Errorf("%s is still there", pid)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	pid := ""
	o, err := Run(ctx, Cmd{Argv: []string{"sh", "-c", "sleep 1000 & echo $!; wait"}, OnLine: func(line []byte) {
		pid = string(line)
		cancel()
	}})
	if err != nil || !o.Canceled || o.TimedOut || !gone(t, pid) {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := Run(ctx, Cmd{Argv: []string{"no-such-program"}}); err != nil || !o.Canceled {
		t.Errorf("canceled beforehand: got %+v, %v", o, err)
	}
}

// TestASecondSignalTakesTheGraceAway: with a grace of an hour, Run would not return otherwise, also if only children of
// the leader are left.
func TestASecondSignalTakesTheGraceAway(t *testing.T) {
	const stay = `while :; do sleep 1000 & wait; done`
	for name, argv := range map[string][]string{
		"SIGKILL": {"sh", "-c", `trap "echo asked" TERM; echo $$; ` + stay},
		"SIGTERM": {"sh", "-c", `sh -c 'trap : TERM; echo $$; while kill -0 $PPID; do sleep 0.05; done 2>/dev/null
			echo asked; ` + stay + `' & wait`},
	} {
		second := make(chan struct{})
		ctx, first := context.WithCancel(WithSecondSignal(context.Background(), second))
		asked := sync.OnceFunc(func() { close(second) })
		pid := ""
		o, err := Run(ctx, Cmd{
			Argv: argv, Grace: time.Hour,
			OnLine: func(line []byte) {
				switch text := string(line); text {
				case "asked":
					asked() // the leader may be asked twice: alone and with its group
				default:
					pid = text
					first()
				}
			},
		})
		if err != nil || !o.Canceled || o.Signal != name || !gone(t, pid) {
			t.Errorf("%s: got %+v, %v", name, o, err)
		}
	}
}

// TestBackgroundIsEnded: the command ends at once; a child in its group keeps the pipe open.
func TestBackgroundIsEnded(t *testing.T) {
	o := sh(t, "sleep 1000 & echo $!")
	if o.ExitCode != 0 || !o.Ended || !gone(t, string(o.Output)) {
		t.Errorf("got %+v, %q", o, o.Output)
	}
}

func TestHeadTail(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 64, 1000} {
		for _, size := range []int{0, 1, limit - 1, limit, limit + 1, 3 * limit, 20000} {
			var all bytes.Buffer
			b := headTail{limit: limit}
			for i := 0; all.Len() < size; i++ {
				piece := bytes.Repeat([]byte{byte('a' + i%26)}, min(1+i%13, size-all.Len()))
				all.Write(piece)
				b.Write(piece)
			}
			out, cut := b.Bytes()
			if cut != (size > limit) {
				t.Errorf("limit %d, size %d: cut is %v", limit, size, cut)
			}
			if !cut && !bytes.Equal(out, all.Bytes()) {
				t.Errorf("limit %d, size %d: got %q, want %q", limit, size, out, all.Bytes())
			}
		}
	}
}

func TestCutsFallBetweenCharacters(t *testing.T) {
	b := headTail{limit: 21}
	b.Write([]byte(strings.Repeat("é", 100)))
	out, cut := b.Bytes()
	if !cut || bytes.ContainsRune(bytes.ToValidUTF8(out, []byte("\uFFFD")), '\uFFFD') {
		t.Errorf("got %q", out)
	}
}

func FuzzHeadTail(f *testing.F) {
	f.Add([]byte("hello\nworld"), 4, 3)
	f.Fuzz(func(t *testing.T, data []byte, limit, step int) {
		if limit < 1 || limit > 1<<16 || step < 1 {
			return
		}
		b := headTail{limit: limit}
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			b.Write(rest[:n])
			rest = rest[n:]
		}
		out, cut := b.Bytes()
		if b.total != int64(len(data)) || cut != (len(data) > limit) || !cut && !bytes.Equal(out, data) ||
			len(out) > limit+64 {
			t.Errorf("limit %d of %d bytes: %d kept, cut %v", limit, len(data), len(out), cut)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbc"), 1)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		if step < 1 {
			return
		}
		var got [][]byte
		s := lineSplitter{max: 100, fn: func(line []byte) { got = append(got, bytes.Clone(line)) }}
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			s.Write(rest[:n])
			rest = rest[n:]
		}
		s.Close()
		want := bytes.Split(data, []byte("\n"))
		if last := len(want) - 1; len(want[last]) == 0 {
			want = want[:last]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i][:min(len(want[i]), 100)]) {
				t.Errorf("line %d: %q", i, got[i])
			}
		}
	})
}

func TestDetach(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	child, err := Detach([]string{"sh", "-c", "echo out; echo err >&2; exit 3"}, "",
		[]string{"PATH=" + os.Getenv("PATH")}, log)
	if err != nil {
		t.Fatal(err)
	}
	code := <-child.Ended
	text, err := os.ReadFile(log)
	if code != 3 || err != nil || string(text) != "out\nerr\n" {
		t.Errorf("exit code %d, %q, %v", code, text, err)
	}
	if _, err := Detach([]string{"no-such-program"}, "", nil, log); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := Detach([]string{"sh"}, "", nil, filepath.Join(log, "x")); err == nil {
		t.Error("a log that cannot be written was taken")
	}
}

func TestAttach(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	env := []string{"PATH=" + os.Getenv("PATH"), "WHO=me"}
	if err := Attach("", []string{"sh", "-c", "echo $WHO; exit 3"}, env, nil, nil, out, nil); err == nil {
		t.Error("no error from a command that fails")
	}
	if said, _ := os.ReadFile(file); string(said) != "me\n" {
		t.Errorf("it said %q", said)
	}
}

// TestHeadOnly: a command ends when its output is long enough, and its standard error is kept separately.
func TestHeadOnly(t *testing.T) {
	o := sh(t, "echo why >&2; exec yes", func(c *Cmd) { c.HeadOnly, c.SeparateStderr, c.OutputCap = true, true, 3 })
	if string(o.Output) != "y\ny" || !o.Truncated || o.Signal != "SIGPIPE" || string(o.Stderr) != "why\n" {
		t.Errorf("%+v, %q, %q", o, o.Output, o.Stderr)
	}
	o = sh(t, "printf 123", func(c *Cmd) { c.HeadOnly, c.OutputCap = true, 3 })
	if string(o.Output) != "123" || o.Truncated {
		t.Errorf("%+v, %q", o, o.Output)
	}
}

// TestLasting: a background child continues, unless it keeps the output open.
func TestLasting(t *testing.T) {
	lasting := func(c *Cmd) { c.Lasting = true }
	o := sh(t, "sleep 1000 >/dev/null 2>&1 & echo $!", lasting)
	pid, err := strconv.Atoi(strings.TrimSpace(string(o.Output)))
	if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Errorf("%q has ended: %+v", o.Output, o)
	}
	o = sh(t, "sleep 1000 & echo $!", lasting)
	if !o.Ended || !gone(t, string(o.Output)) {
		t.Errorf("%q holds the output: %+v", o.Output, o)
	}
}
