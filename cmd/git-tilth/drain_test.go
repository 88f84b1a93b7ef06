package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/fleet"
	"github.com/git-tilth/git-tilth/internal/testsize"
)

// TestWorkersDrainARemote lets workers drain a remote while they are killed at random. It checks sources that no worker
// could have written: the remote's reflog and the model's calls. TILTH_FLEET sets the size:
// workers,sessions,kills,seed.
func TestWorkersDrainARemote(t *testing.T) {
	t.Parallel()
	size := []int{testsize.Of(2, 6), testsize.Of(3, 16), testsize.Of(2, 8), 1}
	for i, n := range strings.Split(os.Getenv("TILTH_FLEET"), ",") {
		if v, err := strconv.Atoi(n); err == nil && i < len(size) {
			size[i] = v
		}
	}
	d := newDrain(t, size[1], size[2], uint64(size[3]))
	var all sync.WaitGroup
	for i := range size[0] {
		all.Go(func() { d.work(i) })
	}
	all.Wait()
	for _, id := range d.ids {
		d.check(id)
	}
	t.Logf("%d workers, %d sessions, %d kills", size[0], size[1], size[2]-d.kills)
}

// heard is a call as the model's own log has it.
type heard struct{ caller, task string }

// drain is a remote with sessions that are to be run.
type drain struct {
	*place
	dir, remote string
	url         string   // of the remote
	ids         []string // session ids in the order of their numbers

	mu      sync.Mutex
	rand    *rand.Rand
	kills   int // kills still to come
	running map[string]*exec.Cmd
	killed  map[string]bool    // callers
	calls   map[string][]heard // by number of the session
}

var (
	sessionOf = regexp.MustCompile(`in session-(\d+)`)
	taskOf    = regexp.MustCompile(`Write ([ab])\.txt`)
)

func newDrain(t *testing.T, sessions, kills int, seed uint64) *drain {
	p := newPlace(t)
	d := &drain{place: p, dir: filepath.Dir(p.repo), kills: kills, rand: rand.New(rand.NewPCG(seed, 0)),
		running: map[string]*exec.Cmd{}, killed: map[string]bool{}, calls: map[string][]heard{}}
	d.remote = filepath.Join(d.dir, "remote.git")
	p.git("init", "-q", "--bare", d.remote)
	p.git("-C", d.remote, "config", "core.logAllRefUpdates", "always")
	p.git("-C", d.remote, "config", "http.receivepack", "true")
	// The remote is behind a server, as usual. With a path, the worker's git would move the refs one by one, and a kill
	// would leave a lock and only some refs moved.
	server := httptest.NewServer(gitBackend(t, d.dir))
	t.Cleanup(server.Close)
	d.url = server.URL + "/remote.git"
	p.git("remote", "add", "origin", d.url)
	p.git("push", "-q", "origin", "HEAD")
	p.env = append(p.env, "TILTH_LEASE=10s", "TILTH_SANDBOX=off", "TILTH_PROVIDER_ATTEMPTS=1")
	d.serve()
	for i := range sessions {
		tasks := fmt.Sprintf("session-%d.json", i)
		p.tasks("../"+tasks, fmt.Sprintf("in session-%d", i), "a", "b")
		for _, args := range [][]string{{"prep", "--from", "../" + tasks}, {"push"}} {
			p.git(append([]string{"tilth"}, args...)...)
		}
		d.ids = append(d.ids, p.newest().ID)
		p.git("tilth", "reset", "-y")
	}
	return d
}

// serve starts the model with a log of its calls. Some calls are the last of their caller.
func (d *drain) serve() {
	server := d.model(writes("a", "b"))
	to, err := url.Parse(server.URL)
	if err != nil {
		d.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	log := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		d.hear(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), body)
		proxy.ServeHTTP(w, r)
	}))
	d.t.Cleanup(log.Close)
	d.env = append(d.env, "TILTH_BASE_URL="+log.URL+"/v1")
}

