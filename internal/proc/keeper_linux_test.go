package proc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/testsize"
)

// No child outlives a killed process, however it detached itself.
func TestNothingOutlivesAKill(t *testing.T) {
	n := testsize.Of(8, 100)
	longest := time.Duration(0)
	for i := range n {
		word := fmt.Sprintf("9%d.%d", os.Getpid(), 1000000+i)
		script := strings.ReplaceAll(`sleep WORD & setsid sleep WORD & env -i sleep WORD &
			env -i setsid sh -c '(setsid sleep WORD &) & sleep WORD' &
			(trap "" TERM HUP INT; (env -i setsid nohup sh -c "sleep WORD; sleep WORD" >/dev/null 2>&1 </dev/null &) ; exit 0)
			while :; do env -i setsid sleep WORD & sleep 0.02; done`, "WORD", word)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PROC_TEST_ROLE=killed", "PROC_TEST_FILE=/none/f", "PROC_TEST_SCRIPT="+script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); len(running(word)) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		killed := time.Now()
		left := running(word)
		for ; len(left) > 0 && time.Since(killed) < 10*time.Second; left = running(word) {
			time.Sleep(time.Millisecond)
		}
		longest = max(longest, time.Since(killed))
		if len(left) > 0 {
			t.Fatalf("kill %d leaves %v", i, left)
		}
	}
	t.Logf("%d kills, the last process was gone after %s at most", n, longest)
}

// running returns the processes with a word in their command line.
func running(word string) (found []int) {
	for _, p := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if !p.zombie && strings.Contains(string(line), word) {
			found = append(found, p.pid)
		}
	}
	return found
}

// A normal exit leaves detached children running. It waits for no lock on the directory of a kept file.
func TestForgettingKillsNothing(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROC_TEST_ROLE=forgets", "PROC_TEST_FILE="+filepath.Join(dir, ".git"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	word := strings.TrimSpace(string(out))
	left := running(word)
	if len(left) != 1 {
		t.Errorf("%q: %v", word, left)
	}
	for _, pid := range left {
		p, _ := os.FindProcess(pid)
		_ = p.Kill()
	}
}
