package fleet

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/testsize"
)

// Assumptions of the simulation. A push is a ref transaction and a few objects on a distant server.
const (
	simServers  = 4                      // pushes and fetches that the remote does at a time
	simService  = 200 * time.Millisecond // average time of a request
	simLatency  = 100 * time.Millisecond // on the way
	simTask     = 10 * time.Minute       // average time of a task
	simTasks    = 3                      // of a session
	simSessions = 2                      // sessions per worker
	simLife     = 4 * time.Hour          // average time until a worker is killed
	simAgain    = time.Minute            // time until its replacement starts
	simPatience = 4 * time.Hour          // after that it never drains
)

// TestTheTableOfTheFleet simulates workers at one remote with the real choice of the next session, and compares the
// result with docs/fleet.md. Each row is repeatable: its numbers are its seed. A thousand workers take a while and run
// only at night.
func TestTheTableOfTheFleet(t *testing.T) {
	doc, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{1, 10, 100}
	if testsize.IsFull() {
		sizes = append(sizes, 1000)
	}
	for _, workers := range sizes {
		for _, lease := range []time.Duration{30 * time.Second, 5 * time.Minute, 15 * time.Minute} {
			s := simulate(workers, lease)
			for id, one := range s.sessions {
				if one.ends > 1 || one.ends == 0 && s.open == 0 {
					t.Errorf("%d workers, lease %s: session %s came to its end %d times", workers, lease, id, one.ends)
				}
			}
			if row := s.row(); !strings.Contains(string(doc), row+"\n") {
				t.Errorf("docs/fleet.md has no row\n%s", row)
			}
		}
	}
}

type simEvent struct {
	at time.Duration
	n  int // order of events at the same time
	do func()
}

type simHeap []simEvent

