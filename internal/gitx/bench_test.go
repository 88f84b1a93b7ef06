package gitx

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// bigWorld has 20,000 tracked files.
func bigWorld(b *testing.B) *world {
	files := make([]string, 0, 40_000)
	for i := range 20_000 {
		files = append(files, fmt.Sprintf("d%03d/s%d/f%05d.txt", i%200, i%5, i), fmt.Sprintf("file %d\n", i))
	}
	return newWorld(b, append(files, ".gitignore", "*.log\n")...)
}

// spoil changes the worktree as a small run does.
func (w *world) spoil(b *testing.B) {
	for i := range 100 {
		write(b, w.path, fmt.Sprintf("d%03d/s%d/f%05d.txt", i%200, i%5, i), "changed\n",
			fmt.Sprintf("new/n%d", i), "x\n")
	}
}

// childrenCPU returns the processor time of all ended children.
func childrenCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRewindTree alternates with plain `git reset --hard` and `git clean -fd`, and reports how much more
// processor time a rewind takes.
func BenchmarkRewindTree(b *testing.B) {
	w := bigWorld(b)
	wt := w.wt()
	var own, floor time.Duration
	for b.Loop() {
		w.spoil(b)
		start := childrenCPU(b)
		must(b, rewind(w.git, wt, w.base))
		own += childrenCPU(b) - start

		w.spoil(b)
		start = childrenCPU(b)
		for _, args := range [][]string{{"reset", "-q", "--hard", w.base}, {"clean", "-fdq"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = w.path, w.environ
			must(b, cmd.Run())
		}
		floor += childrenCPU(b) - start
	}
	b.ReportMetric(float64(own)/float64(floor), "of-reset-and-clean")
}

func BenchmarkStageAll(b *testing.B) {
	w := bigWorld(b)
	wt := w.wt()
	i := 0
	for b.Loop() {
		i++
		write(b, w.path, "new/n", fmt.Sprint(i))
		_, _, err := w.git.StageAll(ctx, wt, w.base)
		must(b, err)
	}
}

func BenchmarkCheckWorktree(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		_, err := w.git.Worktree(ctx, w.common, w.path, branch)
		must(b, err)
	}
}

func BenchmarkCommonDirOf(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		_, err := CommonDirOf(w.repo)
		must(b, err)
	}
}
