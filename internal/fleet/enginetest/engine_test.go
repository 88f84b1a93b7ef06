// Package enginetest holds the examples of docs/fleet against what the engines that they are for know: Kubernetes by
// its own types, GitHub Actions by actionlint, shell scripts by the shell. The libraries are too large for the
// program's module.
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

// TestKubernetes reads the Job into the API's own types, which know no other field, and holds it to the rules that the
// API server has for such a Job.
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
	// One that it must find, or it looks at nothing.
	wrong := strings.Replace(string(read(t, "actions.yml")), "timeout-minutes", "timeout-hours", 1)
	if found, err := linter.Lint("actions.yml", []byte(wrong), nil); err != nil || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// gitlabJob are the keywords of a job that the example uses, with the types that GitLab's schema gives them. Any other
// keyword is an error here.
type gitlabJob struct {
	Image string `json:"image"`
	Rules []struct {
		If string `json:"if"`
	} `json:"rules"`
	Parallel  int               `json:"parallel"`
	Timeout   string            `json:"timeout"`
	Variables map[string]string `json:"variables"`
	Cache     struct {
		Key   string   `json:"key"`
		Paths []string `json:"paths"`
	} `json:"cache"`
	Script       []string `json:"script"`
	AllowFailure struct {
		ExitCodes []int `json:"exit_codes"`
	} `json:"allow_failure"`
	Retry struct {
		Max  int      `json:"max"`
		When []string `json:"when"`
	} `json:"retry"`
}

func TestGitLab(t *testing.T) {
	var file struct {
		Tilth gitlabJob `json:"tilth"`
	}
	if err := yaml.UnmarshalStrict(read(t, "gitlab-ci.yml"), &file); err != nil {
		t.Fatal(err)
	}
	job := file.Tilth
	if job.Parallel < 2 || job.Parallel > 200 || job.Retry.Max > 2 || len(job.Script) == 0 || job.Rules[0].If == "" {
		t.Errorf("%+v", job)
	}
	reasons := []string{"always", "unknown_failure", "script_failure", "api_failure", "stuck_or_timeout_failure",
		"runner_system_failure", "runner_unsupported", "stale_schedule", "job_execution_timeout", "archived_failure",
		"unmet_prerequisites", "scheduler_failure", "data_integrity_failure"}
	for _, when := range job.Retry.When {
		if !slices.Contains(reasons, when) {
			t.Errorf("retry when %s", when)
		}
	}
	if !slices.Equal(job.AllowFailure.ExitCodes, []int{5, 130}) {
		t.Errorf("allowed are %v", job.AllowFailure.ExitCodes)
	}
	shell(t, strings.Join(job.Script, "\n"))
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
