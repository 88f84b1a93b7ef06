package validator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTaskOf(t *testing.T) {
	for name, want := range map[string]string{
		"test_t001_add.py": "T-001", "t001_add_test.go": "T-001", "t001-add.test.ts": "T-001", "T001.py": "T-001",
		"test_T0012_x.py": "T-0012", "t1000.rs": "T-1000", "add.t002.test.js": "T-002",
		"test_add.py": "", "test_t01_add.py": "", "test_t001a.py": "", "set001_x.py": "", "xt001.py": "",
		"testt001.py": "",
		"":            "", "t.py": "",
	} {
		got, ok := TaskOf(name)
		if got != want || ok != (want != "") {
			t.Errorf("TaskOf(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}

func FuzzTaskOf(f *testing.F) {
	f.Add("test_t001_add.py")
	f.Fuzz(func(t *testing.T, name string) {
		if id, ok := TaskOf(name); ok != (id != "") || ok && (len(id) < 5 || !strings.HasPrefix(id, "T-")) {
			t.Errorf("TaskOf(%q) = %q, %v", name, id, ok)
		}
	})
}

func TestAcceptanceTests(t *testing.T) {
	files := []string{"tests/test_t002_b.py", "b/t001_z_test.go", "a/test_t001_a.py", "t001/x.py", "README.md"}
	if got := AcceptanceTests(files, "T-001"); !slices.Equal(got, []string{"a/test_t001_a.py", "b/t001_z_test.go"}) {
		t.Errorf("got %q", got)
	}
}

func TestFromConfig(t *testing.T) {
	vs, err := FromConfig([]string{"old=x", "", "lint = ruff check . ", "test=A=1 make test", "lint=true"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(vs) != 2 || vs[0].Name != "lint" || vs[0].Command != "true" || vs[1].Command != "A=1 make test" ||
		!vs[1].Configured {
		t.Errorf("got %+v", vs)
	}
	for _, bad := range []string{"make test", "=x", "name=", " = ", "a;b=c"} {
		if _, err := FromConfig([]string{bad}, ""); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestConfiguredOnesKnowTheTask(t *testing.T) {
	vs, err := FromConfig([]string{`a=test "$TILTH_TASK" = T-007`}, "T-007")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/usr/bin:/bin", "TILTH_TASK=T-009"}
	wantPassed(t, Run(context.Background(), vs, ExecEnv{Dir: t.TempDir(), Env: env}, 0), true)
	found := []Validator{{Name: "b", Command: `test -z "$TILTH_TASK"`}}
	wantPassed(t, Run(context.Background(), found, ExecEnv{Dir: t.TempDir(), Env: env}, 0), true)
}

func TestRun(t *testing.T) {
	vs, err := FromConfig([]string{"good=echo fine", "bad=echo broken; exit 3", "killed=kill -9 $$", "after=pwd"}, "")
	if err != nil {
		t.Fatal(err)
	}
	rep := Run(context.Background(), vs, ExecEnv{Dir: t.TempDir()}, 0)
	wantPassed(t, rep, false)
	wantText(t, rep, "## good: passed", "fine", "## bad: FAILED", "broken\n[exit code 3]", "[ended by SIGKILL]",
		"## after: passed")
	if rep.Note != "" {
		t.Errorf("note %q", rep.Note)
	}
}

func TestRunKeepsHeadAndTail(t *testing.T) {
	vs := []Validator{{Name: "long", Command: "echo first; yes x | head -100000; echo last; exit 1"}}
	rep := Run(context.Background(), vs, ExecEnv{Dir: t.TempDir()}, 0)
	wantText(t, rep, "first", "left out", "last\n[exit code 1]")
	if n := len(rep.Results[0].Output); n > outputCap+200 {
		t.Errorf("%d bytes were kept", n)
	}
}

func TestRunEndsWhatHangs(t *testing.T) {
	vs := []Validator{{Name: "slow", Command: "echo begun; sleep 1000"}, {Name: "next", Command: "echo next"}}
	rep := Run(context.Background(), vs, ExecEnv{Dir: t.TempDir()}, 200*time.Millisecond)
	wantPassed(t, rep, false)
	wantText(t, rep, "begun\n[ended after the time limit of 200ms]", "## next: passed")
}

func TestRunCanBeCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rep := Run(ctx, []Validator{{Name: "a", Command: "true"}}, ExecEnv{Dir: t.TempDir()}, 0)
	if rep.Passed {
		t.Errorf("got %+v", rep)
	}
}

func TestNoneIsSaid(t *testing.T) {
	rep := judge(t, tree(t, map[string]string{"README": "x"}), Tasks{Current: "T-001"})
	wantPassed(t, rep, true)
	wantText(t, rep, "no validators")
}

func TestSkippedIsSaid(t *testing.T) {
	rep := Run(context.Background(), []Validator{{Name: "ruff", Skip: "it is not installed"}},
		ExecEnv{Dir: t.TempDir()}, 0)
	wantPassed(t, rep, true)
	wantText(t, rep, "## ruff: NOT RUN", "ruff was not run: it is not installed; no validator was run")
}

func TestRunInMissingDirectory(t *testing.T) {
	rep := Run(context.Background(), []Validator{{Name: "a", Command: "true"}}, ExecEnv{Dir: t.TempDir() + "/gone"}, 0)
	wantPassed(t, rep, false)
	wantText(t, rep, "working directory is gone")
}
