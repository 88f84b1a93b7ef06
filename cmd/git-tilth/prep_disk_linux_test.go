package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// smallDisk mounts a small file system on dir.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mount needs root")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill leaves so many KiB on a disk.
func fill(t *testing.T, dir string, leave int64) {
	t.Helper()
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	var free unix.Statfs_t
	if err := unix.Statfs(dir, &free); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fallocate(int(ballast.Fd()), 0, 0, int64(free.Bavail)*free.Bsize-leave<<10); err != nil {
		t.Fatal(err)
	}
}

// fullDisk matches the errors of Go and git for a full disk.
var fullDisk = regexp.MustCompile(`(?i)no space left|out of disk ?space|unable to write file`)

// TestInterviewOnAFullDisk fills the disk at every stage: while the worktree is created, during the interview, while
// the seed is staged and while it is committed.
func TestInterviewOnAFullDisk(t *testing.T) {
	p := newPlace(t)
	disk := filepath.Join(p.repo, "..", "disk")
	smallDisk(t, disk)
	p.store = session.Store{Root: filepath.Join(disk, "sessions")}
	p.repo = filepath.Join(disk, "repo")
	p.env = append(p.env, "TILTH_SESSIONS_DIR="+p.store.Root)
	p.write("calc.py", "def add(a, b):\n    return a + b\n")
	p.git("init", "-q")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
	before := p.user()
	// Incompressible enough to need its room in git's store as well.
	big := map[string]string{"tests/test_t001_sub.py": noise(96 << 10), "tests/deep/test_t001_more.py": noise(96 << 10)}
	p.model(
		&scripted.Script{
			Interview: []scripted.Step{{Tools: asks("Well?").Tools, Repeat: 1},
				{Tools: seeds(big).Tools, When: []string{"an answer"}, Repeat: -1},
				{Tools: asks("Well?").Tools, Repeat: -1}},
		},
	)
	stages := map[string]bool{}
	for _, leave := range []int64{0, 8, 24, 48, 64, 96, 128, 224, 288, 352, 416, 480, 544, 608, 672, 4096} {
		fill(t, disk, leave)
		p.write("../../answers", "an answer\n")
		out, code := p.try("git", "tilth", "prep", "--answers", "../../answers", "--brief", "x")
		switch {
		case code == 0:
			stages["none"] = true
			if c := p.checkpoint(); c.Status != session.Prepared {
				t.Errorf("%d KiB: status %s", leave, c.Status)
			}
		case code != 3 || !fullDisk.MatchString(out):
			t.Errorf("%d KiB: exit code %d\n%s", leave, code, out)
		case p.sessions() == 0:
			stages["nothing made"] = true
		default:
			stages[p.events()[len(p.events())-1]] = true
			p.noBundle()
			if out, code := p.try("git", "tilth", "list"); code != 0 || !strings.Contains(out, "no seed") {
				t.Errorf("%d KiB: list: exit code %d\n%s", leave, code, out)
			}
		}
		if p.sessions() > 0 {
			if out, code := p.try("git", "tilth", "reset", "-y"); code != 0 || p.sessions() > 0 {
				t.Errorf("%d KiB: reset: exit code %d\n%s", leave, code, out)
			}
		}
		if p.git("branch", "--list", "session/*") != "" || strings.Contains(p.git("worktree", "list"), "\n") {
			t.Errorf("%d KiB: something is left of the session", leave)
		}
		if p.user() != before {
			t.Errorf("%d KiB: the user's tree has changed", leave)
		}
	}
	t.Logf("it ended with %v", stages)
	if !stages["none"] || len(stages) < 3 {
		t.Error("the disk has not run full at different stages")
	}
}

// noise is text that zlib cannot shrink much.
func noise(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	b, x := make([]byte, n), uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = letters[x>>58]
		if i%80 == 79 {
			b[i] = '\n'
		}
	}
	return "# " + string(b)
}
