//go:build bench

package bench

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

const (
	turns = 200
	edge  = 20 // turns at either end that are compared
)

// arrivals notes when each of the worker's requests came, and its body.
type arrivals struct {
	mu     sync.Mutex
	times  []time.Time
	bodies [][]byte
}

func (a *arrivals) note(r scripted.Request) {
	now := time.Now()
	if r.Role != scripted.RoleWorker {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, now)
	a.bodies = append(a.bodies, r.Body)
}

// gaps are the times from each request to the next.
func (a *arrivals) gaps() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []time.Duration
	for i := 1; i < len(a.times); i++ {
		out = append(out, a.times[i].Sub(a.times[i-1]))
	}
	return out
}

// benchTurns runs a task of 200 turns that each read a file, and posts the same bodies again with a bare client.
// Both are timed at the endpoint, from request to request.
func benchTurns(t *testing.T, tb *table) {
	const rounds = 7
	w := newWorld(t, 20)
	from := w.tasks(1)
	var run, raw [][]time.Duration
	for range rounds + 1 {
		bodies, gaps := w.manyTurns(from)
		run = append(run, gaps)
		raw = append(raw, w.replayTurns(bodies))
	}
	mine, floor := perTurn(run[1:]), perTurn(raw[1:])
	whole := turns * time.Duration(1)
	tb.above("a tool-use iteration, mean of 200", total(mine)/whole, total(floor)/whole, "raw replay of its requests",
		600*time.Microsecond)
	first, last := total(mine[:edge])/edge, total(mine[turns-edge:])/edge
	growth := total(floor[turns-edge:])/edge - total(floor[:edge])/edge
	tb.ratio("the last 20 turns, less the replay's growth", last-growth, first, "the first 20 turns", 1.5)
}

func manySteps() *scripted.Script {
	s := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}}
	for i := range turns {
		s.Worker = append(s.Worker, readStep(fileName(i%20)))
	}
	s.Worker = append(s.Worker, writeStep(writtenName(1), "x\n"), caseStep())
	return s
}

func (w *world) manyTurns(from string) ([][]byte, []time.Duration) {
	w.t.Helper()
	must(w.t, os.RemoveAll(w.sessions))
	w.git(w.repo, "worktree", "prune")
	var seen arrivals
	server := w.serve(manySteps(), scripted.OnRequest(seen.note))
	defer server.Close()
	cmd := w.tilth("run", "--yes", "--from", from, "--max-iterations", "300")
	cmd.Env = w.at(server.URL)
	w.timed(0, cmd)
	gaps := seen.gaps()
	if len(gaps) < turns {
		w.t.Fatalf("%d turns, want %d", len(gaps), turns)
	}
	return seen.bodies[:turns+1], gaps[:turns]
}

func (w *world) replayTurns(bodies [][]byte) []time.Duration {
	w.t.Helper()
	var seen arrivals
	server := w.serve(manySteps(), scripted.OnRequest(seen.note))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, body := range bodies {
		res, err := client.Post(server.URL+"/chat/completions", "application/json", bytes.NewReader(body))
		must(w.t, err)
		_, err = io.Copy(io.Discard, res.Body)
		must(w.t, err)
		must(w.t, res.Body.Close())
		if res.StatusCode != http.StatusOK {
			w.t.Fatal("the replay was answered with ", res.Status)
		}
	}
	return seen.gaps()[:turns]
}

// perTurn is the median over all rounds, turn by turn.
func perTurn(rounds [][]time.Duration) []time.Duration {
	out := make([]time.Duration, turns)
	for i := range out {
		var all []time.Duration
		for _, r := range rounds {
			all = append(all, r[i])
		}
		out[i] = median(all)
	}
	return out
}

func total(d []time.Duration) time.Duration {
	var sum time.Duration
	for _, x := range d {
		sum += x
	}
	return sum
}
