//go:build linux && (amd64 || arm64)

package crashtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// slowHook reports that it waits, and waits for a file to disappear.
const slowHook = `#!/bin/sh
if test -e "$HOME/hold"; then
	echo $$ > "$HOME/pid.new" && mv "$HOME/pid.new" "$HOME/pid"
	while test -e "$HOME/hold"; do sleep 0.02; done
fi
exit 0
`

// TestOrphanedCommit kills git-tilth while git waits for a commit hook, and resumes at once. The orphaned git must not
// commit during the resume.
func TestOrphanedCommit(t *testing.T) {
	binary := build(t)
	server, err := startModel()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	w, err := newWorld(filepath.Join(t.TempDir(), "w"), binary, server.URL)
	if err == nil {
		err = w.prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(w.dir, "home")
	hold, pidFile := filepath.Join(home, "hold"), filepath.Join(home, "pid")
	for path, content := range map[string]string{filepath.Join(w.repo(), ".git/hooks/pre-commit"): slowHook, hold: ""} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "run", "--no-preflight")
	cmd.Dir, cmd.Env = w.repo(), w.environ()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { _, err := os.Stat(pidFile); return err == nil })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	// The resume's own commits do not wait; the orphaned commit would wait for ever.
	if err := os.WriteFile(filepath.Join(w.repo(), ".git/hooks/pre-commit"), []byte("#!/bin/sh\nexit 0\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(hold)
	if _, err := w.expect([]int{0}, "resume"); err != nil {
		t.Fatal(err)
	}
	if err := w.allDone(); err != nil {
		t.Error(err)
	}
	if stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat")); err == nil &&
		!strings.Contains(string(stat), ") Z ") {
		t.Errorf("the orphaned hook is still there: %s", stat)
	}
}

// await polls for a condition that takes milliseconds.
func await(t *testing.T, met func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-deadline.C:
			t.Fatalf("it did not come about within %s", patience)
		case <-tick.C:
		}
	}
}