func (d *drain) hear(caller string, body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	number, task := sessionOf.FindSubmatch(body), taskOf.FindAllSubmatch(body, -1)
	if number == nil || task == nil {
		return
	}
	n := string(number[1])
	d.calls[n] = append(d.calls[n], heard{caller, string(task[len(task)-1][1])})
	if cmd := d.running[caller]; cmd != nil && d.kills > 0 && d.rand.IntN(4) == 0 {
		d.kills--
		d.killed[caller] = true
		delete(d.running, caller)
		pid := cmd.Process.Pid
		if d.rand.IntN(2) == 0 {
			pid = -pid // with its children, as when a machine stops
		}
		time.AfterFunc(time.Duration(d.rand.IntN(400))*time.Millisecond,
			func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
}

// work runs a worker until the remote is drained. Another worker replaces a killed one, on the same machine or a new
// one.
func (d *drain) work(i int) {
	for life := 0; ; life++ {
		caller := fmt.Sprintf("worker-%d-%d", i, life)
		machine := filepath.Join(d.dir, fmt.Sprintf("machine-%d-%d", i, life-life%2))
		repo := filepath.Join(machine, "repo")
		if _, err := os.Stat(repo); err != nil {
			if out, code := d.try("git", "clone", "-q", d.url, repo); code != 0 {
				d.t.Errorf("clone: %s", out)
				return
			}
		}
		cmd := exec.Command("git-tilth", "work", "--drain", "--jobs", strconv.Itoa(1+i%2))
		cmd.Dir, cmd.Env = repo, append(d.env[:len(d.env):len(d.env)], "TILTH_API_KEY="+caller,
			"TILTH_SESSIONS_DIR="+filepath.Join(machine, "sessions"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		d.mu.Lock()
		err := cmd.Start()
		if err == nil {
			d.running[caller] = cmd
		}
		d.mu.Unlock()
		if err != nil {
			d.t.Error(err)
			return
		}
		_ = cmd.Wait()
		d.mu.Lock()
		delete(d.running, caller)
		killed := d.killed[caller]
		d.mu.Unlock()
		if code := cmd.ProcessState.ExitCode(); code != 0 && !killed {
			d.t.Errorf("%s: exit code %d\n%s", caller, code, out.String())
			return
		} else if code == 0 {
			return
		}
		if life > 50 {
			d.t.Errorf("%s: no end\n%s", caller, out.String())
			return
		}
	}
}

// moves are the claims that the remote's reflog has of a session, in order, each with the second of its coming.
func (d *drain) moves(id string) (claims []fleet.Claim, came []time.Time) {
	data, err := os.ReadFile(filepath.Join(d.remote, "logs/refs/tilth/claims", id))
	if err != nil {
		d.t.Fatal(err)
	}
	last := strings.Repeat("0", 40)
	for line := range strings.Lines(string(data)) {
		who, _, _ := strings.Cut(line, "\t")
		words := strings.Fields(who)
		if words[0] != last {
			d.t.Errorf("%s: the claim moved from %s, and was at %s", id, words[0], last)
		}
		last = words[1]
		seconds, _ := strconv.ParseInt(words[len(words)-2], 10, 64)
		_, message, _ := strings.Cut(d.git("-C", d.remote, "cat-file", "commit", last), "\n\n")
		var c fleet.Claim
		if err := json.Unmarshal([]byte(message), &c); err != nil {
			d.t.Fatal(err)
		}
		claims, came = append(claims, c), append(came, time.Unix(seconds, 0))
	}
	return claims, came
}

// check compares a session's end with the remote's reflog and the model's log.
func (d *drain) check(id string) {
	claims, came := d.moves(id)
	var holders []string
	done := 0
	for i, c := range claims {
		if c.Counter != int64(i+1) {
			d.t.Errorf("%s: move %d has counter %d", id, i+1, c.Counter)
		}
		if c.Status == "all_done" && (i == 0 || claims[i-1].Status != "all_done") {
			done++
		}
		if c.Holder == "" || len(holders) > 0 && holders[len(holders)-1] == c.Holder {
			continue
		}
		holders = append(holders, c.Holder)
		if i == 0 || claims[i-1].Holder == "" {
			continue
		}
		until, err := time.Parse(time.RFC3339, claims[i-1].Expires)
		if err != nil || came[i].Add(time.Second).Before(until) {
			d.t.Errorf("%s: taken at %s, and held until %s (%v)", id, came[i], claims[i-1].Expires, err)
		}
	}
	if last := claims[len(claims)-1]; done != 1 || last.Status != "all_done" || last.Held(time.Now()) {
		d.t.Errorf("%s: came to its end %d times, and is %+v", id, done, last)
	}
	var subjects []string
	for s := range strings.Lines(d.git("-C", d.remote, "log", "--reverse", "--format=%s", "session/"+id)) {
		subjects = append(subjects, strings.TrimSpace(s))
	}
	if want := []string{"a", "b"}; len(subjects) != 3 || !slices.Equal(subjects[1:], want) {
		d.t.Errorf("%s: the branch has %q", id, subjects)
	}
	d.checkCalls(id, holders)
	d.git("tilth", "fetch", id)
	if out, code := d.try("git", "tilth", "verify", id); code != 0 {
		d.t.Errorf("verify %s: %s", id, out)
	}
}

// checkCalls compares the model's log with the holders. A holder makes no call after the next holder, and without a
// kill no call is made twice.
func (d *drain) checkCalls(id string, holders []string) {
	calls := d.calls[strconv.Itoa(slices.Index(d.ids, id))]
	var callers []string
	killed := false
	for _, c := range calls {
		killed = killed || d.killed[c.caller]
		if n := len(callers); n == 0 || callers[n-1] != c.caller {
			if slices.Contains(callers, c.caller) {
				d.t.Errorf("%s: %s came back: %v", id, c.caller, calls)
			}
			callers = append(callers, c.caller)
		}
	}
	if len(holders) == 1 && !killed {
		if len(callers) != 1 || len(calls) != 6 {
			d.t.Errorf("%s: had one holder, and these calls: %v", id, calls)
		}
	}
	if last := calls[len(calls)-1]; last.task != "b" {
		d.t.Errorf("%s: the last call was for %s", id, last.task)
	}
}
