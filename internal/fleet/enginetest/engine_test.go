// Package enginetest checks the examples of docs/fleet with their engines: Kubernetes by its own types, GitHub Actions
// by actionlint, GitLab CI by gitlab-ci-local (npm installs it into a scratch directory), shell scripts by the shell.
// The libraries are too large for the program's module.
package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../docs/fleet", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKubernetes reads the Job into the API's own types, which have no other field, and checks it against the API
// server's rules for such a Job.
func TestKubernetes(t *testing.T) {
	var job batch.Job
	if err := yaml.UnmarshalStrict(read(t, "kubernetes.yaml"), &job); err != nil {
		t.Fatal(err)
	}
	spec, pod := job.Spec, job.Spec.Template.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Name == "" {
		t.Errorf("it is a %s %s", job.APIVersion, job.Kind)
	}
	if spec.CompletionMode == nil || *spec.CompletionMode != batch.IndexedCompletion || spec.Completions == nil {
		t.Error("FailIndex needs indexed completions, and their number")
	}
	if spec.BackoffLimitPerIndex == nil || spec.MaxFailedIndexes != nil && *spec.MaxFailedIndexes > *spec.Completions {
		t.Error("FailIndex needs backoffLimitPerIndex, and no more indexes can fail than there are")
	}
	if pod.RestartPolicy != core.RestartPolicyNever {
		t.Error("a podFailurePolicy needs restartPolicy Never")
	}
	action := map[int32]batch.PodFailurePolicyAction{}
	for i, rule := range spec.PodFailurePolicy.Rules {
		if (rule.OnExitCodes == nil) == (len(rule.OnPodConditions) == 0) {
			t.Errorf("rule %d is for exit codes or for conditions", i)
		}
		if rule.OnExitCodes == nil {
			continue
		}
		codes := rule.OnExitCodes
		if *codes.ContainerName != pod.Containers[0].Name || codes.Operator != batch.PodFailurePolicyOnExitCodesOpIn ||
			slices.Contains(codes.Values, 0) || !slices.IsSorted(codes.Values) {
			t.Errorf("rule %d: %+v", i, codes)
		}
		for _, code := range codes.Values {
			action[code] = rule.Action
		}
	}
	want := map[int32]batch.PodFailurePolicyAction{130: batch.PodFailurePolicyActionIgnore,
		143: batch.PodFailurePolicyActionIgnore, 5: batch.PodFailurePolicyActionFailIndex,
		2: batch.PodFailurePolicyActionFailJob}
	for code, is := range want {
		if action[code] != is {
			t.Errorf("exit code %d: %s, want %s", code, action[code], is)
		}
	}
	if grace := pod.TerminationGracePeriodSeconds; grace == nil || *grace < 10 {
		t.Error("a worker needs ten seconds to end")
	}
	shell(t, pod.Containers[0].Args[0])
}

func TestActions(t *testing.T) {
	linter, err := actionlint.NewLinter(os.Stderr, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.Lint("actions.yml", read(t, "actions.yml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	// A fault that it must find, to show that it checks.
	wrong := strings.Replace(string(read(t, "actions.yml")), "timeout-minutes", "timeout-hours", 1)
	if found, err := linter.Lint("actions.yml", []byte(wrong), nil); err != nil || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// gitlabLinter is a program from the npm registry that reads such a file like GitLab, and checks it with GitLab's
// schema.
const gitlabLinter = "gitlab-ci-local@4.61.1"

func TestGitLab(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"git", "init", "-q"}, {"git", "remote", "add", "origin", "https://git.example/a/b"},
		{"npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", gitlabLinter}} {
		if out, err := run(args[0], args[1:]...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	text := string(read(t, "gitlab-ci.yml"))
	lint := func(text string) (string, error) {
		if err := os.WriteFile(filepath.Join(dir, ".gitlab-ci.yml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return run(filepath.Join(dir, "node_modules/.bin/gitlab-ci-local"), "--list-all")
	}
	if out, err := lint(text); err != nil || !strings.Contains(out, "tilth") {
		t.Errorf("%v\n%s", err, out)
	}
	// Wrong files that it must refuse.
	for right, wrong := range map[string]string{"timeout:": "timeouts:", "stuck_or_timeout": "stuck",
		"parallel: 4": "parallel: 400"} {
		if out, err := lint(strings.Replace(text, right, wrong, 1)); err == nil || !strings.Contains(out, "Invalid") {
			t.Errorf("%s is not refused: %v\n%s", wrong, err, out)
		}
	}

	var file struct {
		Tilth struct {
			Script       []string `json:"script"`
			AllowFailure struct {
				ExitCodes []int `json:"exit_codes"`
			} `json:"allow_failure"`
		} `json:"tilth"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(file.Tilth.AllowFailure.ExitCodes, []int{5, 130}) {
		t.Errorf("allowed are %v", file.Tilth.AllowFailure.ExitCodes)
	}
	shell(t, strings.Join(file.Tilth.Script, "\n"))
}

func TestScripts(t *testing.T) {
	for _, name := range []string{"slurm.sh", "ssh.sh"} {
		shell(t, string(read(t, name)))
	}
}

// shell has the shell read a script, and not run it.
func shell(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-n")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, script)
	}
}
