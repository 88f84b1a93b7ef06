package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

func TestLockExcludesAndNames(t *testing.T) {
	s := newSession(t)
	if busy, held := s.Holder(); held {
		t.Errorf("a new session is held by %v", busy)
	}
	unlock, err := s.Lock(testNow)
	must(t, err)
	host, _ := os.Hostname()
	_, err = s.Lock(testNow)
	busy := &BusyError{}
	if !errors.As(err, &busy) || busy.PID != os.Getpid() || busy.Host != host ||
		busy.Since != "2026-06-01T10:20:30.456Z" {
		t.Errorf("%v", err)
	}
	if want := fmt.Sprintf("process %d on %s since 2026-06-01T10:20:30.456Z", os.Getpid(),
		host); !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if busy, held := s.Holder(); !held || busy.PID != os.Getpid() {
		t.Errorf("holder %v %v", busy, held)
	}
	unlock()
	if _, held := s.Holder(); held {
		t.Error("held after the unlock")
	}
	unlock, err = s.Lock(testNow)
	must(t, err)
	unlock()
	unlock()
}

// The file's text proves nothing: a live pid in an unlocked file, rubbish in a locked one.
func TestLockTrustsTheLockOnly(t *testing.T) {
	s := newSession(t)
	for _, text := range []string{fmt.Sprintf(`{"pid": %d, "host": "h"}`, os.Getpid()), fmt.Sprintf(`{"pid": %d}`, os.Getppid()), "rubbish", ""} {
		write(t, s.Path(LockFile), text)
		if busy, held := s.Holder(); held {
			t.Errorf("%q: held by %v", text, busy)
		}
		unlock, err := s.Lock(testNow)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		write(t, s.Path(LockFile), text) // in place: the lock stays
		_, err = s.Lock(testNow)
		if busy := (&BusyError{}); !errors.As(err, &busy) {
			t.Errorf("%q: locked twice: %v", text, err)
		}
		unlock()
	}
	busy := &BusyError{}
	if got := busy.Error(); got != "the session is in use by another process" {
		t.Error(got)
	}
}

func TestLockEndsWithItsProcess(t *testing.T) {
	s := newSession(t)
	cmd := child(t, "hold the lock", s.Dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Lock(testNow)
	busy := &BusyError{}
	if !errors.As(err, &busy) || busy.PID != cmd.Process.Pid {
		t.Errorf("%v, want process %d", err, cmd.Process.Pid)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	unlock, err := s.Lock(testNow)
	if err != nil {
		t.Fatalf("the lock of a killed process: %v", err)
	}
	unlock()
}

func childHolds(dir string) {
	if _, err := childSession(dir).Lock(time.Now()); err != nil {
		fail("%v", err)
	}
	fmt.Print("r")
	select {}
}

// Readers never make a writer fail.
func TestLookingDoesNotDisturb(t *testing.T) {
	s := newSession(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Holder()
				}
			}
		})
	}
	for range 200 {
		unlock, err := s.Lock(testNow)
		if err != nil {
			t.Error(err)
			break
		}
		unlock()
	}
	close(stop)
	wg.Wait()
}

func TestLockOfARemovedSession(t *testing.T) {
	s := newSession(t)
	unlock, err := s.Lock(testNow)
	must(t, err)
	must(t, os.RemoveAll(s.Dir))
	var gone *RefusedError
	if _, err := s.Lock(testNow); !errors.As(err, &gone) {
		t.Errorf("%v", err)
	}
	unlock()
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("locking made the directory again")
	}
}

func TestLockRemovesWhatAKilledWriterLeft(t *testing.T) {
	s := newSession(t)
	for _, name := range []string{".checkpoint.json.tmp-1", ".summary.json.tmp-22", ".chat.html.tmp-3",
		".taking.json.tmp-4", ".hidden", "x.tmp-1"} {
		write(t, s.Path(name), "x")
	}
	info, err := os.Stat(s.Path(".chat.html.tmp-3"))
	must(t, err)
	for _, c := range []struct {
		now  time.Time
		want int
	}{{info.ModTime(), 4}, {info.ModTime().Add(2 * time.Hour), 2}} {
		unlock, err := s.Lock(c.now)
		must(t, err)
		unlock()
		if left, _ := os.ReadDir(s.Dir); len(left) != c.want {
			t.Errorf("left: %v", left)
		}
	}
}

func TestLockRemovesHalfWrittenLedgers(t *testing.T) {
	s, elsewhere := newSession(t), t.TempDir()
	const name = ".T-002.jsonl.tmp-1"
	for _, c := range []struct {
		place func() error
		want  bool
	}{
		{func() error { return os.MkdirAll(s.Path(LedgerDir), 0o700) }, false},
		{func() error {
			return errors.Join(os.RemoveAll(s.Path(LedgerDir)), os.Symlink(elsewhere, s.Path(LedgerDir)))
		}, true},
	} {
		must(t, c.place())
		write(t, s.Path(LedgerDir, name), "x")
		unlock, err := s.Lock(testNow)
		must(t, err)
		unlock()
		if _, err := os.Stat(s.Path(LedgerDir, name)); (err == nil) != c.want {
			t.Errorf("the file is there: %v, want %v", err == nil, c.want)
		}
	}
}

func TestWriteFileAtomic(t *testing.T) {
	s := newSession(t)
	path := s.Path("x.json")
	must(t, jsonl.WriteFile(path, []byte("one")))
	must(t, jsonl.WriteFile(path, []byte("two")))
	if got := read(t, path); got != "two" {
		t.Error(got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	// If the rename fails, nothing is left behind.
	must(t, os.MkdirAll(s.Path("dir", "full"), 0o700))
	if err := jsonl.WriteFile(s.Path("dir"), []byte("x")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if err := jsonl.WriteFile(s.Path("absent", "x"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 2 || read(t, path) != "two" {
		t.Errorf("left: %v", left)
	}
}
