//go:build bench

package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// benchSandbox is a shell command in the sandbox of a worker, against one outside.
func benchSandbox(t *testing.T, tb *table) {
	if s := sandbox.Probe(); s.Err != nil {
		t.Skip("needs a sandbox: ", s.Err)
	}
	work, temp := t.TempDir(), t.TempDir()
	// The default place of sessions. The directories above are listed, and listed again when their entries change,
	// which happens all the time in a busy temporary directory.
	home, err := os.UserHomeDir()
	must(t, err)
	root := filepath.Join(home, ".tilth", "sessions")
	box := sandbox.Default(sandbox.Config{Getenv: os.Getenv, Root: root,
		Installed: func(string) bool { return false }}).With(work).In(temp)
	command := func(box *sandbox.Box) func() time.Duration {
		return func() time.Duration {
			start := time.Now()
			out, err := proc.Run(t.Context(), proc.Cmd{Argv: []string{"bash", "-c", "true"}, Dir: work, Box: box})
			must(t, err)
			if out.ExitCode != 0 {
				t.Fatalf("%s", out.Output)
			}
			return time.Since(start)
		}
	}
	times := alternate(200, command(box), command(nil))
	tb.above("a shell command in the sandbox", times[0], times[1], "outside", 5*time.Millisecond)
}
