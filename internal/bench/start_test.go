//go:build bench

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// benchStart measures the program's start and size, built by the Makefile and by a plain go build.
func benchStart(t *testing.T, tb *table) {
	w := newWorld(t, 10)
	plain := filepath.Join(w.dir, "plain")
	build := exec.Command("go", "build", "-o", plain, "./cmd/git-tilth")
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	start := func(program string, args ...string) func() time.Duration {
		return func() time.Duration {
			cmd := exec.Command(program, args...)
			cmd.Dir, cmd.Env = w.repo, w.environ
			begin := time.Now()
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			return time.Since(begin)
		}
	}
	git, err := exec.LookPath("git")
	must(t, err)
	took := alternate(101, start(binary(t), "--version"), start(git, "rev-parse", "HEAD"), start(plain, "--version"))
	tb.ratio("process start, git-tilth --version", took[0], took[1], "git rev-parse HEAD", 3)
	tb.ratio("process start of a plain go build", took[2], took[1], "git rev-parse HEAD", 5)
	fi, err := os.Stat(binary(t))
	must(t, err)
	tb.memory("size of the binary", float64(fi.Size())/(1<<20), 16)
}
