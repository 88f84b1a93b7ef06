package scripttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// builtAgent builds the fake agent program once for all scripts of a test binary.
var builtAgent = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakeagent-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fakeagent")
	cmd := exec.Command("go", "build", "-o", path, "github.com/git-tilth/git-tilth/testdata/fakeagent")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// agentState is the fake program's log, in a script's directory.
const agentState = ".agentstate"

// fakeagent puts the fake program on PATH under an agent program's name and gives it a script.
func fakeagent(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "fakeagent KIND FILE")
	built, err := builtAgent()
	ts.Check(err)
	bin := filepath.Join(ts.Getenv("WORK"), ".agents")
	ts.Check(os.MkdirAll(bin, 0o755))
	link := filepath.Join(bin, args[0])
	if _, err := os.Lstat(link); err != nil {
		ts.Check(os.Symlink(built, link))
		ts.Setenv("PATH", bin+string(os.PathListSeparator)+ts.Getenv("PATH"))
	}
	script := ts.MkAbs(args[1])
	outward(ts, script+".used")
	ts.Setenv("FAKEAGENT_SCRIPT", script)
	log := filepath.Join(ts.Getenv("WORK"), "agent.log")
	if _, err := os.Lstat(log); err != nil {
		outward(ts, log)
		outward(ts, log+".stray")
	}
	ts.Setenv("FAKEAGENT_LOG", log)
}

// outward makes a file writable from the sandbox, as a link to a new file in the directory that Setup allows.
func outward(ts *testscript.TestScript, name string) {
	to := filepath.Join(ts.Getenv("WORK"), agentState, filepath.Base(name))
	os.Remove(name)
	os.Remove(to)
	ts.Check(os.Symlink(to, name))
}