func (h simHeap) Len() int { return len(h) }
func (h simHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h simHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *simHeap) Push(x any)   { *h = append(*h, x.(simEvent)) }
func (h *simHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// simSession is a session on the remote.
type simSession struct {
	claim  *Claim
	holder *simWorker
	left   int // tasks
	ends   int
	killed time.Duration // when its holder was
}

// simWorker is one life of a worker.
type simWorker struct {
	dead bool
	lost int // races lost in a row
}

type simulation struct {
	lease    time.Duration
	rand     *rand.Rand
	now      time.Duration
	events   simHeap
	n        int
	servers  [simServers]time.Duration // when each is free
	sessions map[string]*simSession
	claims   []Claim // newest first
	open     int

	workers, pushes, fetches, races, losses int
	busy                                    time.Duration
	overs                                   []time.Duration
}

func simulate(workers int, lease time.Duration) *simulation {
	s := &simulation{lease: lease, workers: workers, rand: rand.New(rand.NewPCG(uint64(workers), uint64(lease)))}
	s.open = simSessions * workers
	s.sessions, s.claims = map[string]*simSession{}, make([]Claim, s.open)
	for i := range s.claims {
		c := &s.claims[i]
		c.Session, c.Status = fmt.Sprint(i), session.Prepared
		s.sessions[c.Session] = &simSession{left: simTasks, claim: c}
	}
	for range workers {
		s.start()
	}
	for s.open > 0 && s.now < simPatience {
		e := heap.Pop(&s.events).(simEvent)
		s.now = e.at
		e.do()
	}
	return s
}

func (s *simulation) in(d time.Duration, do func()) {
	s.n++
	heap.Push(&s.events, simEvent{s.now + d, s.n, do})
}

func (s *simulation) clock(at time.Duration) time.Time { return time.Unix(0, 0).Add(at) }

func (s *simulation) about(d time.Duration) time.Duration {
	return time.Duration(s.rand.ExpFloat64() * float64(d))
}

// ask makes a request to the remote and continues with the answer.
func (s *simulation) ask(do func() (then func())) {
	first := slices.Index(s.servers[:], slices.Min(s.servers[:]))
	takes := simService/2 + time.Duration(s.rand.Int64N(int64(simService)))
	done := max(s.servers[first], s.now+simLatency/2) + takes
	s.servers[first] = done
	s.busy += takes
	s.in(done-s.now, func() {
		then := do()
		s.in(simLatency/2, then)
	})
}

// start starts a worker, which will be killed.
func (s *simulation) start() {
	w := &simWorker{}
	s.in(s.about(simLife), func() {
		w.dead = true
		for _, one := range s.sessions {
			if one.holder == w && one.killed == 0 {
				one.killed = s.now
			}
		}
		s.in(simAgain, s.start)
	})
	s.list(w)
}

func (s *simulation) list(w *simWorker) {
	s.fetches++
	s.ask(func() func() {
		c, found, _ := Next(s.claims, s.clock(s.now), w.lost, s.rand.IntN, func(string) bool { return false })
		return func() {
			switch {
			case w.dead:
			case found:
				s.claim(w, s.sessions[c.Session], c)
			default:
				w.lost = 0
				s.in(Pause(s.lease, 0, s.rand.Float64()), func() { s.list(w) })
			}
		}
	})
}

// push moves the claim of a session from the value that a worker has seen.
func (s *simulation) push(w *simWorker, one *simSession, seen Claim, next func(*Claim), then func(Claim, bool)) {
	if w.dead {
		return
	}
	s.pushes++
	expires := s.clock(s.now + s.lease).UTC().Format(time.RFC3339Nano)
	s.ask(func() func() {
		won := one.claim.Counter == seen.Counter
		if won {
			one.claim.Counter++
			one.claim.Holder, one.claim.Expires, one.claim.Status = "w", expires, session.Running
			next(one.claim)
			if one.holder != w && one.killed != 0 {
				s.overs = append(s.overs, s.now-one.killed)
				one.killed = 0
			}
			if one.holder = w; w.dead {
				one.killed = s.now
			}
		}
		now := *one.claim
		return func() {
			if !w.dead {
				then(now, won)
			}
		}
	})
}

func (s *simulation) claim(w *simWorker, one *simSession, seen Claim) {
	s.push(w, one, seen, func(*Claim) {}, func(c Claim, won bool) {
		if !won {
			s.races++
			w.lost++
			s.in(Pause(s.lease, w.lost, s.rand.Float64()), func() { s.list(w) })
			return
		}
		w.lost = 0
		s.task(w, one, c, s.now+s.about(simTask), one.left)
	})
}

// task works on a task until its end. Every third of a lease the claim is renewed.
func (s *simulation) task(w *simWorker, one *simSession, c Claim, end time.Duration, left int) {
	renew := s.now + s.lease/3
	s.in(max(min(renew, end)-s.now, 0), func() {
		done := s.now >= end
		if done {
			left--
		}
		s.push(w, one, c, func(c *Claim) {
			one.left = left
			if left == 0 {
				c.Holder, c.Status = "", session.AllDone
				one.ends++
				s.open--
			}
		}, func(c Claim, won bool) {
			switch {
			case !won:
				s.losses++
				s.list(w)
			case left == 0:
				s.list(w)
			case done:
				s.task(w, one, c, s.now+s.about(simTask), left)
			default:
				s.task(w, one, c, end, left)
			}
		})
	})
}

func (s *simulation) row() string {
	minutes := s.now.Minutes()
	median, worst, drained := "-", "-", short(s.now.Round(time.Minute))
	if s.open > 0 {
		drained = "never"
	}
	if len(s.overs) > 0 {
		slices.Sort(s.overs)
		median = s.overs[len(s.overs)/2].Round(time.Second).String()
		worst = s.overs[len(s.overs)-1].Round(time.Second).String()
	}
	return fmt.Sprintf("| %d | %s | %.1f | %.1f | %.2f a session | %d | %s | %s | %.0f %% | %s |",
		s.workers, short(s.lease), float64(s.pushes)/minutes, float64(s.fetches)/minutes,
		float64(s.races)/float64(len(s.sessions)), s.losses, median, worst,
		min(100, 100*s.busy.Minutes()/minutes/simServers), drained)
}

func short(d time.Duration) string {
	return strings.TrimSuffix(d.String(), "m0s") + map[bool]string{true: "m"}[strings.HasSuffix(d.String(), "m0s")]
}
