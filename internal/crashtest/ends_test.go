//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/scripttest"
)

// allDone checks that the session ended as without a crash.
func (w *world) allDone() error {
	commits, err := w.commits()
	if err != nil {
		return err
	}
	var tasks []string
	for _, c := range commits {
		tasks = append(tasks, c.task+c.failed)
	}
	// A task that failed with --keep-going comes after the tasks that follow it in the plan.
	if slices.Sort(tasks); !slices.Equal(tasks, taskIDs) {
		return fmt.Errorf("the branch has commits for %q, want one for each task", tasks)
	}
	status, err := w.status()
	if err != nil {
		return err
	}
	for _, id := range taskIDs {
		if status[id] != "done" {
			return fmt.Errorf("%s is %q", id, status[id])
		}
	}
	if err := errors.Join(w.tasksAndCommits(), w.wholeFiles(false), w.recordTells(commits), w.leftLocks()); err != nil {
		return err
	}
	data, _ := os.ReadFile(w.file("checkpoint.json"))
	if got := gjson.GetBytes(data, "status").Str; got != "all_done" {
		return fmt.Errorf("the session's status is %q", got)
	}
	out, err := w.git("-C", w.workspace(), "status", "--porcelain")
	if err == nil && out != "" && !w.childDied {
		err = fmt.Errorf("the worktree is not clean:\n%s", out)
	}
	return err
}

// recordTells checks the record of an all_done session: no task starts again after its commit, the totals match the
// calls, and progress and roll-up have every task once.
func (w *world) recordTells(commits []commit) error {
	place := map[string]int{}
	for i, c := range commits {
		place[c.sha] = i + 1
	}
	var used, stops int64
	noted := map[string]bool{}
	for _, e := range w.events() {
		p := e.Get("payload")
		switch e.Get("type").Str {
		case "context_reset":
			task := p.Get("task_id").Str
			own := slices.IndexFunc(commits, func(c commit) bool { return c.task == task }) + 1
			if own > 0 && place[p.Get("base").Str] >= own {
				return fmt.Errorf("%s was begun again on a branch that had its commit", task)
			}
		case "model_call":
			used += p.Get("prompt_tokens").Int() + p.Get("eval_tokens").Int()
		case "commit":
			noted[p.Get("sha").Str] = true
		case "stop":
			if p.Get("reason").Str == "all_done" {
				stops++
			}
		case "session_rewound":
			stops = 0
		}
	}
	for _, c := range commits {
		if !noted[c.sha] {
			return fmt.Errorf("the commit of %s is not in the record", c.task)
		}
	}
	if stops != 1 {
		return fmt.Errorf("%d stops say all_done", stops)
	}
	data, err := os.ReadFile(w.file("checkpoint.json"))
	if got := gjson.GetBytes(data, "tokens_used").Int(); err != nil || got != used {
		return fmt.Errorf("the checkpoint has %d tokens, the calls in the record %d %v", got, used, err)
	}
	data, err = os.ReadFile(w.file("summary.json"))
	for _, id := range taskIDs {
		if got := gjson.GetBytes(data, "tasks."+id+".status").Str; err != nil || got != "done" {
			return fmt.Errorf("summary.json has %s as %q %v", id, got, err)
		}
	}
	data, err = os.ReadFile(w.file("progress.txt"))
	if err != nil {
		return err
	}
	for _, id := range taskIDs {
		if n := strings.Count(string(data), id+"\tdone\t"); n != 1 {
			return fmt.Errorf("progress.txt names %s %d times:\n%s", id, n, data)
		}
	}
	return nil
}

// gone checks that nothing is left of the session.
func (w *world) gone() error {
	var errs []error
	if _, err := os.Lstat(w.sessionDir()); w.id != "" && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("%s is still there", w.sessionDir()))
	}
	for _, args := range [][]string{{"for-each-ref", "refs/heads/session/"}, {"worktree", "list", "--porcelain"}} {
		out, err := w.git(args...)
		if err == nil && (strings.Contains(out, "/sessions/") || strings.Contains(out, "refs/heads/session/")) {
			err = fmt.Errorf("git %s: %s", strings.Join(args, " "), out)
		}
		errs = append(errs, err)
	}
	entries, _ := os.ReadDir(filepath.Join(w.repo(), ".git", "worktrees"))
	if len(entries) > 0 {
		errs = append(errs, errors.New("a worktree entry is still there"))
	}
	return errors.Join(append(errs, w.leftLocks())...)
}

// snapshot describes everything that a rewind has to restore: the session's directory and the files of its worktree,
// without ignored ones.
func (w *world) snapshot() (string, error) {
	return w.described([]string{"."}, "diff", "--cached", "--name-status")
}

// described returns the named files of the session's directory, its branch and HEAD, and the output of a git command in
// the worktree. Ignored files are left out.
func (w *world) described(names []string, command ...string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		err := filepath.WalkDir(w.file(name), func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(w.sessionDir(), path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case rel == "workspace/cache":
				return filepath.SkipDir
			case d.IsDir(), rel == "workspace/.git", rel == "lock", strings.HasSuffix(rel, ".ignored"):
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %s %q\n", rel, info.Mode(), data)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{
		{"rev-parse", w.branch()}, {"-C", w.workspace(), "symbolic-ref", "HEAD"},
		append([]string{"-C", w.workspace()}, command...),
	} {
		out, err := w.git(args...)
		if err != nil {
			return "", err
		}
		b.WriteString(out)
	}
	return b.String(), nil
}

// differ returns the differences of two descriptions.
func differ(what, was, is string) error {
	if was == is {
		return nil
	}
	return fmt.Errorf("%s changed:\n%s", what, clip(scripttest.LineDiff(was, is)))
}
