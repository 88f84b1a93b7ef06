//go:build linux && (amd64 || arm64)

package crashtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// userState describes everything in the repository that is the user's.
func (w *world) userState() (string, error) {
	var b strings.Builder
	for _, args := range [][]string{
		{"rev-parse", "HEAD"}, {"for-each-ref"}, {"stash", "list"}, {"config", "--local", "--list"},
	} {
		out, err := w.git(args...)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(out) {
			if !strings.Contains(line, "refs/heads/session/") && !strings.Contains(line, "refs/heads/"+ontoBranch) {
				b.WriteString(line)
			}
		}
	}
	// Files of sessions, and internal files of git.
	skip := []string{".git/objects", ".git/worktrees", ".git/refs/heads/session", ".git/logs/refs/heads/session"}
	skipFiles := []string{".git/refs/heads/" + ontoBranch, ".git/logs/refs/heads/" + ontoBranch}
	err := filepath.WalkDir(w.repo(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.repo(), path)
		switch {
		case slices.Contains(skip, rel):
			return filepath.SkipDir
		case slices.Contains(skipFiles, rel):
			return nil
		case d.IsDir(), strings.HasPrefix(rel, ".git/") &&
			strings.HasSuffix(rel, ".lock"), strings.HasPrefix(rel, ".git/packed-refs"):
			return nil // locks are checked at the end, refs were listed
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %q\n", rel, info.Mode(), data)
		return err
	})
	return b.String(), err
}

// leftLocks lists lock files in the repository, which would stop the user's own git commands.
func (w *world) leftLocks() error {
	var left []string
	err := filepath.WalkDir(filepath.Join(w.repo(), ".git"), func(path string, d fs.DirEntry, err error) error {
		if w.childDied && strings.Contains(path, "/.git/worktrees/") {
			return err
		}
		if strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, ".new") {
			left = append(left, path)
		}
		return err
	})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left in the repository: %s", strings.Join(left, ", "))
	}
	return err
}

// wholeFiles checks that every JSON file is whole and every JSON-lines file has at most a torn last line.
func (w *world) wholeFiles(tornAllowed bool) error {
	if tornAllowed && w.isArriving() {
		return nil
	}
	return filepath.WalkDir(w.sessionDir(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case path == w.workspace(), path == w.file("judge"), path == w.file("caches"), path == w.file("lanes"),
			path == w.file("travel/objects"): // git's own
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case strings.HasPrefix(name, "."):
			if !tornAllowed {
				return fmt.Errorf("a temporary file was left: %s", path)
			}
		case strings.HasSuffix(name, ".json") && !json.Valid(data):
			return fmt.Errorf("%s is not whole: %q", path, clip(string(data)))
		case strings.HasSuffix(name, ".jsonl"):
			return wholeLines(path, data, tornAllowed)
		}
		return nil
	})
}

func wholeLines(path string, data []byte, tornAllowed bool) error {
	for line := range bytes.Lines(data) {
		isLast := !bytes.HasSuffix(line, []byte("\n"))
		if isLast && tornAllowed {
			continue
		}
		if isLast || !json.Valid(line) || line[0] != '{' {
			return fmt.Errorf("%s has a line that is no object: %q", path, clip(string(line)))
		}
	}
	return nil
}

// commit is a commit of the session.
type commit struct {
	sha, parent, tree, subject, task, failed string
}

// commits lists the branch's commits above the base, oldest first.
func (w *world) commits() ([]commit, error) {
	out, err := w.git("log", "--reverse", "--first-parent", "-z",
		"--format=%H%x01%P%x01%T%x01%s%x01%(trailers:key=Tilth-Task,valueonly,"+
			"separator=)%x01%(trailers:key=Tilth-Failed,valueonly,separator=)", cmp.Or(w.since, "main")+".."+w.branch())
	if err != nil {
		return nil, err
	}
	var all []commit
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if entry == "" {
			break // only a seed without tests
		}
		f := strings.Split(entry, "\x01")
		if len(f) != 6 {
			return nil, fmt.Errorf("git log says %q", entry)
		}
		if f[4] != "" || w.since == "" { // otherwise the user's
			all = append(all, commit{f[0], f[1], f[2], f[3], f[4], f[5]})
		}
	}
	return all, nil
}

// events reads the record's whole lines.
func (w *world) events() []gjson.Result {
	data, _ := os.ReadFile(w.file("events.jsonl"))
	var all []gjson.Result
	for line := range bytes.Lines(data) {
		if bytes.HasSuffix(line, []byte("\n")) {
			all = append(all, gjson.ParseBytes(line))
		}
	}
	return all
}

