package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGuard lets somebody else at the record between two events, and looks at what is done, and at what is then there.
func TestGuard(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		how    string // "" where nothing is wrong
		back   bool   // the record is as it was
		aside  int
	}{
		"nothing": {change: func(string) error { return nil }, back: true},
		"its times only": {back: true,
			change: func(path string) error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) }},
		"more lines": {how: "got 8 bytes more", back: true, aside: 1,
			change: func(path string) error { return appendTo(path, `{"a":1}`+"\n") }},
		"cut": {how: "lost some of its",
			change: func(path string) error { return os.Truncate(path, 10) }},
		"other bytes": {how: "lost some of its",
			change: func(path string) error { return overwrite(path) }},
		"removed": {how: "is back as it was", back: true, aside: 1, change: os.Remove},
		"another file": {how: "is back as it was", back: true, aside: 1,
			change: func(path string) error { return swap(path) }},
		"a directory": {how: "is back as it was", back: true, aside: 1,
			change: func(path string) error {
				if err := os.Remove(path); err != nil {
					return err
				}
				return os.Mkdir(path, 0o700)
			}},
		"removed, and where it is kept leads elsewhere": {how: "is back as it was", back: true, aside: 1,
			change: func(path string) error {
				dir := filepath.Dir(path)
				if err := os.Symlink(filepath.Dir(dir), filepath.Join(dir, asideDir)); err != nil {
					return err
				}
				return os.Remove(path)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.jsonl")
			if err := os.WriteFile(path, []byte(`{"type":"old","payload":{}}`+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.Append(&TaskDone{Summary: "one"}); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			err = r.Append(&TaskDone{Summary: "two"})
			if c.how == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.how) {
				t.Fatalf("it says %v, want %q", err, c.how)
			}
			after, err := os.ReadFile(path)
			if back := err == nil && strings.HasPrefix(string(after), string(before)); back != c.back {
				t.Errorf("it holds %q (%v), where it held %q", after, err, before)
			}
			if strings.Contains(string(after), `"two"`) != (c.how == "") {
				t.Errorf("the event that found out: %s", after)
			}
			kept, _ := os.ReadDir(filepath.Join(filepath.Dir(path), asideDir))
			if fi, err := os.Lstat(filepath.Join(filepath.Dir(path), asideDir)); len(kept) != c.aside ||
				err == nil && !fi.IsDir() {
				t.Errorf("kept aside: %v", kept)
			}
		})
	}
}

// TestGuardOfALongRecord: it is hashed some time after it was opened, and what it was then is not told by what it is
// when it is hashed.
func TestGuardOfALongRecord(t *testing.T) {
	for how, change := range map[string]func(path string) error{
		"":                                 func(string) error { return nil },
		"was touched before it was known":  func(path string) error { return overwrite(path) },
		"got 8 bytes more, which are kept": func(path string) error { return appendTo(path, `{"a":1}`+"\n") },
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		line := `{"type":"old","payload":{"text":"` + strings.Repeat("x", longRecord) + `"}}` + "\n"
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		err = r.Append(&TaskDone{Summary: "one"})
		if how == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), how) {
			t.Errorf("it says %v, want %q", err, how)
		}
		if _, _, err := r.Mark(); how == "" != (err == nil) {
			t.Errorf("%q: its hash: %v", how, err)
		}
	}
}

// By way of a mapping that it has written to before, a process changes a file without its times.
func TestAStopFindsWhatNoStampTells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	r, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Append(&TaskDone{Summary: "reject"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, 64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(data) }()
	at := strings.LastIndexByte(string(data), '"')
	data[at] = '"'
	if err := r.Append(&Nudge{Kind: "silent"}); err != nil {
		t.Fatal(err)
	}
	data[at] = 'x'
	err = r.Append(&Stop{Reason: "all_done"})
	if err == nil || !strings.Contains(err.Error(), "has others in their place") {
		t.Errorf("the stop says %v", err)
	}
	if err := r.Append(&Stop{Reason: "error"}); err != nil {
		t.Error(err)
	}
}

func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line)
	return err
}

// overwrite puts as many other bytes in place.
func overwrite(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// The clock by which the kernel stamps files has ticked when another file's stamp has.
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	for now := fi; !now.ModTime().After(fi.ModTime()); {
		if err := os.WriteFile(path+".tick", nil, 0o600); err != nil {
			return err
		}
		if now, err = os.Stat(path + ".tick"); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(strings.Repeat("x", len(data))), 0o600)
}

func swap(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
