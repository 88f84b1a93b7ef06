// Package scripttest adds commands for the end-to-end scripts in testdata/script to testscript: repositories, a
// scripted model, and checks of sessions and records.
//
//	mkrepo DIR                     a repository with one commit, .gitignore and a file
//	fakemodel FILE                 a scripted endpoint; TILTH_BASE_URL and TILTH_WORKER_MODEL point to it
//	fakeagent KIND FILE            a fake agent program on PATH under this name, playing a script
//	                               (testdata/fakeagent); FAKEAGENT_LOG has a line for each of its runs
//	modelsaw [-role R] REGEXP      some request matched (! for none)
//	modelcalls ROLE N              there were exactly so many
//	exits CODE CMD ARGS...         the command ends with this code; stdout and stderr are kept as with exec
//	session [-n N] VAR             VAR is the id, VAR_DIR the directory of the newest session (or the Nth newest)
//	events VAR TYPE N              the session has exactly N events of a type; N may be N+ for at least
//	field FILE PATH REGEXP         the value at a gjson path matches (! for does not); a .jsonl is an array
//	                               of its lines
//	waitevent VAR TYPE [N]         until the record of the session (or of the newest one) has N events of a type
//	waitfile FILE                  until a file exists
//	waittext FILE REGEXP           until a file holds a match
//	signal SIGNAL VAR              sends INT, TERM, HUP, QUIT or KILL to the process that holds the session
//	killafter TYPE N VAR CMD ARGS...  runs a command with --json on the session and kills it when its Nth event
//	                               of a type is on disk, before it does anything else
//	asplanned CODE COMMAND ARGS...  git tilth -n prints the git commands that git tilth -v then runs
//	keep NAME DIR                  remembers everything about a user's repository
//	kept NAME DIR                  it is byte-identical now
//	keepdir NAME DIR, keptdir ...  the same for a directory's files, except .git and files that git ignores
//	manifest NAME VAR              remembers all of a session that a rewind takes back: branch, index, files, tasks,
//	                               ledgers
//	same NAME VAR [FILE]...        it is byte-identical now, except these files of the session's directory
//	contract VAR                   every file of the session follows the contract: events, ledgers, summary,
//	                               modes; verify finds nothing
//	leaks DIR TEXT                 some file under DIR holds the text (! for none)
//	console [-type WHEN TEXT]... CODE CMD ARGS...  runs it at a terminal; the screen is in $WORK/screen
//	exec nolandlock CMD ARGS...     runs it as on a kernel without Landlock
//
// Programs in the sandbox can write into $WORK/signals, to tell the script about their progress.
package scripttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/testsize"
)

// patience limits every wait of a script; a successful wait takes milliseconds.
const patience = 60 * time.Second

// signalDir is the directory through which programs in the sandbox report their progress to a script.
const signalDir = "signals"

type key string

// state is the state of one script between its commands.
type state struct {
	server *scripted.Server
	kept   map[string]string
}

const stateKey key = "state"

// Setup gives a script a new home directory, with an identity for git and nothing of the user's.
func Setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	config := "[user]\n\tname = Test User\n\temail = user@example.com\n[init]\n\tdefaultBranch = " +
		"main\n[advice]\n\tdetachedHead = false\n"
	config += "[tilth]\n\tsandboxRead = " + env.WorkDir + "\n"
	for _, open := range []string{agentState, signalDir} {
		dir := filepath.Join(env.WorkDir, open)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		config += "\tsandboxWrite = " + dir + "\n"
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		return err
	}
	completion, err := filepath.Abs(filepath.Join("..", "..", "docs", "completion"))
	if err != nil {
		return err
	}
	for k, v := range map[string]string{
		"COMPLETION": completion,
		"HOME":       home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "GIT_CONFIG_NOSYSTEM": "1",
		"TILTH_SESSIONS_DIR":  filepath.Join(env.WorkDir, "sessions"),
		"TEST_WITHOUT":        os.Getenv("TEST_WITHOUT"),
		"TEST_CLOCK":          filepath.Join(home, "clock"),
		"TILTH_RESUME_NOTICE": "0", "TILTH_AGAIN": "true",
		"LC_ALL": "C", "GOFLAGS": "-buildvcs=false", "GOCACHE": goCache(),
		"GOPATH": filepath.Join(home, "go"), "GOTOOLCHAIN": "local",
		"RUSTUP_HOME": rustupHome(), "README": readme(), "DOCS": filepath.Join(filepath.Dir(readme()), "docs"),
		// A program built with -race sleeps a second before it exits by default (go.dev/doc/articles/race_detector).
		"GORACE": "atexit_sleep_ms=0 " + os.Getenv("GORACE"),
	} {
		env.Setenv(k, v)
	}
	env.Values[stateKey] = &state{kept: map[string]string{}}
	env.Defer(func() {
		verifyAll(env)
		endRuns(env.Getenv("TILTH_SESSIONS_DIR"))
		if s := env.Values[stateKey].(*state); s.server != nil {
			s.server.Close()
		}
	})
	return nil
}