// accepted reports whether the reviewer accepted a task.
func (w *world) accepted(task string) bool {
	return slices.ContainsFunc(w.events(), func(e gjson.Result) bool {
		return e.Get("type").Str == "evaluator_verdict" && e.Get("payload.verdict").Str == "accept" &&
			e.Get("payload.task_id").Str == task
	})
}

// status reads the status of each task from prd.json.
func (w *world) status() (map[string]string, error) {
	data, err := os.ReadFile(w.file("prd.json"))
	status := map[string]string{}
	for _, t := range gjson.ParseBytes(data).Array() {
		status[t.Get("id").Str] = t.Get("status").Str
	}
	return status, err
}

// tasksAndCommits checks that no task is done without a commit or has two, and that no commit has more than its task's
// accepted work.
func (w *world) tasksAndCommits() error {
	commits, err := w.commits()
	if err != nil {
		return err
	}
	status, err := w.status()
	if err != nil {
		return err
	}
	accepted := map[string]bool{}
	for _, e := range w.events() {
		if e.Get("type").Str == "evaluator_verdict" && e.Get("payload.verdict").Str == "accept" {
			accepted[e.Get("payload.task_id").Str+" "+e.Get("payload.tree").Str] = true
		}
	}
	done := map[string]bool{}
	for i, c := range commits {
		if c.failed != "" || c.task == "" {
			if i != len(commits)-1 {
				return fmt.Errorf("commit %s %q is in the middle of the branch", c.sha, c.subject)
			}
			continue
		}
		if done[c.task] {
			return fmt.Errorf("%s has two commits", c.task)
		}
		done[c.task] = true
		// If a hook has just changed the tip, it is not a task's work yet.
		if status[c.task] != "done" && i == len(commits)-1 {
			continue
		}
		if !accepted[c.task+" "+c.tree] {
			return fmt.Errorf("the commit of %s holds tree %s, which nobody accepted", c.task, c.tree)
		}
		if err := w.ownWork(c); err != nil {
			return err
		}
	}
	for id, s := range status {
		if s == "done" && !done[id] {
			return fmt.Errorf("%s is done without a commit", id)
		}
	}
	return nil
}

// ownWork checks that a commit changes its task's files, all of them and no others.
func (w *world) ownWork(c commit) error {
	if w.unwritten {
		return nil
	}
	out, err := w.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", c.parent, c.sha)
	if err != nil {
		return err
	}
	want := contents[c.task]
	names := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if w.backThere {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "cache/data" })
	}
	if len(names) != len(want) {
		return fmt.Errorf("the commit of %s changes %q", c.task, names)
	}
	for _, name := range names {
		text, err := w.git("cat-file", "blob", c.sha+":"+name)
		if err != nil {
			return err
		}
		if !slices.Contains(want[name], text) {
			return fmt.Errorf("the commit of %s has %s with %q", c.task, name, text)
		}
	}
	return nil
}

// shown checks that list and show work and hide nothing that is unfinished.
func (w *world) shown() error {
	if _, err := os.Stat(w.sessionDir()); w.id == "" || errors.Is(err, fs.ErrNotExist) {
		_, err := w.expect([]int{0}, "list")
		return err
	}
	for _, args := range [][]string{{"list"}, {"show", w.id}} {
		if _, err := w.expect([]int{0}, args...); err != nil {
			return err
		}
	}
	show, err := w.expect([]int{0}, "show", "--json", w.id)
	if err != nil {
		return err
	}
	list, err := w.expect([]int{0}, "list", "--json", "--all")
	if err != nil {
		return err
	}
	if !gjson.Valid(show.out) || !gjson.Valid(list.out) {
		return fmt.Errorf("no JSON: %s\n%s", clip(list.out), clip(show.out))
	}
	row := gjson.Get(list.out, `#(session_id=="`+w.id+`")`)
	if !row.Exists() {
		return fmt.Errorf("list does not name the session: %s", clip(list.out))
	}
	if row.Get("holder").Exists() {
		return fmt.Errorf("the lock is still held: %s", clip(list.out))
	}
	if w.isGoingBack() && (!row.Get("going_back").Bool() && !row.Get("rewinding").Bool() ||
		!strings.HasPrefix(gjson.Get(show.out, "resume").Str, "finish ")) {
		return fmt.Errorf("a rewind or undo that was begun is not shown: %s\n%s", clip(list.out), clip(show.out))
	}
	if _, err := os.Lstat(w.file("reset")); err == nil &&
		(!row.Get("resetting").Bool() ||
			!strings.HasPrefix(gjson.Get(show.out, "resume").Str, "cannot be resumed")) {
		return fmt.Errorf("a teardown that was begun is not shown: %s\n%s", clip(list.out), clip(show.out))
	}
	return nil
}
