//go:build linux && (amd64 || arm64)

package crashtest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/testsize"
)

// spender is a machine on which git-tilth runs an agent program; its directory identifies all processes.
type spender struct {
	dir, user string
	env       []string
	cred      *syscall.Credential
}

// TestKilledRunsSpendNothing kills git-tilth at random moments of turns of each program, as root and as a user, in the
// sandbox and without one: two seconds later no child process is left. make crash kills a hundred times.
func TestKilledRunsSpendNothing(t *testing.T) {
	programs := []string{"claude", "codex", "gemini", "opencode", "copilot", "qwen"}
	n, first := testsize.Of(3, 24), rand.IntN(len(programs))
	if os.Getenv("TILTH_CRASH") == "full" {
		n = 100
	}
	longest, users := time.Duration(0), map[string]int{}
	for i := range n {
		program := programs[(first+i)%len(programs)]
		s := newSpender(t, program, os.Getuid() == 0 && i%4 < 2, i%2 == 0)
		took, left, said := s.kill(t)
		longest = max(longest, took)
		users[s.user]++
		if len(left) > 0 {
			t.Errorf("kill %d of %s as %s leaves\n%s\n%s", i, program, s.user, strings.Join(left, "\n"), said)
		}
	}
	t.Logf("%d kills, by users %v; the last process was gone after %s at most", n, users, longest)
}

// newSpender creates a spender with a repository and a program whose children detach in every way.
func newSpender(t *testing.T, program string, asUser, boxed bool) *spender {
	t.Helper()
	dir, err := os.MkdirTemp("", "spender-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &spender{dir: dir, user: fmt.Sprint(os.Getuid())}
	stray := strings.ReplaceAll(`(sleep WORD & setsid sleep WORD & env -i PATH="$PATH" setsid sh -c `+
		`'(setsid sleep WORD &) & sleep WORD' &) > /dev/null 2>&1 < /dev/null`, "WORD", s.word())
	script, err := json.Marshal(map[string]any{"steps": []any{
		map[string]any{"read_only": true, "run": []string{stray}, "repeat": -1,
			"text": `{"review": "{word}", "verdict": "reject", "rejection_category": "half_finished", ` +
				`"concern": "more", "next_step": "go on"}`},
		map[string]any{"repeat": 2, "turns": 2, "run": []string{stray, "date +%N >> a.txt"}, "text": "done"},
		map[string]any{"repeat": -1, "run": []string{stray}, "hang": true, "deaf": true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{"state/script.json": string(script), "repo/x": "x\n", "home/x": "",
		"one.json": `[{"id": "T-001", "title": "One", "description": "Do", "acceptance_criteria": ["done"]}]`} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"git-tilth": build(t), program: fakeAgent(t)} {
		if out, err := exec.Command("cp", from, filepath.Join(dir, "bin", name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if asUser {
		s.user, s.cred = "65534", &syscall.Credential{Uid: 65534, Gid: 65534}
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
			return os.Chown(path, 65534, 65534)
		})
	}
	s.env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"),
		"HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "state"), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "TILTH_RESUME_NOTICE=0",
		"FAKEAGENT_SCRIPT=" + filepath.Join(dir, "state", "script.json"),
		"FAKEAGENT_LOG=" + filepath.Join(dir, "state", "log"), "TILTH_SESSIONS_DIR=" + filepath.Join(dir, "sessions")}
	if !boxed {
		s.env = append(s.env, "TILTH_SANDBOX=off")
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "t"},
		{"config", "user.email", "t@localhost"}, {"add", "."}, {"commit", "-q", "-m", "first"},
		{"config", "tilth.worker.agent", program},
		{"config", "tilth.sandboxWrite", filepath.Join(dir, "state")},
		{"config", "tilth.validator", "slow=setsid sleep " + s.word() + " & true"}} {
		if out, err := s.command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return s
}

// word identifies its sleeping processes.
func (s *spender) word() string {
	return "47" + strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, filepath.Base(s.dir))
}

func (s *spender) command(name string, args ...string) *exec.Cmd {
	path := name
	if name == "git-tilth" {
		path = filepath.Join(s.dir, "bin", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = filepath.Join(s.dir, "repo"), s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setsid: true}
	return cmd
}

// kill lets the program work, kills git-tilth, and returns the time until all children have ended. left are the
// children that run two seconds later.
func (s *spender) kill(t *testing.T) (took time.Duration, left []string, said string) {
	t.Helper()
	out, err := os.Create(filepath.Join(s.dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := s.command("git-tilth", "run", "--from", "../one.json")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	await(t, func() bool { return len(s.alive("sleep "+s.word())) > 0 || len(exited) > 0 })
	time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
	if len(exited) > 0 {
		data, _ := os.ReadFile(out.Name())
		t.Fatalf("it ended by itself: %s", data)
	}
	_ = cmd.Process.Kill()
	killed := time.Now()
	for left = s.alive(""); len(left) > 0 && time.Since(killed) < 2*time.Second; left = s.alive("") {
		time.Sleep(10 * time.Millisecond)
	}
	took = time.Since(killed)
	data, _ := os.ReadFile(out.Name())
	<-exited
	for _, p := range left {
		var pid int
		fmt.Sscan(p, &pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return took, left, string(data)
}

// alive lists the processes that have a text in their command lines: without one, the machine's directory or word.
func (s *spender) alive(with string) (found []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		data, _ := os.ReadFile(path) // empty for an ended process
		line := strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
		cwd, _ := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
		if with != "" && strings.Contains(line, with) || with == "" && (strings.Contains(line, s.dir) ||
			strings.Contains(line, s.word()) || line != "" && strings.HasPrefix(cwd, s.dir)) {
			found = append(found, filepath.Base(filepath.Dir(path))+" "+line)
		}
	}
	return found
}

func fakeAgent(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(build(t)), "fakeagent")
	if _, err := os.Stat(path); err != nil {
		out, err := exec.Command("go", "build", "-o", path, "../../testdata/fakeagent").CombinedOutput()
		if err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return path
}
