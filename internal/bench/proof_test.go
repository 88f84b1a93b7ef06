//go:build bench

package bench

import (
	"bufio"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

const longRecord = 450_000_000

// benchProof measures the cost of a commit's trailer and the speed of verifying a long record.
func benchProof(t *testing.T, tb *table) {
	w := newWorld(t, 10)
	w.run(0, "prep-feature", "--from", w.tasks(1))
	s := w.newest()
	fill(t, s.Path(session.RecordFile), longRecord)
	server := w.serve(&scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}, Worker: []scripted.Step{
		writeStep(writtenName(1), "what the task asked for\n"), caseStep(),
	}})
	cmd := w.tilth("resume", s.ID) // the session has started, by its record
	cmd.Env = w.at(server.URL)
	w.timed(0, cmd)
	settle(t)
	took := alternate(5, func() time.Duration { return w.timed(0, w.tilth("verify", s.ID)) }, func() time.Duration {
		start := time.Now()
		f, err := os.Open(s.Path(session.RecordFile))
		must(t, err)
		defer f.Close()
		_, err = io.Copy(sha256.New(), f)
		must(t, err)
		return time.Since(start)
	})
	tb.limit("verify, "+sizeOf(t, s)+" record (300 MB/s)", took[0], took[1], "its hash alone",
		longRecord/300*time.Microsecond)

	for name, size := range map[string]int64{"1 MB": 1_000_000, "450 MB": longRecord} {
		path := filepath.Join(w.dir, "record.jsonl")
		must(t, os.RemoveAll(path))
		fill(t, path, size)
		r, err := record.Open(path, record.Options{})
		must(t, err)
		_, _, err = r.Mark() // waits for the background work of a resume
		must(t, err)
		add := func(mark bool) func() time.Duration {
			return func() time.Duration {
				start := time.Now()
				must(t, r.Append(&record.ToolResult{Tool: "bash", Preview: strings.Repeat("x", 2000)}))
				if mark {
					_, _, err := r.Mark()
					must(t, err)
				}
				return time.Since(start)
			}
		}
		took := alternate(101, add(true), add(false))
		tb.above("a commit's trailer, "+name+" record", took[0], took[1], "an event alone", time.Millisecond)
		r.Close()
	}
}

// fill appends events to a record until it has a size.
func fill(t *testing.T, path string, size int64) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(t, err)
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	line := `{"ts":"2026-06-11T22:04:10.000Z","type":"tool_result","payload":{"iter":1,"result_chars":1600,"result_preview":"` +
		strings.Repeat("a line of text; ", 100) + `","task_id":"T-001","tool":"read_file"}}` + "\n"
	for n := int64(0); n < size; n += int64(len(line)) {
		_, err := out.WriteString(line)
		must(t, err)
	}
	must(t, out.Flush())
}
