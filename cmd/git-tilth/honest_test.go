package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/testsize"
	"github.com/git-tilth/git-tilth/internal/verify"
)

// walk is a repository with sessions that are run, killed, rewound, forked and edited in random order.
type walk struct {
	*place
	*rand.Rand
	ids  []string
	told []string // the commands, for the message of a failure
}

const person = "A Person"

// TestHonestSessions runs random commands on sessions without tampering. After every step verify finds no difference,
// and names the user's commits as such. A night has up to 20 sessions.
func TestHonestSessions(t *testing.T) {
	t.Parallel()
	most, steps := testsize.Of(1, 20), testsize.Of(12, 40)
	seen := 0
	for seed := uint64(1); seen < most && seed <= 100 && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &walk{place: newPlace(t), Rand: rand.New(rand.NewPCG(seed, 14))}
			w.begin()
			for range steps {
				w.verify(w.step())
			}
			for _, id := range w.ids {
				w.verify(id)
			}
			seen += len(w.ids)
		})
	}
	t.Logf("%d honest sessions", seen)
}

// begin creates a session of four tasks. The second is rejected once, the third fails without help from the user, and
// a hook of the repository changes the tree of the first.
func (w *walk) begin() {
	does := func(task int, command string, submits bool) scripted.Step {
		step := calls("bash", map[string]any{"command": command})
		if submits {
			submit := calls("submit_case", map[string]any{"summary": fmt.Sprintf("task %d", task)})
			step.Tools = append(step.Tools, submit.Tools...)
		}
		step.Repeat, step.When = -1, scripted.Strings{fmt.Sprintf("Your task: T-00%d", task)}
		return step
	}
	last := func(s scripted.Step) scripted.Step {
		s.When, s.WhenLast = nil, s.When
		return s
	}
	reject := calls("submit_verdict", map[string]any{"verdict": "reject", "rejection_category": "half_finished",
		"concern": "it is half done", "next_step": "end it"})
	reject.Repeat, reject.When = -1, scripted.Strings{"+a draft"}
	accept := calls("submit_verdict", map[string]any{"verdict": "accept"})
	accept.Repeat = -1
	w.model(&scripted.Script{
		Worker: []scripted.Step{
			last(does(1, "echo RAW > a; echo '*.log' > .gitignore", true)), does(1, "echo RAW > a", true),
			last(does(2, "mkdir -p b; echo a draft > b/1", true)),
			does(2, "rm -f b/1; echo 2 > b/2; git add -A; git commit -qm mine", true),
			does(3, "echo 3 >> c; echo noise > c.log", false),
			last(does(4, "test -e c && exit; echo 4 > d", true)), does(4, "echo 4 > d", true),
		},
		Evaluator: []scripted.Step{reject, accept},
	})
	w.write(".git/hooks/pre-commit", "#!/bin/sh\nif grep -q RAW a 2>/dev/null; then echo COOKED > a; git add a; fi\n")
	if err := os.Chmod(filepath.Join(w.repo, ".git/hooks/pre-commit"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.git("config", "tilth.validator", "check=true")
	w.git("config", "tilth.maxIterationsPerTask", "3")
	var entries []string
	for i := range 4 {
		entries = append(entries, fmt.Sprintf(`{"id": "T-00%d", "title": "Do %d", "description": "do it",`+
			` "acceptance_criteria": ["it is done"]}`, i+1, i+1))
	}
	w.write("../prd.json", "["+strings.Join(entries, ",")+"]")
	w.does([]int{0}, "prep", "--from", "../prd.json")
	w.ids = []string{w.newest().ID}
}

// does runs a command that may end with one of these codes.
func (w *walk) does(codes []int, args ...string) string {
	w.t.Helper()
	out, code := w.try("git", append([]string{"tilth"}, args...)...)
	w.told = append(w.told, fmt.Sprintf("%s [%d]", strings.Join(args, " "), code))
	if !slices.Contains(codes, code) {
		w.t.Fatalf("%s\nends with %d, not %v:\n%s", strings.Join(w.told, "\n"), code, codes, out)
	}
	return out
}

// step does one thing to one of the sessions, and returns its id.
func (w *walk) step() (id string) {
	id = w.ids[w.IntN(len(w.ids))]
	task := fmt.Sprintf("T-00%d", 1+w.IntN(4))
	point := append([]string{"seed"}, task)[w.IntN(8)&1]
	switch w.IntN(19) {
	case 0, 1:
		w.does([]int{0, 1, 5}, "resume", id)
	case 2:
		w.does([]int{0, 1, 5}, "resume", "-k", id)
	case 3:
		w.does([]int{0, 1, 5}, "resume", "--max-tokens", fmt.Sprint(w.tokens(id)+1), id)
	case 4, 5, 6:
		w.killed(w.IntN(40), "resume", "--json", id)
	case 7, 8, 9:
		w.does([]int{0, 2}, "rewind", "-y", "-m", "think again", point, id)
	case 10, 11:
		w.does([]int{0, 2}, "undo", "-y", id)
	case 12, 13, 14, 15:
		out := w.does([]int{0, 2}, "fork", "--at", point, id)
		if made, _, _ := strings.Cut(out, "\n"); session.ValidID(made) {
			w.ids = append(w.ids, made)
			id = made
		}
	case 16:
		w.personCommits(id)
	case 17:
		w.does([]int{0, 1, 2}, "done", "-m", "by hand", task, id)
	case 18:
		w.does([]int{0, 1, 2}, []string{"skip", "retry"}[w.IntN(2)], task, id)
	}
	return id
}

func (w *walk) session(id string) *session.Session {
	s, err := w.store.Find(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *walk) tokens(id string) int64 {
	check, err := w.session(id).Checkpoint()
	if err != nil {
		w.t.Fatal(err)
	}
	return check.TokensUsed
}

// personCommits commits one file in the worktree and nothing else.
func (w *walk) personCommits(id string) {
	dir := w.session(id).Workspace()
	name := fmt.Sprintf("person%d", w.IntN(1000))
	if err := os.WriteFile(filepath.Join(dir, name), []byte("mine\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.told = append(w.told, "a person commits in "+id)
	w.git("-C", dir, "add", name)
	w.git("-C", dir, "-c", "user.name="+person, "commit", "-q", "-m", "by a person", "--", name)
}

// killed kills a command and its children after so many of its events.
func (w *walk) killed(events int, args ...string) {
	cmd := exec.Command("git-tilth", args...)
	cmd.Dir, cmd.Env = w.repo, w.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < events && lines.Scan(); n++ {
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	w.told = append(w.told, fmt.Sprintf("%s, killed after %d events", strings.Join(args, " "), events))
}

// released waits for a session's locks: children of a killed command may hold them a moment longer.
func (w *walk) released(s *session.Session) {
	w.t.Helper()
	for _, path := range []string{s.Dir, s.Path(session.LockFile)} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
			f.Close()
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// verify verifies a session.
func (w *walk) verify(id string) {
	w.t.Helper()
	s := w.session(id)
	w.released(s)
	out := w.does([]int{0}, "verify", "--json", id)
	for line := range strings.Lines(w.git("log", "--format=%H %an", "main..session/"+id)) {
		sha, author, _ := strings.Cut(strings.TrimSpace(line), " ")
		isOther := strings.Contains(out, fmt.Sprintf("\"sha\": %q,\n      \"kind\": %q", sha, verify.Other))
		if isOther != (author == person) {
			w.t.Fatalf("%s\n%s is by %s; another's by verify: %t\n%s", strings.Join(w.told, "\n"), sha, author,
				isOther, out)
		}
	}
}
