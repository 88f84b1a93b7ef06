//go:build bench

package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// failedSession creates a session with one done task and one that failed at its iteration cap, with a placeholder for
// its partial work.
func (w *world) failedSession() *session.Session {
	w.t.Helper()
	script := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}, Worker: []scripted.Step{
		readStep(fileName(0)), writeStep(writtenName(1), "what the task asked for\n"), caseStep(),
		writeStep(writtenName(2), "half of it\n"), readStep(fileName(1)), readStep(fileName(2)),
	}}
	server := w.serve(script)
	defer server.Close()
	cmd := w.tilth("run", "--yes", "--from", w.tasks(2), "--max-iterations", "3")
	cmd.Env = w.at(server.URL)
	w.timed(1, cmd)
	return w.newest()
}

// oldSessions creates n sessions like s, older than it, each with a branch and an empty registered worktree.
func (w *world) oldSessions(s *session.Session, n int) {
	w.t.Helper()
	for i := range n {
		id := fmt.Sprintf("20250101-%02d%02d%02d-%06x", i/3600, i/60%60, i%60, i)
		dir := filepath.Join(w.sessions, id)
		must(w.t, os.MkdirAll(dir, 0o700))
		w.git(w.repo, "worktree", "add", "--quiet", "--no-checkout", "-b", "session/"+id,
			filepath.Join(dir, "workspace"), "HEAD")
		for _, name := range []string{session.CheckpointFile, session.TasksFile, session.RecordFile} {
			data, err := os.ReadFile(s.Path(name))
			must(w.t, err)
			must(w.t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(data), s.ID, id)), 0o600))
		}
	}
}

// lengthen brings a session's record to a size by events of its first task, after that task's beginning.
func lengthen(t testing.TB, s *session.Session, size int64) {
	t.Helper()
	data, err := os.ReadFile(s.Path(session.RecordFile))
	must(t, err)
	at := strings.Index(string(data), `"context_reset"`)
	if at < 0 {
		t.Fatal("the record has no context_reset")
	}
	at += strings.IndexByte(string(data[at:]), '\n') + 1
	f, err := os.Create(s.Path(session.RecordFile))
	must(t, err)
	out := bufio.NewWriterSize(f, 1<<20)
	filler := `{"ts":"2026-06-11T22:04:10.000Z","type":"tool_result","payload":{"task_id":"T-001","iter":1,"tool":"read_file","result_preview":"` +
		strings.Repeat("a line of text; ", 20) + `","result_chars":320}}` + "\n"
	_, err = out.Write(data[:at])
	must(t, err)
	for n := int64(len(data)); n < size; n += int64(len(filler)) {
		_, err = out.WriteString(filler)
		must(t, err)
	}
	_, err = out.Write(data[at:])
	must(t, err)
	must(t, out.Flush())
	must(t, f.Close())
	must(t, s.WriteSummary())
	settle(t)
}

// ownFiles are a session's files but for its worktree and its record.
func ownFiles(t testing.TB, s *session.Session) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		if path := s.Path(e.Name()); path != s.Workspace() && e.Name() != session.RecordFile {
			out = append(out, path)
		}
	}
	return out
}

// settle waits until all written data is on the disk, so that no measurement pays for an earlier one's files.
func settle(t testing.TB) {
	t.Helper()
	must(t, exec.Command("sync").Run())
}
