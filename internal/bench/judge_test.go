//go:build bench

package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// benchLayOut updates the judged checkout from one tree to another and back, and from a tree to itself, and compares
// with git alone. It uses several directories, because their position on the disk matters more than the code (on ext4
// 0.6 to 2.4 times).
func benchLayOut(t *testing.T, tb *table) {
	for _, size := range []struct{ files, changed int }{{200, 1}, {2_000, 20}, {20_000, 200}} {
		cases := make([]*layOutCase, 5)
		for i := range cases {
			cases[i] = newLayOutCase(t, size.files, size.changed)
		}
		each := func(act func(*layOutCase) time.Duration) func() time.Duration {
			round := 0
			return func() time.Duration {
				round++
				return act(cases[round%len(cases)])
			}
		}
		name := fmt.Sprintf("%d files, %d changed", size.files, size.changed)
		took := alternate(60, each((*layOutCase).change), each((*layOutCase).floor), each((*layOutCase).again),
			each((*layOutCase).look))
		tb.ratio("laying out to be judged, "+name, took[0], took[1], "git read-tree -m -u", 1.3)
		tb.ratio(fmt.Sprintf("laying out what is there, %d files", size.files), took[2], took[3],
			"git update-index --refresh", 1)
		tb.count(fmt.Sprintf("its git processes, %d files", size.files), float64(cases[0].idle), 0)
	}
}

// layOutCase is a judged checkout and a plain index with files, both switched between two trees.
type layOutCase struct {
	w       *world
	place   *judge.Checkout
	plain   string
	head    string // the commit that the place's HEAD is at
	trees   [2]string
	at      int // the tree that the place has
	plainAt int
	ran     int // git commands of the place
	idle    int // judgements without a change
	setups  int // runs of the setup
}

func newLayOutCase(t *testing.T, files, changed int) *layOutCase {
	t.Helper()
	w := newWorld(t, files)
	c := &layOutCase{w: w, plain: filepath.Join(w.dir, "plain")}
	c.trees[0] = w.git(w.repo, "rev-parse", "HEAD^{tree}")
	for i := range changed {
		w.write(filepath.Join("repo", fileName(i*files/changed)), "what the task asked for\n")
	}
	w.git(w.repo, "commit", "-q", "-a", "-m", "second")
	c.trees[1] = w.git(w.repo, "rev-parse", "HEAD^{tree}")
	c.head = w.git(w.repo, "rev-parse", "HEAD")
	w.git(w.repo, "worktree", "add", "--quiet", "--detach", c.plain, "HEAD^")
	must(t, os.MkdirAll(filepath.Join(w.sessions, "s"), 0o700))
	var err error
	c.place, err = judge.New(context.Background(), filepath.Join(w.sessions, "s", "judge"), judge.Options{
		Git:    gitx.New(w.environ, false, func(gitx.Call) { c.ran++ }),
		Common: filepath.Join(w.repo, ".git"), Branch: "session/s",
		Setup:    func(context.Context, string) error { c.setups++; return nil },
		Repaired: func(what, done string) error { return fmt.Errorf("%s: %s", what, done) },
	})
	must(t, err)
	t.Cleanup(c.place.Open)
	c.layOut()
	return c
}

// layOut measures one judgement in the judged checkout without validators.
func (c *layOutCase) layOut() time.Duration {
	start := time.Now()
	laid, err := c.place.Update(context.Background(), c.head, c.trees[c.at])
	must(c.w.t, err)
	took := time.Since(start)
	if len(laid.Files) == 0 {
		c.w.t.Fatal("nothing was laid out")
	}
	start = time.Now()
	must(c.w.t, c.place.Close())
	return took + time.Since(start)
}

func (c *layOutCase) change() time.Duration {
	c.at = 1 - c.at
	return c.layOut()
}

func (c *layOutCase) again() time.Duration {
	before := c.ran
	took := c.layOut()
	c.idle = c.ran - before
	return took
}

func (c *layOutCase) floor() time.Duration {
	from := c.trees[c.plainAt]
	c.plainAt = 1 - c.plainAt
	return c.git("read-tree", "-m", "-u", from, c.trees[c.plainAt])
}

// look is git finding out that nothing changed.
func (c *layOutCase) look() time.Duration { return c.git("update-index", "-q", "--refresh") }

// git runs git next to the checkout as git-tilth starts it, because a scheduler may share the processors by sessions.
func (c *layOutCase) git(args ...string) time.Duration {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.plain, c.w.environ, &syscall.SysProcAttr{Setsid: true}
	return c.w.timed(0, cmd)
}

