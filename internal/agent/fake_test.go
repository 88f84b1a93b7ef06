package agent

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// The tests run testdata/fakeagent under the names of the programs.

var buildFake = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakeagent-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fakeagent")
	out, err := exec.Command("go", "build", "-o", path, "../../testdata/fakeagent").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildFake(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// fake is a machine with the installed programs.
type fake struct {
	t    *testing.T
	home string
	dir  string // the worktree
	env  []string
	log  string
}

type fakeStep map[string]any

func newFake(t *testing.T, steps ...fakeStep) *fake { return newFakeACP(t, nil, steps...) }

// newFakeACP is newFake with agents by ACP that are like this.
func newFakeACP(t *testing.T, setup map[string]any, steps ...fakeStep) *fake {
	t.Helper()
	bin, err := buildFake()
	if err != nil {
		t.Fatal(err)
	}
	home := proc.RealPath(t.TempDir())
	f := &fake{t: t, home: home, dir: filepath.Join(home, "sessions", "workspace"),
		log: filepath.Join(home, "log.jsonl")}
	for _, dir := range []string{filepath.Join(home, "bin"), f.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"claude-agent-acp", "codex-acp"}
	for _, p := range allPrograms() {
		names = append(names, p.Binary)
	}
	for _, name := range names {
		if err := os.Symlink(bin, filepath.Join(home, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	f.env = []string{"HOME=" + home, "PATH=" + filepath.Join(home, "bin") + string(os.PathListSeparator) +
		os.Getenv("PATH"), "FAKEAGENT_LOG=" + f.log, "TILTH_API_KEY=the-key-of-the-harness"}
	if len(steps) > 0 || setup != nil {
		acp := map[string]any{}
		for _, name := range names {
			acp[name] = setup
		}
		data, err := json.Marshal(map[string]any{"steps": steps, "acp": acp})
		if err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(home, "script.json")
		if err := os.WriteFile(script, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f.env = append(f.env, "FAKEAGENT_SCRIPT="+script)
	}
	return f
}

// turn returns a turn in the fake's worktree.
func (f *fake) turn(prompt string, ref Ref) Turn {
	return Turn{Prompt: prompt, Dir: f.dir, Env: f.env, Conversation: ref, Timeout: time.Minute,
		GitDir: filepath.Join(f.dir, ".git"), CommonDir: filepath.Join(f.dir, ".git")}
}

func (f *fake) run(p *Program, t Turn) Outcome {
	f.t.Helper()
	out, err := p.Run(f.t.Context(), t)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// fakeRun is one line of the fake's log.
type fakeRun struct {
	Kind, Dir, Prompt, System, ID string
	Args, Env, History            []string
	Resumed                       bool
	ReadOnly                      bool `json:"read_only"`
	MaxTurns                      int  `json:"max_turns"`
}

func (f *fake) runs() []fakeRun {
	f.t.Helper()
	file, err := os.Open(f.log)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	var out []fakeRun
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r fakeRun
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			f.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// natives are the rows that do not speak ACP.
func natives() []*Program { return []*Program{claude(), codex()} }

// eachProgram runs a test for every native row.
func eachProgram(t *testing.T, test func(t *testing.T, p *Program)) {
	for _, p := range natives() {
		t.Run(p.Name, func(t *testing.T) { test(t, p) })
	}
}

// forget deletes all conversations that the programs keep.
func (f *fake) forget() {
	f.t.Helper()
	for _, dir := range []string{".claude", ".codex"} {
		if err := os.RemoveAll(filepath.Join(f.home, dir)); err != nil {
			f.t.Fatal(err)
		}
	}
}
