package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ownRepo creates a repository with a file of tasks, in which git-tilth uses the program as worker and reviewer. run
// runs a command of git tilth there; root is the sessions root.
func (s *scene) ownRepo(name string, tasks []obj) (run func(args ...string) *exec.Cmd, root, file string, err error) {
	bin, repo := filepath.Join(s.home, "bin"), filepath.Join(s.home, name)
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "git-tilth"),
		"github.com/git-tilth/git-tilth/cmd/git-tilth")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, "", "", fmt.Errorf("%w: %s", err, out)
	}
	root, file = filepath.Join(s.home, name+"-sessions"), filepath.Join(s.home, name+".json")
	if err := writeFiles(s.home, map[string]string{
		name + "/hello.txt": "hello\n", name + ".json": quoted(tasks)}); err != nil {
		return nil, "", "", err
	}
	env := append([]string{"TILTH_SESSIONS_DIR=" + root, "GIT_CONFIG_NOSYSTEM=1"}, s.env...)
	for i, kv := range env {
		if path, is := strings.CutPrefix(kv, "PATH="); is {
			env[i] = "PATH=" + strings.Join([]string{bin, filepath.Dir(s.program.Binary), path},
				string(os.PathListSeparator))
		}
	}
	in := func(program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(s.ctx, program, args...)
		cmd.Dir, cmd.Env = repo, env
		return cmd
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"config", "user.name", "t"}, {"config", "user.email", "t@localhost"}, {"add", "."},
		{"commit", "-q", "-m", "first"}, {"config", "tilth.validator", "ok=true"},
		{"config", "tilth.worker.agent", s.program.Name}, {"config", "tilth.evaluator.agent", s.program.Name},
		{"config", "tilth.worker.model", s.model}, {"config", "tilth.evaluator.model", s.model},
		{"config", "tilth.maxIterationsPerTask", "2"},
	} {
		if _, err := s.said(in("git", args...)); err != nil {
			return nil, "", "", err
		}
	}
	return func(args ...string) *exec.Cmd { return in(filepath.Join(bin, "git-tilth"), args...) }, root, file, nil
}

// said returns a command's output; its error has the last lines.
func (s *scene) said(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if s.verbose {
		fmt.Println(string(out))
	}
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", cmd.Args, err, lastLines(string(out), 20))
	}
	return string(out), err
}

// wholeRun runs a task in a new repository with the program as worker and as evaluator.
func wholeRun(s *scene) error {
	tilth, root, tasks, err := s.ownRepo("whole", []obj{{"id": "T-001", "title": "Make it",
		"description": "make made.txt", "acceptance_criteria": []string{"it is there"}}})
	if err != nil {
		return err
	}
	judging := 0
	s.stub.play(func(n int, body string) answer {
		judge, _ := filepath.Glob(filepath.Join(root, "*", "judge", "made.txt"))
		switch {
		case len(judge) == 1 && strings.Contains(body, filepath.Dir(judge[0])):
			if judging++; judging == 1 {
				return answer{read: judge[0]}
			}
			return answer{text: `{"verdict": "accept"}`}
		case n == 1:
			return answer{shell: "echo MADE-BY-THE-WORKER > made.txt"}
		}
		return answer{text: `{"summary": "it is made"}`}
	})
	if _, err := s.said(tilth("run", "--from", tasks)); err != nil {
		if requests := s.stub.requests(); len(requests) > 1 {
			at := max(0, strings.LastIndex(requests[1], "MADE-BY-THE-WORKER"))
			err = fmt.Errorf("%w\nafter its tool the worker was told %s", err,
				requests[1][at:min(len(requests[1]), at+700)])
		}
		return err
	}
	if judging != 2 {
		return fmt.Errorf("the judge was asked %d times about the judge's directory", judging)
	}
	if err := s.holds("MADE-BY-THE-WORKER"); err != nil {
		return fmt.Errorf("the judge could not read: %w", err)
	}
	requests := s.stub.requests()
	if worktrees, _ := filepath.Glob(filepath.Join(root, "*", "workspace")); len(worktrees) != 1 ||
		strings.Contains(requests[len(requests)-1], worktrees[0]) {
		return errors.New("the judge was told of the worker's worktree")
	}
	_, err = s.said(tilth("verify"))
	return err
}
