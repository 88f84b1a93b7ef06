package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Signals to the first process of the namespace do not fill a queue.
func TestInitKeepsNoSignals(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command("sleep", "1000")
	tree, err := w.box.Start(cmd)
	if err != nil || tree == nil {
		t.Skip("needs a pid namespace: ", err)
	}
	defer func() { tree.Kill(); _ = tree.Wait(cmd); _ = tree.End(cmd) }()
	init := tree.Root
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != unix.SIGKILL && sig != unix.SIGSTOP {
			_ = unix.Kill(init, sig)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", init))
	if err != nil || !strings.Contains(string(status), "ShdPnd:\t0000000000000000\n") {
		t.Errorf("%v\n%s", err, status)
	}
	if out, ok := w.sh(t, w.box, "true"); !ok {
		t.Error(out)
	}
}

// TestProcessNumbersAreNotReused: a lock that names a process of an earlier command names no living one.
func TestProcessNumbersAreNotReused(t *testing.T) {
	w := newWorld(t)
	if has, _ := sandbox.Spaces(); !slices.Contains(has, "pid") {
		t.Skip("needs a pid namespace")
	}
	first, _ := w.sh(t, w.box, "sleep 1000 & echo $!")
	if out, ok := w.sh(t, w.box, "! kill -0 "+strings.TrimSpace(first)+" 2>&1 && ls -d /proc/[0-9]*"); !ok ||
		strings.Count(out, "\n") > 4 {
		t.Errorf("after %s: %s", first, out)
	}
}

// TestGitFileIsReadOnly: a worker may neither write nor replace the .git file of a worktree, but may write next to it.
func TestGitFileIsReadOnly(t *testing.T) {
	w := newWorld(t)
	if has, _ := sandbox.Spaces(); !slices.Contains(has, "mount") {
		t.Skip("needs a mount namespace")
	}
	git := filepath.Join(w.work, ".git")
	if err := os.WriteFile(git, []byte("gitdir: /there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, ok := w.sh(t, w.box, "echo x >.git; rm -rf .git; mv .git away; chmod 777 .git; mkdir -p a; mv a/.. b; >new")
	if data, err := os.ReadFile(git); err != nil || string(data) != "gitdir: /there\n" || !ok {
		t.Errorf("%q, %v, %v: %s", data, err, ok, out)
	}
}

// TestBoxesLeaveNothing: a process that sheds its name, parent, session and environment ends with its command.
func TestBoxesLeaveNothing(t *testing.T) {
	w := newWorld(t)
	o, err := proc.Run(t.Context(), proc.Cmd{Dir: w.work, Box: w.box, Grace: 100 * time.Millisecond, Argv: []string{
		"sh", "-c", `cp "$(command -v sleep)" git-lfs; trap "" TERM; >on
		(env -i PATH="$PATH" setsid sh -c 'trap "" TERM; while [ -e on ]; do (setsid ./git-lfs 1000 &); sleep 0.01; done' &)
		sleep 0.2; exit 3`}})
	if err != nil || o.ExitCode != 3 || !o.Ended {
		t.Errorf("%+v, %v", o, err)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, _ := os.Readlink(link); to == w.work {
			t.Errorf("%s is left", link)
		}
	}
	o, err = proc.Run(t.Context(), proc.Cmd{Dir: w.work, Box: w.box, Argv: []string{"sh", "-c", "kill -USR1 $$"}})
	if err != nil || o.Signal != "SIGUSR1" {
		t.Errorf("%+v, %v", o, err)
	}
}