// readme returns the path of the project's README from any package.
func readme() string {
	path, err := filepath.Abs("../../README.md")
	if err != nil {
		return ""
	}
	return path
}

// endRuns kills runs that a failed script left behind, because testscript waits for them.
func endRuns(root string) {
	store := session.Store{Root: root}
	ids, _ := store.IDs()
	for _, id := range ids {
		s := &session.Session{ID: id, Dir: filepath.Join(root, id)}
		if holder, busy := s.Holder(); busy && holder.PID != 0 {
			_ = syscall.Kill(holder.PID, syscall.SIGKILL)
		}
	}
}

// rustupHome returns the directory of rustup's toolchains, which its cargo runs.
func rustupHome() string {
	if dir := os.Getenv("RUSTUP_HOME"); dir != "" {
		return dir
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".rustup")
}

func goCache() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return filepath.Join(os.TempDir(), "gocache")
	}
	return strings.TrimSpace(string(out))
}

var (
	canMount = sync.OnceValue(func() bool {
		return runs("unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "none", os.TempDir())
	})
	hasCargo  = sync.OnceValue(func() bool { return runs("cargo", "--version") })
	hasVenv   = sync.OnceValue(func() bool { return runs("python3", "-c", "import venv, ensurepip, setuptools") })
	hasPytest = sync.OnceValue(func() bool { return runs("/usr/bin/python3", "-c", "import pytest") })
)

func runs(name string, args ...string) bool { return exec.Command(name, args...).Run() == nil }

// Condition evaluates conditions of scripts beyond testscript's own: [root]; [landlock] and [namespaces] if the sandbox
// can use them (TEST_WITHOUT=namespaces or pid turns that off); [pytest] if /usr/bin/python3 has it; [venv] if python3
// makes virtual environments and has setuptools; [cargo] if cargo runs, because rustup's may have no toolchain; [maven]
// if Debian's Maven is there with its plugins, which need no network; [tmpfs] if a small file system can be mounted in
// a new namespace; [ci] if the tests have the time of CI; [turn] for long scripts, of which CI takes a third by chance,
// and a night all.
func Condition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Geteuid() == 0, nil
	case "tmpfs":
		return canMount(), nil
	case "landlock":
		return sandbox.Probe().Err == nil, nil
	case "namespaces":
		_, err := sandbox.Spaces()
		return err == nil && os.Getenv("TEST_WITHOUT") == "", nil
	case "pytest":
		return hasPytest(), nil
	case "venv":
		return hasVenv(), nil
	case "cargo":
		return hasCargo(), nil
	case "maven":
		_, err := os.Stat("/usr/share/maven-repo/org/apache/maven/surefire")
		return err == nil && runs("mvn", "--version"), nil
	case "ci":
		return testsize.InCI(), nil
	case "turn":
		return testsize.IsFull() || testsize.InCI() && rand.IntN(3) == 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// Commands returns the commands of scripts in addition to testscript's own.
func Commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"mkrepo": mkrepo, "fakeforge": fakeForge, "fakemodel": fakemodel, "fakeagent": fakeagent, "modelsaw": modelsaw,
		"modelcalls": modelcalls, "exits": exits,
		"session": newest, "events": events, "field": field, "waitevent": waitevent, "waitfile": waitfile,
		"waittext": waittext,
		"signal":   signalHolder, "killafter": killAfter, "asplanned": asPlanned,
		"manifest": manifest, "same": same,
		"keep": keep, "kept": kept, "keepdir": keepdir, "keptdir": keptdir,
		"contract": contract, "console": console, "leaks": leaks,
	}
}

func of(ts *testscript.TestScript) *state { return ts.Value(stateKey).(*state) }

func need(ts *testscript.TestScript, args []string, least int, usage string) {
	if len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func mkrepo(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 1, "mkrepo DIR")
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o644))
	ts.Check(os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.ignored\n"), 0o644))
	for _, a := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, a...)...))
	}
}

func fakemodel(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 1, "fakemodel FILE")
	script, err := scripted.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	s := of(ts)
	if s.server != nil {
		s.server.Close()
	}
	s.server, err = scripted.Start(script)
	ts.Check(err)
	ts.Setenv("TILTH_BASE_URL", s.server.URL)
	ts.Setenv("TILTH_WORKER_MODEL", "scripted")
}

