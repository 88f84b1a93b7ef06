package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/ttytest"
)

func TestMain(m *testing.M) {
	if os.Getenv("TEST_TERMINAL") != "" { // inside: a command that has one
		if _, err := ttytest.Run(exec.Command("true"), 24, 80); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	sandbox.Without = os.Getenv("TEST_WITHOUT")
	os.Exit(m.Run())
}

// TestOtherWays runs the rest as an ordinary user, and without namespaces.
func TestOtherWays(t *testing.T) {
	if os.Getenv("TEST_WITHOUT") != "" || os.Getenv("TEST_OTHER") != "" {
		t.Skip("runs in another way already")
	}
	top, err := os.MkdirTemp("", "ways")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.Chmod(top, 0o777), os.WriteFile(filepath.Join(top, "test"), self, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, env string }{
		{"ordinary user", "TEST_OTHER=1"}, {"without namespaces", "TEST_WITHOUT=namespaces"},
		{"without a pid namespace", "TEST_WITHOUT=pid"},
	} {
		cmd := exec.Command(filepath.Join(top, "test"),
			"-test.run=TestBox|TestTerminals|TestInherited|TestStarts|TestHelpers|TestBoxesLeave")
		cmd.Dir, cmd.Env = top, append(os.Environ(), c.env, "TMPDIR="+top)
		if c.env == "TEST_OTHER=1" && os.Geteuid() == 0 {
			cmd.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
}

// world is a home with a secret, a place to work in and one to stay out of.
type world struct {
	home, work, temp string
	box              *sandbox.Box
}

func newWorld(t *testing.T) world {
	t.Helper()
	if s := sandbox.Probe(); s.Err != nil {
		t.Skip("needs Landlock: ", s.Err)
	}
	top := t.TempDir()
	w := world{home: filepath.Join(top, "home"), work: filepath.Join(top, "root/id/workspace"),
		temp: filepath.Join(top, "root/id/tmp")}
	for _, dir := range []string{w.work, w.temp, filepath.Join(w.home, ".ssh"), filepath.Join(w.home, "src")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		filepath.Join(w.home, ".ssh/id"): "secret", filepath.Join(w.home, "src/file"): "open",
		filepath.Join(w.home, ".bashrc"): "true", filepath.Join(top, "root/id/events.jsonl"): "record",
		filepath.Join(w.work, "file"): "mine",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(name string) string { return map[string]string{"HOME": w.home}[name] }
	w.box = sandbox.Default(sandbox.Config{Getenv: getenv, Installed: func(string) bool { return false },
		Root: filepath.Join(top, "root"), Read: []string{filepath.Join(w.home, "src")}}).With(w.work).In(w.temp)
	return w
}

// sh runs a script inside.
func (w world) sh(t *testing.T, box *sandbox.Box, script string) (out string, ok bool) {
	t.Helper()
	o, err := proc.Run(t.Context(), proc.Cmd{Argv: []string{"/bin/sh", "-c", script}, Dir: w.work,
		Env: append(os.Environ(), "HOME="+w.home), Box: box})
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Output), o.ExitCode == 0
}

func TestBox(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		script string
		works  bool
	}{
		{"cat file && echo more >file && mkdir -p a b && touch a/x && mv a/x b/x && rm -r a b", true},
		{"cat ~/src/file", true},
		{`test "$TMPDIR" = ` + w.temp + ` && echo x >"$TMPDIR/x" && echo x >/dev/null && echo x >/dev/shm/$$ && rm /dev/shm/$$`, true},
		{"git --version && ls /usr", true},
		{"cat ~/.ssh/id", false},
		{"ls ~/.ssh", false},
		{"cat ../events.jsonl", false},
		{"ls ..", false},
		{"cat /proc/self/root" + w.home + "/.ssh/id", false},
		{"ln ~/.ssh/id here", false},
		{"ln ~/src/file here", false},
		{"ln -s ~/.ssh/id link && cat link", false},
		{"echo x >>~/.bashrc", false},
		{"rm ~/.bashrc", false},
		{"mv ~/.bashrc .", false},
		{"echo x >../prd.json", false},
		{"mkdir ../other", false},
		{"truncate -s 0 ~/.bashrc", false},
		{fmt.Sprint("kill -0 ", os.Getpid()), false},
		{fmt.Sprintf("cat /proc/%d/environ", os.Getpid()), false},
		{fmt.Sprintf("head -c1 /proc/%d/mem", os.Getpid()), false},
		{fmt.Sprintf("readlink /proc/%d/fd/1", os.Getpid()), false},
		{"kill -0 1", false},
		{"cat /proc/1/environ || readlink /proc/1/fd/1", false},
		{"grep -q 'CapEff:.*[1-9a-f]' /proc/self/status", false},
		{"ls -l /proc/self/fd | grep -E 'landlock|events'", false},
	} {
		if out, ok := w.sh(t, w.box, c.script); ok != c.works {
			t.Errorf("%s: %v, should be %v\n%s", c.script, ok, c.works, out)
		}
	}
}

// TestTerminals: the user's can be neither written to nor read, unless that was asked for.
func TestTerminals(t *testing.T) {
	w := newWorld(t)
	ours, err := ttytest.Run(exec.Command("sleep", "100"), 24, 80)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close() // this also ends the program
	const script = "for t in /dev/pts/[0-9]*; do true <$t >$t && exit; done; exit 1"
	if out, ok := w.sh(t, w.box, script); ok {
		t.Error("a terminal of the user's is open: ", out)
	}
	if out, ok := w.sh(t, w.box.With("/dev/pts"), script); !ok {
		t.Error(out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box := w.box.Reading(self)
	box.Terminals = true
	for name, box := range map[string]*sandbox.Box{"its own": box, "the user's": w.box.Reading(self).With("/dev/pts")} {
		if out, ok := w.sh(t, box, "TEST_TERMINAL=1 "+self); !ok {
			t.Errorf("%s: no command can have a terminal: %s", name, out)
		}
	}
}

// TestLinksInWritableDirectories: a command cannot reach a protected file by replacing a writable path with a link.
func TestLinksInWritableDirectories(t *testing.T) {
	w := newWorld(t)
	outer := filepath.Join(w.home, "go")
	box := w.box.With(outer, filepath.Join(outer, "pkg/mod"), w.home+"/go/pkg/other")
	if out, ok := w.sh(t, box, "true"); !ok {
		t.Fatal(out)
	}
	if err := os.MkdirAll(filepath.Join(outer, "pkg/mod"), 0o700); err != nil {
		t.Fatal(err)
	}
	swap := "echo x >~/go/pkg/mod/x && rm -r ~/go/pkg/mod && ln -s ~ ~/go/pkg/mod && ln -s " + filepath.Dir(w.work) +
		" ~/go/pkg/other"
	if out, ok := w.sh(t, box, swap); !ok {
		t.Fatal(out)
	}
	for _, script := range []string{"echo x >>~/.bashrc", "cat ../events.jsonl", "echo x >../prd.json"} {
		if out, ok := w.sh(t, box, script); ok {
			t.Error(script, out)
		}
	}
	if out, ok := w.sh(t, w.box.With(w.home), "echo x >file && echo x >~/src/new && echo x >$TMPDIR/x"); !ok {
		t.Error("what lies in a directory that may be changed cannot be: ", out)
	}
}

// TestInheritedFiles: descriptors that this process inherited are no way out.
func TestInheritedFiles(t *testing.T) {
	w := newWorld(t)
	open, err := unix.Open(filepath.Join(w.home, ".bashrc"), unix.O_RDWR, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(open)
	if out, ok := w.sh(t, w.box, "readlink /proc/self/fd/* | grep bashrc"); ok {
		t.Error(out)
	}
}

// TestLimits: a command can change its own limits, and read those of others.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	victim := exec.Command("sleep", "100")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = victim.Process.Kill(), victim.Wait() }()
	if out, ok := w.sh(t, w.box, "ulimit -t 5"); !ok {
		t.Error(out)
	}
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip(err)
	}
	named := fmt.Sprintf("prlimit --pid %d --cpu", victim.Process.Pid)
	if out, ok := w.sh(t, w.box, named); !ok && !strings.Contains(out, "No such process") {
		t.Error(out)
	}
	if out, ok := w.sh(t, w.box, named+"=600:600"); ok {
		t.Error("the limits of a process outside were changed: ", out)
	}
}

// TestHarnessStaysOutside: no thread of this process is in the sandbox of its commands, and no process is left.
func TestHarnessStaysOutside(t *testing.T) {
	w := newWorld(t)
	off := *w.box
	off.NoNetwork = true
	if out, ok := w.sh(t, &off, "true"); !ok {
		t.Fatal(out)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if out, ok := w.sh(t, &off, "grep -q '^Seccomp:.*2' /proc/self/status"); !ok {
			t.Fatal("not inside: ", out)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) > 50 {
		t.Errorf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if os.IsNotExist(err) {
			continue // it has ended
		}
		for _, free := range []string{"\nNoNewPrivs:\t0\n", "\nSeccomp:\t0\n"} {
			if err != nil || !strings.Contains(string(status), free) {
				t.Errorf("%s: no %q in it: %v", thread, free, err)
			}
		}
	}
	if left, err := os.ReadDir("/proc/self/fd"); err != nil || len(left) > len(open)+5 {
		t.Errorf("%d files are open, %d were: %v", len(left), len(open), err)
	}
	var writing sync.WaitGroup
	for i := range 50 {
		writing.Go(func() {
			runtime.LockOSThread() // each in a separate thread
			defer runtime.UnlockOSThread()
			if err := os.WriteFile(filepath.Join(w.home, fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
}

// TestStartsAsOutside: a command inherits the same inside and outside, and fails the same way if it cannot start. Each
// judgement has a temporary directory, and the ruleset for it is removed with it.
func TestRulesOfGoneDirectoriesGo(t *testing.T) {
	w := newWorld(t)
	for range 10 {
		temp, err := os.MkdirTemp(w.temp, "judge")
		if err != nil {
			t.Fatal(err)
		}
		if out, ok := w.sh(t, w.box.In(temp), "echo > "+temp+"/written"); !ok {
			t.Fatal(out)
		}
		if err := os.RemoveAll(temp); err != nil {
			t.Fatal(err)
		}
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range open {
		if to, _ := os.Readlink(fd); strings.Contains(to, "landlock") {
			n++
		}
	}
	if n == 0 || n > 3 {
		t.Errorf("%d rulesets are open", n)
	}
}

func TestStartsAsOutside(t *testing.T) {
	w := newWorld(t)
	script := `ulimit -Sn; ulimit -Hn; grep -E '^Sig(Blk|Ign|Cgt):' /proc/self/status; ls /proc/self/fd | grep -x '[0-3]'
		test "$(ps -o sid= -p $$)" -eq $$ && pwd && echo "$0"`
	inside, _ := w.sh(t, w.box, script)
	if outside, ok := w.sh(t, nil, script); inside != outside || !ok {
		t.Errorf("inside:\n%soutside:\n%s", inside, outside)
	}
	bad := filepath.Join(w.work, "program")
	if err := os.WriteFile(bad, []byte("#!/nowhere/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, outside := proc.Run(t.Context(), proc.Cmd{Argv: []string{bad}})
	_, within := proc.Run(t.Context(), proc.Cmd{Argv: []string{bad}, Box: w.box})
	if fmt.Sprint(outside) != fmt.Sprint(within) || !errors.Is(within, fs.ErrNotExist) {
		t.Errorf("inside: %v, outside: %v", within, outside)
	}
}

func TestHelpers(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "tmux")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "default"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	script := `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("` + dir + `/default")'`
	if _, err := sandbox.Spaces(); err != nil {
		t.Skip("needs namespaces: ", err)
	}
	out, ok := w.sh(t, w.box, "test $PWD = $(pwd -P) && readlink /proc/self/ns/mnt")
	if own, err := os.Readlink("/proc/self/ns/mnt"); err != nil || !ok || out == own+"\n" {
		t.Errorf("the namespace is %q, outside it is %s, %v", out, own, err)
	}
	if out, ok := w.sh(t, w.box, script); ok {
		t.Errorf("a socket of others was reached: %s", out)
	}
}

func TestNetwork(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing")
	}
	w := newWorld(t)
	script := `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'`
	if out, ok := w.sh(t, w.box, script); !ok {
		t.Errorf("the network is there: %s", out)
	}
	off := *w.box
	off.NoNetwork = true
	if out, ok := w.sh(t, &off, script); ok || !strings.Contains(out, "PermissionError") {
		t.Errorf("the network is off: %s", out)
	}
	if out, ok := w.sh(t, &off, `python3 -c 'import socket; socket.socket(socket.AF_UNIX)'`); !ok {
		t.Errorf("a Unix socket can be made: %s", out)
	}
}

func BenchmarkStart(b *testing.B) {
	getenv := os.Getenv
	box := sandbox.Default(sandbox.Config{Getenv: getenv, Installed: func(string) bool { return false },
		Root: b.TempDir()})
	for _, c := range []struct {
		name string
		box  *sandbox.Box
	}{{"inside", box}, {"outside", nil}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				cmd := exec.Command("/bin/true")
				tree, err := c.box.Start(cmd)
				if err != nil {
					b.Fatal(err)
				}
				if err := tree.Wait(cmd); err != nil {
					b.Fatal(err)
				}
				_ = tree.End(cmd)
			}
		})
	}
}

// BenchmarkViews starts each command in new namespaces.
func BenchmarkViews(b *testing.B) {
	top := b.TempDir()
	box := sandbox.Default(sandbox.Config{Getenv: os.Getenv, Installed: func(string) bool { return false }, Root: top})
	for i := range b.N {
		dir := filepath.Join(top, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command("/bin/true")
		tree, err := box.With(dir).Start(cmd)
		if err != nil {
			b.Fatal(err)
		}
		if err := tree.Wait(cmd); err != nil {
			b.Fatal(err)
		}
		_ = tree.End(cmd)
	}
}
