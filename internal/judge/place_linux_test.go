package judge_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
)

// In a file system in memory a file can be changed without its ctime: by way of a mapping that was read before.
func TestLayOutSeesWhatNoCtimeTells(t *testing.T) {
	session, err := os.MkdirTemp("/dev/shm", "judge-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(session) })
	w := newWorld(t, map[string]string{"a.py": "1"}, nil)
	w.dir = filepath.Join(session, "judge")
	w.place, err = judge.New(context.Background(), w.dir, judge.Options{
		Git: gitx.New(os.Environ(), false, nil), Common: filepath.Join(w.repo, ".git"), Branch: "session/x",
		Setup: func(context.Context, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.place.Open)
	file := filepath.Join(w.dir, "a.py")
	w.layOut()
	for ctimeOf(t, file) > unixNow()-1e8 { // no other reason to read the file again
		w.layOut()
	}
	w.layOut()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if data[0] == '1' {
		data[0] = '9'
	}
	if err := unix.Munmap(data); err != nil {
		t.Fatal(err)
	}
	w.has("a.py", "9")
	w.layOut()
	w.has("a.py", "1")
}

func ctimeOf(t *testing.T, file string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ctim.Nano()
}

func unixNow() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &now)
	return now.Nano()
}
