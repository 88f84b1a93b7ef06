package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/testsize"
)

// TestLanesSimulated runs sessions with lanes while processes are killed, tasks fail and conflict, and the user rewinds
// and commits. It checks the end of a session by git and the record alone. TILTH_LANES_SEED=7 runs one session,
// TILTH_LANES_SESSIONS=500 so many, from TILTH_LANES_FIRST on. TILTH_LANES_KEEP names a directory for failed ones.
func TestLanesSimulated(t *testing.T) {
	t.Parallel()
	first, sessions := 1, testsize.Of(3, 20)
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
		if err != nil {
			t.Fatal(name, err)
		}
		return n
	}
	sessions = number("TILTH_LANES_SESSIONS", sessions)
	first = number("TILTH_LANES_FIRST", first)
	if only := number("TILTH_LANES_SEED", 0); only > 0 {
		first, sessions = only, 1
	}
	for seed := first; seed < first+sessions; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newSimulation(t, uint64(seed)).run()
		})
	}
}

// simulation is one session.
type simulation struct {
	walk
	crew  *crew
	id    string
	user  string // state that the session must not change
	tasks []string
	wrote map[string]bool // contents that the user wrote
	loose bool            // did not always commit
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{walk: walk{place: newPlace(t), Rand: rand.New(rand.NewPCG(seed, 31))}, wrote: map[string]bool{}}
	s.crew = startCrew(t, rand.New(rand.NewPCG(seed, 32)))
	s.env = append(s.env, "TILTH_BASE_URL="+s.crew.url, "TILTH_WORKER_MODEL=scripted", "TILTH_PROVIDER_ATTEMPTS=4")
	if s.IntN(4) > 0 {
		s.env = append(s.env, "TILTH_SANDBOX=off")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("TILTH_LANES_SEED=%d, what was done:\n%s", seed, strings.Join(s.told, "\n"))
			if keep := os.Getenv("TILTH_LANES_KEEP"); keep != "" {
				_ = os.Rename(filepath.Dir(s.repo), filepath.Join(keep, fmt.Sprint(seed)))
			}
		}
	})
	s.plan()
	s.user = s.place.user()
	return s
}

