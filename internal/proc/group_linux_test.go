package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// withoutGroups makes control groups unavailable for the rest of the test.
func withoutGroups(t *testing.T) {
	was := ownGroup
	ownGroup = func() string { return "" }
	t.Cleanup(func() { ownGroup = was })
}

// disguised starts a process without environment and parent, in a separate session, that calls itself git.
func disguised(t *testing.T) (script string) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(t.TempDir(), "git-gc")
	if err := os.Symlink(sleep, git); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("(env -i setsid sh -c 'echo $$; exec %s 1000' &)", git)
}

// TestDisguisedProcessesAreEnded: with and without a group, in the sandbox and outside, also while other commands run.
func TestDisguisedProcessesAreEnded(t *testing.T) {
	t.Run("in groups", endDisguised)
	withoutGroups(t)
	t.Run("without", endDisguised)
}

func endDisguised(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan bool), make(chan Outcome)
	go func() {
		o, _ := Run(ctx, Cmd{Argv: []string{"sh", "-c", "echo; sleep 1000"}, OnLine: func([]byte) { ready <- true }})
		ended <- o
	}()
	<-ready
	boxes := map[string]*sandbox.Box{"outside": nil}
	if sandbox.Probe().Err == nil {
		boxes["in the sandbox"] = &sandbox.Box{}
	}
	for name, box := range boxes {
		dir := t.TempDir()
		pid := filepath.Join(dir, "pid")
		if box != nil {
			box.Write = append(box.Write, dir)
		}
		o, err := Run(t.Context(), Cmd{Box: box, Dir: dir, Grace: 300 * time.Millisecond, Argv: []string{"sh", "-c",
			"exec >/dev/null; " + strings.Replace(disguised(t), "echo $$", "echo $$ >"+pid, 1) +
				"; while ! [ -s pid ]; do :; done; while grep -q sh /proc/$(cat pid)/comm; do :; done"}})
		data, _ := os.ReadFile(pid)
		if err != nil || o.ExitCode != 0 || len(data) == 0 {
			t.Fatalf("%s: %+v %s, %v", name, o, o.Output, err)
		}
		if !o.Ended || living(dir) {
			t.Errorf("%s: it was not ended: %+v", name, o)
		}
	}
	cancel()
	<-ended
}

// living reports whether a process has dir as its working directory.
func living(dir string) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	return slices.ContainsFunc(links, func(link string) bool { to, _ := os.Readlink(link); return to == dir })
}

// TestWhoForksOnIsEnded: each process starts the next one in a new session, and exits.
func TestWhoForksOnIsEnded(t *testing.T) {
	dir := t.TempDir()
	chain := filepath.Join(dir, "chain")
	if err := os.WriteFile(chain, []byte("setsid -f sh chain\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := Run(t.Context(), Cmd{Dir: dir, Grace: 100 * time.Millisecond,
		Argv: []string{"sh", "-c", "env -i setsid -f sh chain >/dev/null 2>&1; exit 3"}})
	if err != nil || o.ExitCode != 3 || living(dir) {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestGroupIsEndedAfterAKill: the group of a dead process is killed and removed, another one stays.
func TestGroupIsEndedAfterAKill(t *testing.T) {
	if ownGroup() == "" {
		t.Skip("no control group can be made")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(ownGroup(), fmt.Sprintf(groupName, pidNamespace(), dead.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	held := newGroup(nil)
	defer held.end()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := group(dir).start(cmd, (*exec.Cmd).Start); err != nil {
		t.Fatal(err)
	}
	EndStale()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("it ended by itself: %v", err)
	}
	EndStale()
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
	if _, err := os.Stat(string(held)); err != nil {
		t.Error(err)
	}
}

// TestCommandsRunWhereNoGroupTakesThem: a group that was removed, or is a plain directory, is no reason to fail.
func TestCommandsRunWhereNoGroupTakesThem(t *testing.T) {
	was := ownGroup
	t.Cleanup(func() { ownGroup = was })
	dir := t.TempDir()
	ownGroup = func() string { return dir }
	if o := sh(t, "echo here"); o.ExitCode != 0 || string(o.Output) != "here\n" {
		t.Errorf("%+v %s", o, o.Output)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

// TestLimits: a command that starts processes without end, or fills the memory, is killed, and others are not.
func TestLimits(t *testing.T) {
	if has, _ := sandbox.Spaces(); !slices.Contains(has, "pid") {
		t.Skip("needs a pid namespace")
	}
	dir := t.TempDir()
	box := &sandbox.Box{MaxProcesses: 200, Write: []string{dir}}
	o, err := Run(t.Context(), Cmd{Box: box, Dir: dir, Timeout: time.Minute, Argv: []string{"sh", "-c",
		"i=0; while [ $i -lt 3000 ]; do sleep 1000 & i=$((i+1)); done; wait"}})
	if err != nil || o.TimedOut || !strings.Contains(string(o.Output), "tilth.maxProcesses") || living(dir) {
		t.Errorf("%v %s, %v", o.Exceeded, o.Output, err)
	}
	box.MaxMemory = 64 << 20
	o, err = Run(t.Context(), Cmd{Box: box, Dir: dir, Timeout: time.Minute,
		Argv: []string{"python3", "-c", "import time; x = b'x' * (200 << 20); time.sleep(1000)"}})
	if err != nil || !strings.Contains(string(o.Output), "tilth.maxMemory") {
		t.Errorf("%+v %s, %v", o, o.Output, err)
	}
	if o, err := Run(t.Context(), Cmd{Box: box, Dir: dir, Argv: []string{"true"}}); err != nil || o.ExitCode != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}
