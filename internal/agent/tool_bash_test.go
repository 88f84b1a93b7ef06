package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBash(t *testing.T) {
	f := newFixture(t, ToolOptions{Env: append(os.Environ(), "GREETING=hello")})
	f.put("sub/x", "", 0o644)
	f.ok(f.call("bash", "command", "echo out; echo err >&2; exit 3"), "[exit code 3]\nout\nerr\n")
	f.ok(f.call("bash", "command", "echo $GREETING; pwd"), "hello\n"+f.dir)
	f.ok(f.call("bash", "command", "true"), "[exit code 0]\n(no output)")
	f.ok(f.call("bash", "command", "cat"), "[exit code 0]")
	f.ok(f.call("bash", "command", "kill -9 $$"), "[exit code 137, ended by SIGKILL]")
	f.ok(f.call("bash", "command", "printf 'caf\\351'"), "caf\uFFFD")
	f.ok(f.call("bash", "command", "printf 'a\\000\\033[1mb\\177\\302\\205\\t\\r\\n'"),
		"a\\x00\\x1b[1mb\\x7f\\x85\t\r\n")
	f.ok(f.call("bash", "command", "nosuchcommand"), "[exit code 127]")
	res := f.call("bash", "command", "echo first; yes x | head -100000; echo last")
	f.ok(res, "left out here")
	if !strings.Contains(res.Output, "first\n") || !strings.HasSuffix(res.Output, "last\n") ||
		res.Chars > bashOutput+200 {
		t.Errorf("got %d characters: %s", res.Chars, res.Output)
	}
	f.fails(f.call("bash", "command", " "), "empty")
	f.fails(f.call("bash", "command", "a\x00b"), "NUL")
}

func TestBashIsBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	f := newFixture(t, ToolOptions{})
	f.ok(f.call("bash", "command", "[[ abc == a* ]] && echo yes"), "yes")
}

func TestBashFallsBackToSh(t *testing.T) {
	bin := t.TempDir()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sh, filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, ToolOptions{Env: []string{"PATH=" + bin}})
	f.ok(f.call("bash", "command", "echo yes"), "[exit code 0]\nyes")
	f = newFixture(t, ToolOptions{Env: []string{"PATH=/nonexistent"}})
	f.fails(f.call("bash", "command", "echo yes"), "sh: executable file not found")
}

func TestBashTimeLimit(t *testing.T) {
	f := newFixture(t, ToolOptions{BashTimeout: 100 * time.Millisecond})
	f.fails(f.call("bash", "command", "echo begun; sleep 1000"), "[ended after the time limit of 100ms]\nbegun\n")
	f.fails(f.raw("bash", `{"command":"sleep 1000","timeout":0.05}`), "time limit of 50ms")
	most, err := f.limit(arguments{num: map[string]float64{"timeout": 99999}})
	if most != maxBashTimeout || err != nil {
		t.Errorf("the longest limit is %s, %v", most, err)
	}
}

func TestBashEndsTheBackground(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.ok(f.call("bash", "command", "sleep 1000 & echo $! > pid; echo done"),
		"left in the background were ended]\ndone\n")
	pid := strings.TrimSpace(f.content("pid"))
	f.ok(f.call("bash", "command", "kill -0 "+pid+" 2>/dev/null && echo alive || echo ended"), "ended")
}

func TestBashInterrupted(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	fifo := filepath.Join(f.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		// Opening it waits for the command.
		if r, err := os.Open(fifo); err == nil {
			r.Close()
		}
		cancel()
	}()
	f.fails(f.Call(ctx, "bash", `{"command":"exec 3>fifo; sleep 1000"}`), "[interrupted]")
	f.fails(f.Call(ctx, "bash", `{"command":"touch again"}`), "interrupted")
	if _, err := os.Stat(filepath.Join(f.dir, "again")); err == nil {
		t.Error("a command was run after the interrupt")
	}
}

func TestBashIsGuarded(t *testing.T) {
	f := newFixture(t, ToolOptions{})
	f.blocks(f.call("bash", "command", "touch x; git reset --hard"), "git reset --hard is not allowed")
	if _, err := os.Stat(filepath.Join(f.dir, "x")); err == nil {
		t.Error("a part of a blocked command was run")
	}
	base := filepath.Dir(f.dir)
	box, err := OpenTools(f.dir, ToolOptions{Protected: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if res := box.Call(context.Background(), "bash", `{"command":"cat ../outside/secret"}`); res.Blocked == "" {
		t.Errorf("got %+v", res)
	}
	if res := box.Call(context.Background(), "bash", `{"command":"ls `+f.dir+`"}`); res.Blocked != "" {
		t.Errorf("got %+v", res)
	}
}
