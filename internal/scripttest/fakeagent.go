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
	os.Remove(script + ".used")
	ts.Setenv("FAKEAGENT_SCRIPT", script)
	ts.Setenv("FAKEAGENT_LOG", filepath.Join(ts.Getenv("WORK"), "agent.log"))
}