// plan creates the session.
func (s *simulation) plan() {
	for _, name := range []string{"shared", "base"} {
		s.write(name, "line 1\nline 2\nline 3\n")
	}
	s.write("lines", "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\n")
	s.write("binary", "\x00\x01\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "files")
	s.git("config", "tilth.validator", "check=test ! -e bad")
	if s.IntN(3) == 0 {
		hook := "#!/bin/sh\nfor f in raw-*; do\n" +
			"grep -qs RAW \"$f\" && sed -i s/RAW/COOKED/ \"$f\" && git add \"$f\"\ndone\nexit 0\n"
		s.write(".git/hooks/pre-commit", hook)
		if err := os.Chmod(filepath.Join(s.repo, ".git/hooks/pre-commit"), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	names := slices.Sorted(maps.Keys(kinds))
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = append(names[:5], "shared", "line")
	touching := s.IntN(4) == 0
	var entries []map[string]any
	for i := range 4 + s.IntN(5) {
		id := fmt.Sprintf("T-%03d", i+1)
		s.tasks = append(s.tasks, id)
		e := map[string]any{"id": id, "title": "Do " + id, "description": "do it",
			"acceptance_criteria": []string{"it is done"}}
		if i > 0 && s.IntN(4) == 0 {
			e["needs"] = []string{s.tasks[s.IntN(i)]}
		}
		if touching && s.IntN(3) > 0 {
			e["touches"] = []string{[]string{"own-" + id, "shared", "lin*", "dir/"}[s.IntN(4)]}
		}
		entries = append(entries, e)
		for range 1 + s.IntN(2) {
			s.crew.kinds[id] = append(s.crew.kinds[id], names[s.IntN(len(names))])
		}
		s.crew.hopeless[id] = s.IntN(12) == 0
		s.crew.rejects[id] = max(0, s.IntN(6)-3)
	}
	data, err := json.Marshal(entries)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("../prd.json", string(data))
	s.does([]int{0}, "prep", "--from", "../prd.json")
	s.id = s.newest().ID
	s.told = append(s.told, fmt.Sprintf("%s in %s", data, s.store.Root), fmt.Sprint(s.crew.kinds, s.crew.hopeless))
}

func (s *simulation) run() {
	verb := "run"
	for range 3 + s.IntN(8) {
		args := []string{verb, "--json", "-j", fmt.Sprint([]int{1, 2, 3, 3, 4, 4}[s.IntN(6)])}
		if verb == "resume" && s.IntN(3) == 0 {
			args = append(args, "--continue")
		}
		if s.IntN(2) == 0 {
			args = append(args, "-k")
		}
		if s.IntN(4) == 0 {
			args = append(args, "--wait")
		}
		s.ends(args...)
		verb = "resume"
		s.check()
		s.between()
	}
	s.crew.calm.Store(true)
	code, before := -1, ""
	for range 6 {
		code = s.command(0, 0, "resume", "--json", "-k", "-j", fmt.Sprint(1+s.IntN(4)))
		s.check()
		now := fmt.Sprint(s.statuses())
		if code == 0 || now == before {
			break
		}
		before = now
	}
	s.ended(code)
}

// ends runs a command that may be killed or interrupted.
func (s *simulation) ends(args ...string) {
	switch s.IntN(4) {
	case 0:
		s.command(0, 0, args...)
	case 1:
		s.command(syscall.SIGINT, 1+s.IntN(120), args...)
	default:
		s.command(syscall.SIGKILL, 1+s.IntN(120), args...)
	}
}

// command runs git-tilth on the session and, with a signal, ends it by that after so many of its events.
func (s *simulation) command(sig syscall.Signal, events int, args ...string) (code int) {
	if args[0] != "run" {
		args = append(args, s.id)
	}
	alone := s.IntN(2) == 0 // its children are left to notice
	cmd := exec.Command("git-tilth", args...)
	cmd.Dir, cmd.Env = s.repo, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, told bytes.Buffer
	cmd.Stderr = &out
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	hangs := time.AfterFunc(4*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 8<<20)
	for n := 0; lines.Scan(); n++ {
		if line := lines.Text(); strings.Contains(line, `"type":"stop"`) {
			told.WriteString(line + "\n")
		}
		if sig != 0 && n == events {
			pid := cmd.Process.Pid
			if !alone {
				pid = -pid
			}
			_ = syscall.Kill(pid, sig)
		}
	}
	_ = cmd.Wait()
	if !hangs.Stop() {
		s.t.Fatalf("%s hangs:\n%s", strings.Join(args, " "), out.Bytes())
	}
	code = cmd.ProcessState.ExitCode()
	s.told = append(s.told, fmt.Sprintf("%s [%d] %v after %d", strings.Join(args, " "), code, sig, events),
		told.String()+strings.TrimSpace(out.String()))
	for _, sign := range []string{"panic:", "DATA RACE", "fatal error:"} {
		if strings.Contains(out.String(), sign) {
			s.t.Fatal(out.String())
		}
	}
	ok := []int{0, 1, 5, 130}
	if sig == syscall.SIGKILL {
		ok = append(ok, -1)
	}
	if s.crew.calm.Load() {
		ok = []int{0, 1}
	}
	if !slices.Contains(ok, code) {
		s.t.Fatalf("it ends with %d\n%s", code, out.Bytes())
	}
	s.released(s.session(s.id))
	return code
}

// between are the user's actions between two runs.
func (s *simulation) between() {
	ws := s.session(s.id).Workspace()
	point := append(slices.Clone(s.tasks), "seed")[s.IntN(len(s.tasks)+1)]
	switch s.IntN(14) {
	case 0:
		s.does([]int{0, 2}, "rewind", "-y", "-m", "think again", point, s.id)
	case 1:
		s.does([]int{0, 2}, "undo", "-y", s.id)
	case 2, 3:
		tok := fmt.Sprintf("tok-0-%x", s.Uint64())
		name := []string{"shared", fmt.Sprint("person", s.IntN(1000))}[s.IntN(2)]
		if !s.append(ws, name, tok) {
			return
		}
		_, code := s.try("git", "-C", ws, "add", name)
		if code == 0 {
			_, code = s.try("git", "-C", ws, "-c", "user.name="+person, "commit", "-q", "-m", "by a person", "--", name)
		}
		s.told = append(s.told, fmt.Sprintf("a person commits %s in %s [%d]", tok, name, code))
		s.wrote[tok] = true
		return // below an unrecorded commit of a killed run
	case 4:
		tok := fmt.Sprintf("tok-0-%x", s.Uint64())
		name := []string{"base", "untracked"}[s.IntN(2)]
		if s.append(ws, name, tok) {
			s.told = append(s.told, fmt.Sprintf("a person writes %s to %s", tok, name))
			s.wrote[tok], s.loose = true, true
		}
	case 5:
		s.does([]int{0, 2}, "retry", "-m", "once more", s.tasks[s.IntN(len(s.tasks))], s.id)
	default:
		return
	}
	s.check()
}

// append adds a line to a file of the worktree.
func (s *simulation) append(dir, name, line string) bool {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err == nil
}

// events returns the record's events of one type.
func (s *simulation) eventsOf(kind string) (payloads []gjson.Result) {
	_, _, err := jsonl.Scan(s.session(s.id).Path(session.RecordFile), 0, func(_ int64, line []byte) error {
		if e := gjson.ParseBytes(line); e.Get("type").Str == kind {
			payloads = append(payloads, e.Get("payload"))
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return payloads
}

// written returns everything that workers and the user wrote, as far as the record has it.
func (s *simulation) written() map[string]bool {
	all := maps.Clone(s.wrote)
	for _, e := range s.eventsOf("tool_result") {
		for _, line := range strings.Split(e.Get("result_preview").Str, "\n") {
			if tok, is := strings.CutPrefix(line, "wrote:"); is {
				all[tok] = true
			}
		}
	}
	return all
}

// tokensIn lists the written texts in the given commits.
func (s *simulation) tokensIn(gitDir string, revs string) map[string]bool {
	in := map[string]bool{}
	list := strings.Fields(revs)
	for chunk := range slices.Chunk(list, 100) {
		out, _ := s.try("git", append([]string{"--git-dir=" + gitDir, "grep", "-haoE", token.String()}, chunk...)...)
		for _, tok := range token.FindAllString(out, -1) {
			in[tok] = true
		}
	}
	return in
}

// tokensBelow lists the written texts in files.
func (s *simulation) tokensBelow(dir string, in map[string]bool) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			for _, tok := range token.FindAllString(string(data), -1) {
				in[tok] = true
			}
		}
		return nil
	})
}

// check checks the invariants: verify finds no difference, the user's repository is unchanged, and every written text
// is somewhere.
func (s *simulation) check() {
	s.t.Helper()
	sess := s.session(s.id)
	s.does([]int{0}, "verify", s.id)
	if now := s.place.user(); now != s.user {
		s.t.Fatalf("the user's repository was\n%s\nand is\n%s", s.user, now)
	}
	gitDir, kept := filepath.Join(s.repo, ".git"), sess.Path(session.KeptGitDir)
	in := s.tokensIn(gitDir, s.git("rev-list", "main~1..session/"+s.id))
	if head, _ := os.ReadFile(filepath.Join(kept, "HEAD")); len(head) > 0 { // written last, when it is made
		revs := []string{"--git-dir=" + kept, "rev-list", "--all"}
		undone, _ := filepath.Glob(sess.Path("undo", "*", "session", session.KeptGitDir, "refs", "aside", "*"))
		for _, ref := range undone {
			sha, _ := os.ReadFile(ref)
			revs = append(revs, strings.TrimSpace(string(sha)))
		}
		maps.Copy(in, s.tokensIn(kept, s.git(revs...)))
	}
	s.tokensBelow(sess.Path("undo"), in)
	s.tokensBelow(sess.Workspace(), in)
	s.tokensBelow(sess.Path(session.LanesDir), in)
	s.crew.mu.Lock()
	maps.Copy(in, s.crew.shown)
	s.crew.mu.Unlock()
	for tok := range s.written() {
		if !in[tok] {
			s.t.Fatalf("%s is lost", tok)
		}
	}
}

func (s *simulation) statuses() map[string]string {
	out := map[string]string{}
	for _, t := range gjson.Get(s.does([]int{0}, "show", "--json", s.id), "plan").Array() {
		out[t.Get("id").Str] = t.Get("status").Str
	}
	return out
}

// ended checks the final state.
func (s *simulation) ended(code int) {
	sess, branch := s.session(s.id), "session/"+s.id
	status := s.statuses()
	for _, task := range s.tasks {
		if (code == 0 || !s.crew.hopeless[task] && status[task] == "failed") && status[task] != "done" {
			s.t.Errorf("%s is %s, the last exit code %d", task, status[task], code)
		}
	}
	accepted := map[string]bool{}
	for _, v := range s.eventsOf("evaluator_verdict") {
		if v.Get("verdict").Str == "accept" {
			accepted[v.Get("task_id").Str+" "+v.Get("tree").Str] = true
		}
	}
	tip := s.tokensIn(filepath.Join(s.repo, ".git"), branch)
	commits := map[string]int{}
	format := "--format=%H %T %an|%(trailers:key=Tilth-Task,valueonly,separator=)|%P|%s"
	for line := range strings.Lines(s.git("log", format, "main.."+branch)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		ids := strings.Fields(f[0])
		if strings.Contains(f[2], " ") {
			s.t.Errorf("%s is a merge", ids[0])
		}
		if strings.HasSuffix(f[0], person) || strings.HasPrefix(f[3], "FAILED (") {
			continue // the user's, or a placeholder below one
		}
		commits[f[1]]++
		if !accepted[f[1]+" "+ids[1]] {
			s.t.Errorf("the commit %s of %q has a tree that nobody accepted", ids[0], f[1])
		}
		for tok := range s.tokensIn(filepath.Join(s.repo, ".git"), ids[0]) {
			out := s.git("grep", "-laF", tok, ids[0])
			if !tip[tok] && !strings.HasSuffix(out, ":base") && !strings.HasSuffix(out, ":moved") {
				s.t.Errorf("%s of %s is not at the tip any more: %s", tok, f[1], out)
			}
		}
	}
	for _, task := range s.tasks {
		if want := map[bool]int{true: 1}[status[task] == "done"]; commits[task] != want {
			s.t.Errorf("%s is %s and has %d commits", task, status[task], commits[task])
		}
	}
	if out, _ := s.try("git", "grep", "-nE", "^(<<<<<<<|>>>>>>>) ", branch); out != "" {
		s.t.Errorf("markers are left: %s", out)
	}
	if out := s.git("-C", sess.Workspace(), "status", "--porcelain"); out != "" && !s.loose {
		s.t.Errorf("the worktree is not clean: %s", out)
	}
	if out, err := exec.Command("find", sess.Path(session.LanesDir), "-maxdepth", "3").Output(); err == nil {
		s.t.Errorf("lanes are left: %s", out)
	}
	if out := s.git("worktree", "list"); strings.Count(out, "\n") != 1 {
		s.t.Errorf("the worktrees are %s", out)
	}
	if out := s.git("for-each-ref", "--format=%(refname)"); out != "refs/heads/main\nrefs/heads/"+branch {
		s.t.Errorf("the refs are %s", out)
	}
	merges, conflicts := s.eventsOf("lane_merged"), 0
	for _, m := range merges {
		if m.Get("conflicts").Exists() {
			conflicts++
		}
	}
	s.t.Logf("%d calls, %d merges, %d conflicts, %v", s.crew.calls, len(merges), conflicts, status)
}