// benchValidators compares a project's validators in the judged checkout with the same commands in the user's working
// tree, after a first judgement has filled the caches.
func benchValidators(t *testing.T, tb *table) {
	for _, project := range []struct {
		name, needs, command string
		files                map[string]string
	}{
		{"Go", "go version", "go vet ./... && go test ./...", map[string]string{
			"go.mod":  "module example.com/calc\n\ngo 1.21\n",
			"calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
			"calc_test.go": "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 " +
				"{\n\t\tt.Fatal()\n\t}\n}\n",
		}},
		{"Node", "node --version", "node --test", map[string]string{
			"package.json": `{"name": "calc", "scripts": {"test": "node --test"}}`, ".gitignore": "node_modules/\n",
			"calc.js": "exports.add = (a, b) => a + b;\n",
			"calc.test.js": "const {add} = require('./calc');\nrequire('node:test')('add', () => {\n" +
				"  if (add(1, 2) !== 3) throw new Error();\n});\n",
		}},
		{"Rust", "cargo --version", "cargo test --offline --quiet", map[string]string{
			"Cargo.toml": "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"Cargo.lock": "version = 3\n\n[[package]]\nname = \"calc\"\nversion = \"0.1.0\"\n",
			".gitignore": "target/\n",
			"src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[test]\nfn adds() {\n" +
				"    assert_eq!(add(1, 2), 3);\n}\n",
		}},
		{"Python", python + " --version", python + " -q -p no:cacheprovider tests", map[string]string{
			"pyproject.toml": "[project]\nname = \"calc\"\nversion = \"1\"\n", ".gitignore": ".venv/\n",
			"calc.py":            "def add(a, b):\n    return a + b\n",
			"tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
		}},
	} {
		t.Run(project.name, func(t *testing.T) {
			w := newWorld(t, 10)
			if out, err := w.shell(project.needs).CombinedOutput(); err != nil {
				t.Skipf("no row: %s: %v\n%s", project.needs, err, out)
			}
			for name, text := range project.files {
				w.write(filepath.Join("repo", name), text)
			}
			w.git(w.repo, "add", "-A")
			w.git(w.repo, "commit", "-q", "-m", "project")
			w.git(w.repo, "config", "tilth.validator", "check="+project.command)
			var judged, there []time.Duration
			for range 5 {
				judged = append(judged, w.secondValidation())
				there = append(there, w.byHand(project.command))
			}
			name := "validators where changes are judged, " + project.name
			tb.ratio(name, median(judged), median(there), "by hand", 1.2)
		})
	}
}

// python runs pytest with the system's interpreter.
const python = "PATH=/usr/bin:$PATH python3 -m pytest"

// shell returns a command in the repository with the environment of toolEnviron.
func (w *world) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = w.repo, w.toolEnviron(slices.Clone(w.environ))
	return cmd
}

// toolEnviron adds the variables that a project's tools need.
func (w *world) toolEnviron(env []string) []string {
	return append(env, "GOFLAGS=-mod=mod", "GOCACHE="+filepath.Join(w.dir, "gocache"),
		"RUSTUP_HOME="+cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(os.Getenv("HOME"), ".rustup")))
}

// byHand returns the median of three durations of a command in the repository, after a change to a file that the
// command does not read.
func (w *world) byHand(command string) time.Duration {
	w.t.Helper()
	var took []time.Duration
	for i := range 3 {
		w.write("repo/grown.txt", strings.Repeat("line\n", i))
		took = append(took, w.timed(0, w.shell(command)))
	}
	must(w.t, os.Remove(filepath.Join(w.repo, "grown.txt")))
	return took[len(took)-1]
}

// secondValidation is how long the validators took for the last of three tasks.
func (w *world) secondValidation() time.Duration {
	w.t.Helper()
	w.runAll(3, w.toolEnviron(append(w.withAgent("claude"), "TILTH_MAX_ITERATIONS_PER_TASK=1")))
	data, err := os.ReadFile(w.newest().Path(session.RecordFile))
	must(w.t, err)
	var last record.ValidatorRun
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, `"type":"validator_run"`) {
			var ev struct{ Payload record.ValidatorRun }
			must(w.t, json.Unmarshal([]byte(line), &ev))
			last = ev.Payload
		}
	}
	var sum time.Duration
	for _, r := range last.Results {
		sum += time.Duration(r.Seconds * float64(time.Second))
	}
	if !last.Passed || sum == 0 {
		w.t.Fatalf("the validators did not run: %+v", last)
	}
	return sum
}
