package validator

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files into a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, dir, name, content)
	}
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// need skips a test without its tool. A shim, such as rustup's cargo without a toolchain, is on PATH and runs nothing.
func need(t *testing.T, tool string) {
	t.Helper()
	if err := exec.Command(tool, "version").Run(); err != nil && exec.Command(tool, "--version").Run() != nil {
		t.Skipf("%s does not run here: %s", tool, err)
	}
}

// judge detects and runs the checks of a tree for a task.
func judge(t *testing.T, dir string, tasks Tasks) Report {
	t.Helper()
	ctx := context.Background()
	rep := Run(ctx, Detect(ctx, ExecEnv{Dir: dir}, nil, tasks), ExecEnv{Dir: dir}, 0)
	t.Logf("passed %v, note %q\n%s", rep.Passed, rep.Note, rep.Text())
	return rep
}

func wantPassed(t *testing.T, rep Report, want bool) {
	t.Helper()
	if rep.Passed != want {
		t.Errorf("passed is %v, want %v\n%s", rep.Passed, want, rep.Text())
	}
}

func wantText(t *testing.T, rep Report, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(rep.Text()+rep.Note, want) {
			t.Errorf("%q is not in the report:\n%s%s", want, rep.Text(), rep.Note)
		}
	}
}

// names lists the detected checks.
func names(vs []Validator) string {
	var out []string
	for _, v := range vs {
		name := v.Name
		if v.Skip != "" {
			name += " (skipped)"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// stubs creates a directory of programs that print their name and arguments.
func stubs(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		script := "#!/bin/sh\necho \"ran " + p + " $*\"\n"
		if err := os.WriteFile(filepath.Join(dir, p), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
