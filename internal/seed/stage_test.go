package seed

import (
	"bytes"
	"encoding/json"
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
	b.Meta = Meta{InterviewerModel: "m", StartedAt: "a", EndedAt: "b", Tokens: 7}
	b.OpenQuestions = []string{"<why> & how?"}
	return b
}

func TestStageInstallsAllOfIt(t *testing.T) {
	wt, sess := sessionDirs(t)
	b := deepBundle(t)
	commit, _, err := Stage(b, wt, sess)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(sess, "prd.json")); err == nil {
		t.Error("prd.json is there before commit")
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if !Unfinished(sess) {
		t.Error("the journal is gone before the seed is on record")
	}
	if err := Finish(sess); err != nil || Unfinished(sess) {
		t.Errorf("finish: %v", err)
	}
	want := []string{"checkpoint.json", "prd.json", "seed-meta.json", "workspace", "workspace/new", "workspace/new/deep",
		"workspace/new/deep/t001_x_test.go", "workspace/tests", "workspace/tests/test_old.py", "workspace/tests/test_t001_add.py", "workspace/tests/test_t002_add.py"}
	if got := tree(t, sess); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	s := &session.Session{Dir: sess}
	tasks, err := s.Tasks()
	if err != nil || len(tasks) != 2 || tasks[0].Status != "pending" {
		t.Errorf("%v %v", tasks, err)
	}
	meta, err := s.SeedMeta()
	if err != nil || meta.Tokens != 7 || meta.InterviewerModel != "m" || meta.TLDR != "Adding." || meta.OpenQuestions[0] != "<why> & how?" {
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

func TestAbortTakesEverythingBack(t *testing.T) {
	for _, installed := range []bool{false, true} {
		wt, sess := sessionDirs(t)
		before := tree(t, sess)
		commit, abort, err := Stage(deepBundle(t), wt, sess)
		if err != nil {
			t.Fatal(err)
		}
		if installed {
			if err := commit(); err != nil {
				t.Fatal(err)
			}
		}
		abort()
		abort()
		if got := tree(t, sess); !slices.Equal(got, before) {
			t.Errorf("installed %v: %v", installed, got)
		}
		if err := commit(); err == nil {
			t.Error("commit after abort did something")
		}
	}
}

// TestRecoverFromEveryState puts a bundle in place step by step, as a process
// that dies there would leave it, and takes it back.
func TestRecoverFromEveryState(t *testing.T) {
	b := deepBundle(t)
	for steps := 0; ; steps++ {
		wt, sess := sessionDirs(t)
		before := tree(t, sess)
		in := &installer{worktree: wt, session: sess}
		if err := in.stage(b); err != nil {
			t.Fatal(err)
		}
		done := partialInstall(t, in, steps)
		if done && steps%2 == 0 {
			if err := Finish(sess); err != nil {
				t.Fatal(err)
			}
			break
		}
		left, err := Recover(wt, sess, false)
		if err != nil || len(left.Kept) > 0 {
			t.Fatalf("step %d: %+v %v", steps, left, err)
		}
		if again, err := Recover(wt, sess, false); err != nil || len(again.Removed) > 0 {
			t.Fatalf("step %d, again: %+v %v", steps, again, err)
		}
		if got := tree(t, sess); !slices.Equal(got, before) {
			t.Errorf("step %d: %v", steps, got)
		}
	}
}

// partialInstall does the first n steps of install; done means all of them.
func partialInstall(t *testing.T, in *installer, n int) (done bool) {
	root, err := os.OpenRoot(in.worktree)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	step := func(err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		n--
		return n < 0
	}
	for _, d := range in.journal.Dirs {
		if step(nil) {
			return false
		}
		if err := root.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range in.journal.Files {
		if step(nil) {
			return false
		}
		if n == 0 { // a copy that was cut off
			write(t, filepath.Join(in.worktree, p), "def ")
			if p == "new/deep/t001_x_test.go" {
				write(t, filepath.Join(in.worktree, p), "pack")
			}
			return false
		}
		if err := putInside(root, p, in.staged(string(rune('0'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range in.journal.Records {
		if step(nil) {
			return false
		}
		if err := in.putRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	return !step(nil)
}

func TestRecoverBeforeTheJournal(t *testing.T) {
	wt, sess := sessionDirs(t)
	before := tree(t, sess)
	write(t, filepath.Join(sess, stagingDir, "0"), "half a te")
	if _, err := Recover(wt, sess, false); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, sess); !slices.Equal(got, before) {
		t.Errorf("%v", got)
	}
}

func TestRecoverKeepsASeedThatIsOnRecord(t *testing.T) {
	wt, sess := sessionDirs(t)
	commit, _, err := Stage(deepBundle(t), wt, sess)
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(wt, sess, true); err != nil || Unfinished(sess) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(wt, testPath(1))); err != nil {
		t.Error(err)
	}
}

func TestRecoverKeepsWhatAPersonWrote(t *testing.T) {
	wt, sess := sessionDirs(t)
	commit, _, err := Stage(deepBundle(t), wt, sess)
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(wt, testPath(1))
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	write(t, mine, "mine\n")
	write(t, filepath.Join(wt, "new", "notes"), "mine\n")
	left, err := Recover(wt, sess, false)
	if err != nil || !slices.Equal(left.Kept, []string{testPath(1)}) {
		t.Errorf("%+v %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(wt, "new", "notes")); err != nil {
		t.Error("a directory with a person's file in it was removed")
	}
}

// TestRecoverReadsAJournalWithSuspicion: the journal is a file like any other.
func TestRecoverReadsAJournalWithSuspicion(t *testing.T) {
	wt, sess := sessionDirs(t)
	outside := filepath.Join(filepath.Dir(sess), filepath.Base(sess)+"-outside")
	write(t, outside, "x")
	defer os.Remove(outside)
	j, _ := json.Marshal(journal{Version: 1, Files: []string{"../../" + filepath.Base(outside), ".git/config", "/etc/passwd"},
		Dirs: []string{".."}, Records: []string{"checkpoint.json", "../x"}})
	write(t, filepath.Join(sess, stagingDir, journalFile), string(j))
	for _, n := range []string{"0", "1", "2", "checkpoint.json"} {
		write(t, filepath.Join(sess, stagingDir, n), "x{}")
	}
	if _, err := Recover(wt, sess, false); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{outside, filepath.Join(sess, "checkpoint.json"), wt} {
		if _, err := os.Stat(p); err != nil {
			t.Error(err)
		}
	}
}

func TestCommitFailsWhole(t *testing.T) {
	cases := map[string]func(t *testing.T, wt, sess string){
		"a file appears":             func(t *testing.T, wt, _ string) { write(t, filepath.Join(wt, testPath(2)), "mine\n") },
		"a symlink appears":          func(t *testing.T, wt, _ string) { link(t, os.TempDir(), filepath.Join(wt, "new")) },
		"a symlink inside appears":   func(t *testing.T, wt, _ string) { link(t, "tests", filepath.Join(wt, "new")) },
		"a file where a dir belongs": func(t *testing.T, wt, _ string) { write(t, filepath.Join(wt, "new"), "mine\n") },
		"prd.json appears":           func(t *testing.T, _, sess string) { write(t, filepath.Join(sess, "prd.json"), "[]") },
		"the worktree vanishes": func(t *testing.T, wt, _ string) {
			if err := os.RemoveAll(wt); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			wt, sess := sessionDirs(t)
			commit, _, err := Stage(deepBundle(t), wt, sess)
			if err != nil {
				t.Fatal(err)
			}
			spoil(t, wt, sess)
			before := slices.DeleteFunc(tree(t, sess), func(p string) bool { return strings.HasPrefix(p, stagingDir) })
			if err := commit(); err == nil {
				t.Fatal("commit succeeded")
			}
			if got := tree(t, sess); !slices.Equal(got, before) {
				t.Errorf("got  %v\nwant %v", got, before)
			}
		})
	}
}

func TestStageRefusesASessionWithASeed(t *testing.T) {
	wt, sess := sessionDirs(t)
	write(t, filepath.Join(sess, "prd.json"), "[]")
	before := tree(t, sess)
	if _, _, err := Stage(soundBundle(t, 1), wt, sess); err == nil {
		t.Error("staged over a plan")
	}
	if got := tree(t, sess); !slices.Equal(got, before) {
		t.Errorf("%v", got)
	}
}

func TestCopyWhereThereAreNoHardLinks(t *testing.T) {
	wt, sess := sessionDirs(t)
	staged := filepath.Join(sess, "staged")
	write(t, staged, "text\n")
	root, err := os.OpenRoot(wt)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := copyInside(root, "tests/t001.py", staged); err != nil {
		t.Fatal(err)
	}
	if err := copyInside(root, "tests/t001.py", staged); err == nil {
		t.Error("copied over a file")
	}
}

// TestFullDisk stages in a process whose files may not grow, which is what a
// full disk is to it.
func TestFullDisk(t *testing.T) {
	const mark = "SEED_TEST_FULL_DISK"
	if dir := os.Getenv(mark); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100 << 10, Max: 100 << 10}); err != nil {
			t.Fatal(err)
		}
		b := deepBundle(t)
		b.TestFiles["tests/t002_big.py"] = strings.Repeat("assert x\n", 50<<10)
		if _, _, err := Stage(b, filepath.Join(dir, "workspace"), dir); err == nil {
			t.Error("staged")
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
