//go:build linux && (amd64 || arm64)

package crashtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// diskSize is the size of the small disk for the soak's sessions, if one can be mounted.
const diskSize = 32 << 20

// soaked is the result of a soak.
type soaked struct {
	sync.Mutex
	sessions, iterations, kills, full, faults, second, rewinds int
}

// TestSoak works through sessions while processes are killed, disks fill, the endpoint fails and two commands use one
// session. TILTH_SOAK=500 sets the number of sessions; TILTH_SOAK_SEED and TILTH_SOAK_SESSION replay one.
func TestSoak(t *testing.T) {
	needTracing(t)
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
		if err != nil {
			t.Fatal(name, err)
		}
		return n
	}
	seed, sessions, only := number("TILTH_SOAK_SEED", 1), number("TILTH_SOAK", 2), number("TILTH_SOAK_SESSION", -1)
	t.Logf("seed %d: TILTH_SOAK_SEED=%d TILTH_SOAK=%d replays it", seed, seed, sessions)
	binary, base, begun := build(t), workplace(t), time.Now()
	var all soaked
	var group sync.WaitGroup
	for job := range jobs {
		group.Go(func() {
			s, err := newSoaker(filepath.Join(base, strconv.Itoa(job)), binary, uint64(seed), &all)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.close()
			for n := job; n < sessions && !t.Failed(); n += jobs {
				if only >= 0 && n != only {
					continue
				}
				if err := s.session(n); err != nil {
					t.Errorf("TILTH_SOAK_SEED=%d TILTH_SOAK_SESSION=%d: %v\nwhat was done:\n%s", seed, n, err,
						strings.Join(s.done, "\n"))
				}
				if (n+1)%50 == 0 {
					t.Logf("%d sessions in %s", n+1, time.Since(begun).Round(time.Second))
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d sessions, %d iterations; %d kills, %d commands on a full disk, %d faults of the endpoint, "+
		"%d second writers, %d rewinds", all.sessions, all.iterations, all.kills, all.full, all.faults, all.second,
		all.rewinds)
	if only < 0 && (all.sessions != sessions || all.iterations < 20*sessions || all.kills == 0) && !t.Failed() {
		t.Error("it did too little")
	}
}

// soaker runs one session after another on a separate disk.
type soaker struct {
	*soaked
	dir   string
	bare  *world
	user  string
	seed  uint64
	small bool // the disk can be filled
	model *scripted.Server
	front *httptest.Server

	w     *world
	fate  *rand.Rand
	done  []string // for the current session
	asked struct {
		sync.Mutex
		fate *rand.Rand // of the endpoint's answers; nil if all are correct
	}
}

func newSoaker(dir, binary string, seed uint64, all *soaked) (s *soaker, err error) {
	s = &soaker{soaked: all, dir: dir, seed: seed}
	if err = os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if os.Getenv(ownMounts) != "" {
		if err = unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
			return nil, err
		}
		s.small = true
	}
	script, err := scripted.Parse(longAnswers())
	if err != nil {
		return nil, err
	}
	if s.model, err = scripted.Start(script, scripted.WithoutBodies()); err != nil {
		return nil, err
	}
	s.front = httptest.NewServer(s)
	if s.bare, err = newWorld(filepath.Join(dir, "w000000"), binary, s.front.URL+"/v1"); err != nil {
		return nil, err
	}
	s.bare.more = []string{"TMPDIR=" + filepath.Join(dir, "tmp"), "TILTH_MIN_FREE=0", "TILTH_PROVIDER_ATTEMPTS=3"}
	s.user, err = s.bare.userState()
	return s, errors.Join(err, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
}

func (s *soaker) close() {
	s.front.Close()
	s.model.Close()
	if s.small {
		_ = unix.Unmount(s.dir, unix.MNT_DETACH)
	}
}

// longAnswers is the script of the crash test with six calls before each task's work.
func longAnswers() []byte {
	var script map[string][]json.RawMessage
	if err := json.Unmarshal([]byte(answers), &script); err != nil {
		panic(err)
	}
	var worker []json.RawMessage
	add := func(format string, args ...any) { worker = append(worker, fmt.Appendf(nil, format, args...)) }
	for i, task := range taskIDs {
		last := func(step json.RawMessage, seen string) {
			var tools = gjson.GetBytes(step, "tools").Raw
			add(`{"when": ["# Your task: %s", %q], "repeat": -1, "tools": %s}`, task, seen, tools)
		}
		if task == "T-002" {
			last(script["worker"][3+i], "beta is too small")
		}
		last(script["worker"][i], "step 6")
		for step := 5; step > 0; step-- {
			stays := ""
			if i == 0 && step == 3 {
				stays = "; setsid sleep 600 & true"
			}
			add(`{"when": ["# Your task: %s", "step %d"], "repeat": -1, "tools": [{"name": "bash", "args": {"command": `+
				`"echo step %d%s"}}]}`, task, step, step+1, stays)
		}
		add(`{"when": "# Your task: %s", "repeat": -1, "tools": [{"name": "glob", "args": {"pattern": "step 1"}}]}`, task)
	}
	script["worker"] = worker
	out, err := json.Marshal(script)
	if err != nil {
		panic(err)
	}
	return out
}

// ServeHTTP is the endpoint, with its faults.
func (s *soaker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.asked.Lock()
	fault := -1
	if s.asked.fate != nil {
		fault = s.asked.fate.IntN(12)
	}
	s.asked.Unlock()
	if fault < 0 || fault > 6 {
		s.model.ServeHTTP(rw, r)
		return
	}
	s.count(&s.faults)
	switch fault {
	case 0:
		rw.Header().Set("Retry-After", "0")
		rw.WriteHeader(http.StatusTooManyRequests)
	case 1:
		rw.Header().Set("Retry-After", "0")
		rw.WriteHeader(http.StatusServiceUnavailable)
	case 2:
		panic(http.ErrAbortHandler)
	case 3:
		rw.Header().Set("Content-Length", "1000")
		_, _ = rw.Write([]byte(`{"choices": [{"message": {"role": "assistant", "content": "bro`))
	case 4:
		_, _ = rw.Write([]byte("<html>proxy</html>"))
	case 5:
		_, _ = rw.Write([]byte(`{"choices": [{"message": {"role": "assistant", ` +
			`"tool_calls": [{"id": "", "function": {}}]}}]}`))
	case 6:
		_, _ = rw.Write([]byte(`{"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}`))
	}
}

func (s *soaker) count(n *int) {
	s.Lock()
	defer s.Unlock()
	*n++
}

// session takes a session from its preparation to its teardown. Its number determines all events.
func (s *soaker) session(n int) (err error) {
	s.fate, s.done = rand.New(rand.NewPCG(s.seed, uint64(n))), nil
	if s.w, err = s.bare.copyTo(filepath.Join(s.dir, fmt.Sprintf("w%06d", n+1))); err != nil {
		return err
	}
	if err := s.w.prepare(); err != nil {
		return err
	}
	for range 2 + s.fate.IntN(4) {
		if err := s.round(); err != nil {
			return err
		}
	}
	s.do("to the end")
	for _, step := range []func() error{
		func() error { return resumed(nil, s.w, 0) },
		s.unharmed, s.countIterations,
		func() error { return tornDown(nil, s.w, 0) },
		s.unharmed, s.nothingRuns, s.noTemporaryFiles,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	s.count(&s.sessions)
	return os.RemoveAll(s.w.dir)
}

func (s *soaker) do(format string, args ...any) {
	s.done = append(s.done, "  "+fmt.Sprintf(format, args...))
}

// round lets one thing fail, and checks the state.
func (s *soaker) round() (err error) {
	args := []string{"resume"}
	checkpoint, _ := os.ReadFile(s.w.file("checkpoint.json"))
	if gjson.GetBytes(checkpoint, "status").Str == "all_done" {
		args = [][]string{{"reset", "--to-seed", "-y"}, {"rewind", "-y", "T-002"}}[s.fate.IntN(2)]
		s.w.backThere = true
		s.count(&s.rewinds)
	}
	switch s.fate.IntN(5) {
	case 0, 1:
		err = s.killed(args)
	case 2:
		err = s.unanswered(args)
	case 3:
		err = s.filled(args)
	case 4:
		err = s.twice(args)
	}
	return errors.Join(err, s.w.wholeFiles(true), s.w.shown(), consistent(nil, s.w), s.unharmed())
}

// killed ends a command at one of its changes to a file.
func (s *soaker) killed(args []string) error {
	at, how := s.fate.IntN(400), []way{power, power, torn, harness, child}[s.fate.IntN(5)]
	s.do("%s, %s at %d", strings.Join(args, " "), how, at)
	out, err := s.w.trace(func(n int, o op) way {
		switch {
		case n != at:
			return live
		case how == torn && (!o.harness || o.size < 2), how == child && o.harness,
			how == harness && strings.Contains(o.program, "sleep"): // git-tilth would wait for it
			return power
		}
		return how
	}, args...)
	s.w.childDied = s.w.childDied || out.killed && how == child
	if out.killed {
		s.count(&s.kills)
	}
	if strings.Contains(out.output, "goroutine ") {
		err = errors.Join(err, errors.New(clip(out.output)))
	}
	return err
}

// mayFail are the exit codes of a command that is disturbed.
var mayFail = []int{0, 1, 2, 3, 5}

// unanswered lets the endpoint fail for one command.
func (s *soaker) unanswered(args []string) error {
	s.do("%s, with an endpoint that fails", strings.Join(args, " "))
	s.asked.Lock()
	s.asked.fate = rand.New(rand.NewPCG(s.fate.Uint64(), 0))
	s.asked.Unlock()
	_, err := s.w.expect(mayFail, args...)
	s.asked.Lock()
	s.asked.fate = nil
	s.asked.Unlock()
	return err
}

// filled leaves little room on the disk for one command.
func (s *soaker) filled(args []string) error {
	if !s.small {
		return nil
	}
	room := s.fate.Int64N(64) * 4096
	s.do("%s, with %d bytes left on the disk", strings.Join(args, " "), room)
	var disk unix.Statfs_t
	if err := unix.Statfs(s.dir, &disk); err != nil {
		return err
	}
	ballast := filepath.Join(s.dir, "ballast")
	defer os.Remove(ballast)
	f, err := os.Create(ballast)
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, max(4096, int64(disk.Bavail)*disk.Bsize-room))
		f.Close()
	}
	if err != nil {
		return err
	}
	s.count(&s.full)
	s.w.unwritten = true
	_, err = s.w.expect(mayFail, args...)
	return errors.Join(err, s.w.shown())
}

// twice starts two commands for the one session.
func (s *soaker) twice(args []string) error {
	s.do("%s beside a resume", strings.Join(args, " "))
	s.count(&s.second)
	other := make(chan error)
	go func() {
		_, err := s.w.expect(append(mayFail, 4), "resume")
		other <- err
	}()
	_, err := s.w.expect(append(mayFail, 4), args...)
	return errors.Join(err, <-other)
}

// countIterations counts the iterations in the record, except those that a rewind removed.
func (s *soaker) countIterations() error {
	s.Lock()
	defer s.Unlock()
	for _, e := range s.w.events() {
		if e.Get("type").Str == "model_call" && !e.Get("payload.phase").Exists() {
			s.iterations++
		}
	}
	return nil
}

func (s *soaker) unharmed() error {
	is, err := s.w.userState()
	return errors.Join(err, differ("the user's repository", s.user, is))
}

// nothingRuns checks that no process of the world is left.
func (s *soaker) nothingRuns() error {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, at := range all {
		cwd, _ := os.Readlink(filepath.Join(at, "cwd"))
		env, _ := os.ReadFile(filepath.Join(at, "environ"))
		if strings.HasPrefix(cwd, s.w.dir) || strings.Contains(string(env), s.w.dir+"/") {
			line, _ := os.ReadFile(filepath.Join(at, "cmdline"))
			return fmt.Errorf("a process is left: %s %q in %s", at, line, cwd)
		}
	}
	return nil
}

func (s *soaker) noTemporaryFiles() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if len(entries) > 0 {
		err = fmt.Errorf("temporary files are left: %v", entries)
	}
	return err
}
