//go:build bench

package bench

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// benchFleet measures the size of a push at a task's end and the cost of renewing a claim.
func benchFleet(t *testing.T, tb *table) {
	for _, size := range []int64{1_000_000, longRecord} {
		w := newWorld(t, 10)
		remote := w.remote()
		w.run(0, "prep-feature", "--from", w.tasks(1))
		s := w.newest()
		fill(t, s.Path(session.RecordFile), size)
		w.run(0, "push")
		before := packed(t, remote)
		news := taskRecord()
		f, err := os.OpenFile(s.Path(session.RecordFile), os.O_WRONLY|os.O_APPEND, 0o600)
		must(t, err)
		_, err = f.Write(news)
		must(t, err)
		must(t, f.Close())
		w.run(0, "push")
		var small bytes.Buffer
		z := zlib.NewWriter(&small)
		_, err = z.Write(news)
		must(t, err)
		must(t, z.Close())
		sent, floor := packed(t, remote)-before, int64(small.Len())
		value := float64(sent) / float64(floor)
		tb.add(row{"a push at a task's end, " + sizeOf(t, s) + " record", fmt.Sprintf("%d bytes", sent),
			fmt.Sprintf("%d bytes of new record, compressed", floor), fmt.Sprintf("%.2f x", value),
			"2.00 x", value > 2})
	}

	w := newWorld(t, 10)
	w.remote()
	commands := func(lease string, wait int) (all, pushes int) {
		w.run(0, "prep-feature", "--keep-existing", "--from", w.tasks(1))
		s := w.newest()
		w.run(0, "push")
		slow := writeStep(writtenName(1), "what the task asked for\n")
		slow.DelayMS = wait
		server := w.serve(&scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()},
			Worker: []scripted.Step{slow, caseStep()}})
		defer server.Close()
		cmd := w.tilth("-v", "resume", s.ID)
		cmd.Env = w.at(server.URL, "TILTH_LEASE="+lease)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "+ git ") {
				all++
				if strings.Contains(line, " push ") {
					pushes++
				}
			}
		}
		return all, pushes
	}
	all, pushes := commands("5m", 0)
	allLong, pushesLong := commands("3s", 5000)
	if pushesLong == pushes {
		t.Fatal("no claim was renewed")
	}
	tb.count("git processes of a claim's renewal", float64(allLong-all)/float64(pushesLong-pushes), 1)
}

// remote creates the repository's origin. It keeps received packs.
func (w *world) remote() string {
	dir := filepath.Join(w.dir, "remote.git")
	w.git(w.dir, "init", "-q", "--bare", dir)
	w.git(dir, "config", "receive.unpackLimit", "1")
	w.git(w.repo, "remote", "add", "origin", dir)
	w.git(w.repo, "push", "-q", "origin", "HEAD")
	return dir
}

// packed is how many bytes of packs a repository has.
func packed(t *testing.T, dir string) (n int64) {
	names, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	must(t, err)
	for _, name := range names {
		fi, err := os.Stat(name)
		must(t, err)
		n += fi.Size()
	}
	return n
}

// taskRecord returns the events of a task of a dozen calls, with random contents.
func taskRecord() []byte {
	random := rand.New(rand.NewPCG(1, 1))
	var out bytes.Buffer
	for i := range 60 {
		var words strings.Builder
		for range 60 {
			fmt.Fprintf(&words, "%x ", random.IntN(1<<20))
		}
		fmt.Fprintf(&out, `{"ts":"2026-06-11T22:05:%02d.000Z","type":"tool_result","payload":{"iter":%d,`+
			`"result_preview":"%s","task_id":"T-001","tool":"read_file"}}`+"\n", i, i/5, words.String())
	}
	return out.Bytes()
}