func modelsaw(ts *testscript.TestScript, neg bool, args []string) {
	role := ""
	if len(args) > 1 && args[0] == "-role" {
		role, args = args[1], args[2:]
	}
	need(ts, args, 1, "modelsaw [-role R] REGEXP")
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	found := false
	for _, r := range of(ts).server.Requests() {
		if role == "" || r.Role == role {
			found = found || re.Match(r.Body)
		}
	}
	if found == neg {
		ts.Fatalf("a request matching %q: %v", args[0], found)
	}
}

func modelcalls(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "modelcalls ROLE N")
	n := 0
	for _, r := range of(ts).server.Requests() {
		if r.Role == args[0] {
			n++
		}
	}
	if fmt.Sprint(n) != args[1] {
		ts.Fatalf("%d calls of the %s, want %s", n, args[0], args[1])
	}
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "exits CODE CMD ARGS...")
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%s: exit code %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// sessions lists the ids in the script's sessions root, newest first.
func sessions(ts *testscript.TestScript) []string {
	ids, err := session.Store{Root: ts.Getenv("TILTH_SESSIONS_DIR")}.IDs()
	ts.Check(err)
	return ids
}

func newest(ts *testscript.TestScript, _ bool, args []string) {
	n := 1
	if len(args) > 1 && args[0] == "-n" {
		var err error
		n, err = strconv.Atoi(args[1])
		ts.Check(err)
		args = args[2:]
	}
	need(ts, args, 1, "session [-n N] VAR")
	ids := sessions(ts)
	if len(ids) < n {
		ts.Fatalf("there are %d sessions, want at least %d", len(ids), n)
	}
	ts.Setenv(args[0], ids[n-1])
	ts.Setenv(args[0]+"_DIR", filepath.Join(ts.Getenv("TILTH_SESSIONS_DIR"), ids[n-1]))
}

// count counts the events of a type in a session's record.
func count(ts *testscript.TestScript, id, typ string) int {
	s := &session.Session{ID: id, Dir: filepath.Join(ts.Getenv("TILTH_SESSIONS_DIR"), id)}
	n := 0
	_, _, err := jsonl.Scan(s.Path(session.RecordFile), 0, func(_ int64, line []byte) error {
		if gjson.GetBytes(line, "type").Str == typ {
			n++
		}
		return nil
	})
	ts.Check(err)
	return n
}

func events(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 3, "events VAR TYPE N")
	n := count(ts, ts.Getenv(args[0]), args[1])
	least, isLeast := strings.CutSuffix(args[2], "+")
	want, err := strconv.Atoi(least)
	ts.Check(err)
	if n != want && (!isLeast || n < want) {
		ts.Fatalf("%d events of type %s, want %s", n, args[1], args[2])
	}
}

func field(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, args, 3, "field FILE PATH REGEXP")
	data := ts.ReadFile(args[0])
	re, err := regexp.Compile(args[2])
	ts.Check(err)
	value := gjson.Get(data, args[1])
	if strings.HasSuffix(args[0], ".jsonl") {
		value = gjson.Get(data, ".."+args[1]) // the lines as an array
	}
	if re.MatchString(value.String()) == neg {
		ts.Fatalf("%s: %s is %q", args[0], args[1], value.String())
	}
}

// wait polls for a condition.
func wait(ts *testscript.TestScript, what string, met func() bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-deadline.C:
			ts.Fatalf("%s did not come about within %s", what, patience)
		case <-tick.C:
		}
	}
}

func waitevent(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "waitevent VAR TYPE [N]")
	want := 1
	if len(args) > 2 {
		var err error
		want, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	wait(ts, "event "+args[1], func() bool {
		id := ts.Getenv(args[0])
		if id == "" {
			ids := sessions(ts)
			if len(ids) == 0 {
				return false
			}
			id = ids[0]
		}
		return count(ts, id, args[1]) >= want
	})
}

func waitfile(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 1, "waitfile FILE")
	wait(ts, args[0], func() bool {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil
	})
}

func waittext(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "waittext FILE REGEXP")
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	wait(ts, args[1], func() bool {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && re.Match(data)
	})
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
	"QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL}

func signalHolder(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "signal SIGNAL VAR")
	id := ts.Getenv(args[1])
	s := &session.Session{ID: id, Dir: filepath.Join(ts.Getenv("TILTH_SESSIONS_DIR"), id)}
	holder, busy := s.Holder()
	if !busy || holder.PID == 0 || signals[args[0]] == 0 {
		ts.Fatalf("signal %s: nobody holds %s", args[0], id)
	}
	ts.Check(syscall.Kill(holder.PID, signals[args[0]]))
}
