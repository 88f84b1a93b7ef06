package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary act as other git-tilths: one that is killed while it runs a command, and one that ends
// normally.
func TestMain(m *testing.M) {
	switch os.Getenv("PROC_TEST_ROLE") {
	case "killed":
		Keep()
		KeepFile(os.Getenv("PROC_TEST_FILE"), "kept")
		_, _ = Run(context.Background(), Cmd{Argv: []string{"bash", "-c", os.Getenv("PROC_TEST_SCRIPT")},
			Dir: os.TempDir(), OnLine: func(line []byte) { fmt.Println(string(line)) }})
		os.Exit(0)
	case "forgets":
		forget := Keep()
		KeepFile(os.Getenv("PROC_TEST_FILE"), "kept")
		startKeeper()
		word := fmt.Sprintf("8%d", os.Getpid())
		if err := exec.Command("setsid", "sleep", word).Start(); err != nil {
			os.Exit(1)
		}
		forget()
		fmt.Println(word)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRunawaysAreEnded: children that left the group, the session, the environment, or all of them. Each script
// prints the pid of a child that would stay for a thousand seconds.
func TestRunawaysAreEnded(t *testing.T) {
	t.Run("in groups", endRunaways)
	withoutGroups(t)
	t.Run("without", endRunaways)
}

func endRunaways(t *testing.T) {
	for name, script := range map[string]string{
		"background":            "sleep 1000 & echo $!",
		"own group":             "set -m; sleep 1000 & echo $!",
		"own group, no mark":    "set -m; env -i sleep 1000 & echo $!",
		"own session":           "setsid sleep 1000 & echo $!",
		"double fork":           "(setsid sh -c 'echo $$; exec sleep 1000' &)",
		"no mark":               "env -i setsid sh -c 'echo $$; exec sleep 1000' &",
		"no mark, double fork":  "(env -i setsid sh -c 'echo $$; exec sleep 1000' &)",
		"ignores the request":   "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' &",
		"children of a runaway": "setsid sh -c 'env -i setsid sleep 1000 & echo $!; wait' &",
		"holds no pipe":         "setsid sleep 1000 >/dev/null 2>&1 & echo $!",
	} {
		t.Run(name, func(t *testing.T) {
			// The command waits until the child has started: it prints the pid, or the pid is known.
			script := "exec 3>&1; f=$(mktemp -u); mkfifo $f; { " + script + "\n} >$f & head -1 $f; rm $f"
			o, err := Run(context.Background(), Cmd{Argv: []string{"bash", "-c", script}, Grace: 300e6})
			if err != nil || o.ExitCode != 0 {
				t.Fatalf("%+v, %s, %v", o, o.Output, err)
			}
			if !o.Ended || !gone(t, string(o.Output)) {
				t.Errorf("%s is still there: %+v", o.Output, o)
			}
		})
	}
}

// TestOthersAreSpared: commands never end another command's runaway child or a child of another part of the program.
func TestOthersAreSpared(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(t.TempDir(), "git")
	if err := os.Symlink(sleep, git); err != nil {
		t.Fatal(err)
	}
	// A child in a separate group, and a git in a separate session.
	foreign := exec.Command("sleep", "1000")
	foreign.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ourGit := exec.Command(git, "1000")
	ourGit.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, c := range []*exec.Cmd{foreign, ourGit} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
	}
	detached, err := Detach([]string{"sleep", "1000"}, "", nil, os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(detached.PID, syscall.SIGKILL)
		<-detached.Ended
	}()
	spared := []string{strconv.Itoa(foreign.Process.Pid), strconv.Itoa(ourGit.Process.Pid), strconv.Itoa(detached.PID)}
	if o := sh(t, "env -i setsid sleep 1000 & echo $!"); !o.Ended || !gone(t, string(o.Output)) {
		t.Errorf("%s is still there: %+v", o.Output, o)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type started struct{ child, bare string }
	ready, ended := make(chan started), make(chan Outcome)
	go func() {
		var s started
		o, _ := Run(ctx, Cmd{
			Argv: []string{"bash", "-c", "setsid sleep 1000 & echo $!; env -i setsid sleep 1000 & echo $!; wait"},
			OnLine: func(line []byte) {
				if s.child == "" {
					s.child = string(line)
				} else {
					s.bare = string(line)
					ready <- s
				}
			},
		})
		ended <- o
	}()
	long := <-ready
	for range 5 {
		o := sh(t, "setsid sleep 1000 & echo $!")
		if !o.Ended || !gone(t, string(o.Output)) {
			t.Errorf("%s is still there", o.Output)
		}
	}
	for _, pid := range append(spared, long.child, long.bare) {
		if gone(t, pid) {
			t.Errorf("%s was ended", pid)
		}
	}
	cancel()
	if o := <-ended; !o.Canceled {
		t.Errorf("got %+v", o)
	}
	for _, pid := range []string{long.child, long.bare} {
		if !gone(t, pid) {
			t.Errorf("%s is still there", pid)
		}
	}
	for _, pid := range spared {
		if gone(t, pid) {
			t.Errorf("%s was ended", pid)
		}
	}
}

// TestConcurrentCommands: each gets its own output and exit code, and none waits for a child that another one reaped.
func TestConcurrentCommands(t *testing.T) {
	const n = 24
	errs := make(chan error, 2*n)
	for i := range n {
		go func() {
			o, err := Run(context.Background(),
				Cmd{Argv: []string{"bash", "-c", fmt.Sprintf("setsid true & (setsid true &); echo %d; exit %d", i, i)}})
			if err == nil && (o.ExitCode != i || strings.TrimSpace(string(o.Output)) != strconv.Itoa(i)) {
				err = fmt.Errorf("command %d: %+v %s", i, o, o.Output)
			}
			errs <- err
		}()
		go func() {
			// Children of another part of the program, which waits for them.
			git := exec.Command("git", "--version")
			git.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			errs <- git.Run()
		}()
	}
	for range 2 * n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, p := range descendants(os.Getpid()) {
		if p.zombie {
			t.Errorf("a zombie is left: %+v", p)
		}
	}
}

// TestEndStale kills a git-tilth that runs a command. EndStale returns when everything has ended and the file is
// restored.
func TestEndStale(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".git")
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), "PROC_TEST_ROLE=killed", "PROC_TEST_FILE="+file, "PROC_TEST_SCRIPT="+
		"trap '' TERM; env -i setsid sleep 1000 & echo $!; while :; do echo evil >'"+file+"'; done")
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	EndStale(dir)
	if !gone(t, pid) {
		t.Error("it is still there")
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "kept" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b) S 7 42 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 4096 0"
	p, ok := parseStat(42, []byte(line))
	if want := (process{pid: 42, parent: 7, started: 12345, name: "a) b"}); !ok || p != want {
		t.Errorf("got %+v, %v", p, ok)
	}
	for _, bad := range []string{"", "42", "42 (a)", "42 (a) S x y z", ")(", "42 ) S 7 42 9 (", "42 (a) S 7 42 9"} {
		if _, ok := parseStat(42, []byte(bad)); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestZombie(t *testing.T) {
	for stat, want := range map[string]bool{
		"S 7 42 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 4096 0": false,
		"Z 7 42 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0":    true,
		"Z 7 42 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 12345 0 0":    false, // two more threads
		"S 7 42 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0":    true,  // waits in its end
	} {
		if p, ok := parseStat(42, []byte("42 (a) "+stat)); !ok || p.zombie != want {
			t.Errorf("%s: got %+v, %v", stat, p, ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b) Z 7 42 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"))
	f.Fuzz(func(t *testing.T, data []byte) { parseStat(1, data) })
}
