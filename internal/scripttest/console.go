package scripttest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-tilth/git-tilth/internal/ttytest"
)

// terminals is read-locked while a command has a terminal and therefore a process session. It is write-locked while
// this process runs validators, because it then ends every child in another process session.
var terminals sync.RWMutex

// console runs a command at a terminal of 80 columns, types each text when the screen shows its prompt, and writes the
// screen's whole output to $WORK/screen.
func console(ts *testscript.TestScript, _ bool, args []string) {
	var waits [][2]string
	for len(args) > 2 && args[0] == "-type" {
		waits, args = append(waits, [2]string{args[1], args[2]}), args[3:]
	}
	need(ts, args, 2, "console [-type WHEN TEXT]... CODE CMD ARGS...")
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	terminals.RLock()
	defer terminals.RUnlock()
	tty, err := ttytest.Run(cmd, 30, 80)
	ts.Check(err)
	defer tty.Close()
	hung := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer hung.Stop()
	var screen bytes.Buffer
	chunk := make([]byte, 4096)
	for seen := 0; ; {
		n, err := tty.Read(chunk)
		screen.Write(chunk[:n])
		if len(waits) > 0 {
			if i := bytes.Index(screen.Bytes()[seen:], []byte(waits[0][0])); i >= 0 {
				seen += i + len(waits[0][0])
				_, werr := tty.WriteString(strings.NewReplacer(`\n`, "\n", `\x03`, "\x03").Replace(waits[0][1]))
				ts.Check(werr)
				waits = waits[1:]
			}
		}
		if err != nil {
			break // the last process that had the terminal has closed it
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "screen")), screen.Bytes(), 0o644))
	code := 0
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = 128 + int(status.Signal()) // a signal interrupted git, which had started the command
		}
	}
	ts.Logf("[screen]\n%s", screen.String())
	if len(waits) > 0 {
		ts.Fatalf("the screen never showed %q", waits[0][0])
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%s: exit code %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// environ returns the script's environment, as its commands get it.
func environ(ts *testscript.TestScript) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM",
		"TILTH_SESSIONS_DIR", "TILTH_RESUME_NOTICE", "TILTH_AGAIN",
		"TILTH_BASE_URL", "TILTH_WORKER_MODEL", "LC_ALL", "GOCACHE", "GOFLAGS", "NO_COLOR", "WORK", "FAKEAGENT_SCRIPT",
		"FAKEAGENT_LOG", "COMPLETION", "TILTH_SANDBOX", "GH_CONFIG_DIR", "GH_TOKEN"} {
		if v := ts.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return append(out, "TERM=xterm")
}

// leaks searches every file under a directory for a text. A session's worktree does not count, because its worker may
// write anything.
func leaks(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, args, 2, "leaks DIR TEXT")
	var found []string
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "workspace" || d.Name() == "judge" || d.Name() == "caches"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(args[1])) {
			found = append(found, path)
		}
		return err
	}))
	if (len(found) > 0) == neg {
		ts.Fatalf("files that hold %q: %v", args[1], found)
	}
}
