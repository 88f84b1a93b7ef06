//go:build bench

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

const listed = 10_000

// benchList measures `list` over 10,000 sessions, all of the current repository, and `list` over all repositories.
func benchList(t *testing.T, tb *table) {
	w := newWorld(t, 10)
	w.manySessions(listed)
	list := func(args ...string) func() time.Duration {
		return func() time.Duration { return w.timed(0, w.tilth(append([]string{"list"}, args...)...)) }
	}
	took := alternate(11, list(), list("--all"), list("--json"), w.readSmall)
	what := "reading their two files, one by one"
	tb.limit("list, 10,000 sessions of one repository", took[0], took[3], what, 300*time.Millisecond)
	tb.limit("list --all, 10,000 sessions", took[1], took[3], what, 300*time.Millisecond)
	tb.limit("list --json, 10,000 sessions", took[2], took[3], what, 300*time.Millisecond)

	without := took[0]
	w.branchEach()
	took = alternate(11, list())
	tb.ratio("list, each session with a branch", took[0], without, "list without any", 1.5)

	other := filepath.Join(w.dir, "other")
	w.git(w.dir, "init", "-q", other)
	must(t, os.Rename(w.repo, w.repo+"-gone"))
	w.repo = other
	took = alternate(11, list(), list("--all"))
	tb.ratio("list beside 10,000 sessions of a repository that is gone", took[0], took[1], "list --all", 1.5)
}

// branchEach gives each session a branch, at a commit that other refs have too.
func (w *world) branchEach() {
	entries, err := os.ReadDir(w.sessions)
	must(w.t, err)
	var refs strings.Builder
	tip := w.git(w.repo, "rev-parse", "HEAD")
	for _, e := range entries {
		if !e.IsDir() { // the cache of list
			continue
		}
		fmt.Fprintf(&refs, "%s refs/heads/session/%s\n", tip, e.Name())
	}
	packed, err := os.OpenFile(filepath.Join(w.repo, ".git/packed-refs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(w.t, err)
	_, err = packed.WriteString(refs.String())
	must(w.t, errors.Join(err, packed.Close()))
}

// readSmall is the floor: checkpoint and plan of each session, read and thrown away.
func (w *world) readSmall() time.Duration {
	start := time.Now()
	entries, err := os.ReadDir(w.sessions)
	must(w.t, err)
	for _, e := range entries {
		if !e.IsDir() { // the cache of list
			continue
		}
		for _, name := range []string{session.CheckpointFile, session.TasksFile} {
			_, err := os.ReadFile(filepath.Join(w.sessions, e.Name(), name))
			must(w.t, err)
		}
	}
	return time.Since(start)
}

// manySessions writes session files directly, which is faster than creating sessions. Like real ones they have the
// roll-up of their record.
func (w *world) manySessions(n int) {
	w.t.Helper()
	filler := strings.Repeat(`{"ts":"2026-06-01T10:00:00.000Z","type":"tool_result","payload":{"task_id":"T-001","iter":1,"result_preview":"`+
		strings.Repeat("x", 180)+`"}}`+"\n", 160)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var tasks []string
	for i := range 8 {
		tasks = append(tasks, fmt.Sprintf(`{"id": "T-%03d", "title": "Do thing %d", "description": %q, "acceptance_criteria": ["it works", "it is tested"], "status": "done"}`,
			i+1, i, strings.Repeat("why and how ", 20)))
	}
	plan := "[\n  " + strings.Join(tasks, ",\n  ") + "\n]\n"
	for i := range n {
		id := begin.Add(time.Duration(i)*time.Minute).Format("20060102-150405") + fmt.Sprintf("-%06x", i)
		dir := filepath.Join(w.sessions, id)
		status, stop := session.AllDone, "all_done"
		switch i % 5 {
		case 1:
			status, stop = session.Failed, "iter_cap"
		case 2:
			status, stop = session.Running, "wall_clock"
		}
		checkpoint := fmt.Sprintf(`{
  "session_id": %q, "source": %q, "workspace": %q, "branch": "session/%s", "status": %q, "tokens_used": 123456,
  "usage": {"worker": {"calls": 20, "prompt_tokens": 100000, "eval_tokens": 20000, "cost": 0.5}},
  "started_at": "2026-06-01T10:00:00.000Z", "conversations": {}, "git_common_dir": %q
}`, id, w.repo, filepath.Join(dir, "workspace"), id, status, filepath.Join(w.repo, ".git"))
		record := filler + fmt.Sprintf(`{"ts":"2026-06-01T10:20:00.000Z","type":"stop","payload":{"reason":%q}}`+"\n", stop)
		must(w.t, os.MkdirAll(dir, 0o700))
		for name, text := range map[string]string{
			session.CheckpointFile: checkpoint, session.TasksFile: plan, session.RecordFile: record,
			session.LockFile: "",
		} {
			must(w.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		s, err := session.Store{Root: w.sessions}.Find(id)
		must(w.t, err)
		must(w.t, s.WriteSummary())
	}
}
