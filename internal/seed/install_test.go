package seed

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// tree lists everything below dir.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && p != dir {
			out = append(out, strings.TrimPrefix(p, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sessionDirs is a session directory with its worktree.
func sessionDirs(t testing.TB) (wt, sess string) {
	t.Helper()
	sess = t.TempDir()
	wt = filepath.Join(sess, "workspace")
	write(t, filepath.Join(wt, "tests", "test_old.py"), "assert 1\n")
	write(t, filepath.Join(sess, "checkpoint.json"), "{}")
	return wt, sess
}

func deepBundle(t testing.TB) *Bundle {
	b := soundBundle(t, 2)
	b.TestFiles["new/deep/t001_x_test.go"] = "package deep\n"
	b.Meta = session.SeedMeta{
		InterviewerModel: "m", StartedAt: "a", EndedAt: "b", Tokens: 7, TLDR: "Adding.",
		OpenQuestions: []string{"<why> & how?"},
	}
	return b
}

func sessionAt(dir string) *session.Session {
	return &session.Session{ID: "20260101-000000-abcdef", Dir: dir}
}

func TestInstallPutsAllOfItInPlace(t *testing.T) {
	wt, sess := sessionDirs(t)
	if _, err := Install(deepBundle(t), wt, sessionAt(sess)); err != nil {
		t.Fatal(err)
	}
	want := []string{"checkpoint.json", "prd.json", "seed-meta.json", "workspace", "workspace/new",
		"workspace/new/deep", "workspace/new/deep/t001_x_test.go", "workspace/tests", "workspace/tests/test_old.py",
		"workspace/tests/test_t001_add.py", "workspace/tests/test_t002_add.py"}
	if got := tree(t, sess); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	s := sessionAt(sess)
	tasks, err := s.Tasks()
	if err != nil || len(tasks) != 2 || tasks[0].Status != "pending" {
		t.Errorf("%v %v", tasks, err)
	}
	meta, err := s.SeedMeta()
	if err != nil || meta.Tokens != 7 || meta.InterviewerModel != "m" || meta.TLDR != "Adding." ||
		meta.OpenQuestions[0] != "<why> & how?" {
		t.Errorf("%+v %v", meta, err)
	}
	raw, _ := os.ReadFile(filepath.Join(sess, "seed-meta.json"))
	if !bytes.Contains(raw, []byte("<why> & how?")) || !bytes.Contains(raw, []byte(`"blockers": []`)) {
		t.Errorf("%s", raw)
	}
	for name, perm := range map[string]fs.FileMode{"prd.json": 0o600, "seed-meta.json": 0o600} {
		if info, _ := os.Stat(filepath.Join(sess, name)); info.Mode().Perm() != perm {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestUndoTakesEverythingBackAndNothingElse(t *testing.T) {
	wt, sess := sessionDirs(t)
	before := tree(t, sess)
	undo, err := Install(deepBundle(t), wt, sessionAt(sess))
	if err != nil {
		t.Fatal(err)
	}
	undo()
	if got := tree(t, sess); !slices.Equal(got, before) {
		t.Errorf("%v", got)
	}
	if undo, err = Install(deepBundle(t), wt, sessionAt(sess)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(wt, "new", "notes"), "mine\n")
	undo()
	undo()
	if got := tree(t, sess); !slices.Contains(got, "workspace/new/notes") || len(got) != len(before)+2 {
		t.Errorf("%v", got)
	}
}

func TestInstallFailsWhole(t *testing.T) {
	cases := map[string]func(t *testing.T, wt, sess string){
		"a file is there": func(t *testing.T, wt, _ string) {
			write(t, filepath.Join(wt, testPath(2)), "mine\n")
		},
		"a symlink is there": func(t *testing.T, wt, _ string) {
			link(t, os.TempDir(), filepath.Join(wt, "new"))
		},
		"a symlink inside is there": func(t *testing.T, wt, _ string) { link(t, "tests", filepath.Join(wt, "new")) },
		"a symlink to nothing": func(t *testing.T, wt, _ string) {
			link(t, "../away", filepath.Join(wt, testPath(2)))
		},
		"a file where a dir belongs": func(t *testing.T, wt, _ string) {
			write(t, filepath.Join(wt, "new"), "mine\n")
		},
		"prd.json is there": func(t *testing.T, _, sess string) {
			write(t, filepath.Join(sess, "prd.json"), "[]")
		},
		"seed-meta.json is there": func(t *testing.T, _, sess string) {
			write(t, filepath.Join(sess, "seed-meta.json"), "{}")
		},
		"the worktree is not there":   func(t *testing.T, wt, _ string) { remove(t, wt) },
		"the session cannot be saved": func(t *testing.T, _, sess string) { remove(t, sess) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			wt, sess := sessionDirs(t)
			if name == "the session cannot be saved" {
				wt = filepath.Join(t.TempDir(), "workspace")
				write(t, filepath.Join(wt, "tests", "test_old.py"), "assert 1\n")
			}
			spoil(t, wt, sess)
			places := []string{filepath.Dir(wt)}
			before := tree(t, places[0])
			if _, err := Install(deepBundle(t), wt, sessionAt(sess)); err == nil {
				t.Fatal("installed")
			}
			if got := tree(t, places[0]); !slices.Equal(got, before) {
				t.Errorf("got  %v\nwant %v", got, before)
			}
		})
	}
}

func remove(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk installs in a process with a limit of zero on file sizes, as on a full disk.
func TestFullDisk(t *testing.T) {
	const mark = "SEED_TEST_FULL_DISK"
	if dir := os.Getenv(mark); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100 << 10, Max: 100 << 10}); err != nil {
			t.Fatal(err)
		}
		b := deepBundle(t)
		b.TestFiles["tests/t002_big.py"] = strings.Repeat("assert x\n", 50<<10)
		if _, err := Install(b, filepath.Join(dir, "workspace"), sessionAt(dir)); err == nil {
			t.Error("installed")
		}
		return
	}
	_, sess := sessionDirs(t)
	before := tree(t, sess)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), mark+"="+sess)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := tree(t, sess); !slices.Equal(got, before) {
		t.Errorf("%v", got)
	}
}
