//go:build bench

package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// world is a home directory with one repository and a sessions root.
type world struct {
	t        testing.TB
	dir      string
	repo     string
	sessions string
	environ  []string
	program  string // another git-tilth than the built one
}

// newWorld creates a repository with n small files in one commit, packed as after a clone.
func newWorld(t testing.TB, n int) *world { return newWorldIn(t, t.TempDir(), n) }

func newWorldIn(t testing.TB, dir string, n int) *world {
	t.Helper()
	w := &world{t: t, dir: dir, repo: filepath.Join(dir, "repo"), sessions: filepath.Join(dir, "sessions")}
	const date = "2026-06-11T22:04:10 +0000" // fixed, so that a replay makes the same objects
	w.environ = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"TILTH_SESSIONS_DIR=" + w.sessions,
		"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date, "TILTH_RESUME_NOTICE=0", "TILTH_AGAIN=true",
		"TILTH_WORKER_MODEL=scripted",
		"TMPDIR=" + filepath.Join(dir, "tmp"),
	}
	must(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
	w.write(".gitconfig", "[user]\n\tname = Bench\n\temail = bench@example.com\n"+
		"[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"+
		"[tilth]\n\tvalidator = null=:\n\tsandboxWrite = "+filepath.Join(dir, "state")+"\n")
	for i := range n {
		w.write(filepath.Join("repo", fileName(i)),
			fmt.Sprintf("file %d\n%s", i, strings.Repeat("a line of text\n", 10)))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}, {"gc", "-q"}} {
		w.git(w.repo, args...)
	}
	return w
}

// fileName returns the path of the ith file of a repository: ten per directory.
func fileName(i int) string { return fmt.Sprintf("d%04d/f%05d.txt", i/10, i) }

func (w *world) write(name, text string) {
	w.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, name)
	}
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(w.t, os.WriteFile(path, []byte(text), 0o644))
}

// tasks writes n tasks to import.
func (w *world) tasks(n int) string {
	dir := filepath.Join(w.dir, "tasks")
	must(w.t, os.RemoveAll(dir))
	w.write(filepath.Join(dir, "overview.md"), "# What there is to do\n")
	for i := range n {
		w.write(filepath.Join(dir, fmt.Sprintf("T-%03d-write.md", i+1)),
			fmt.Sprintf(
				"---\nid: T-%03d\ntitle: Write file %d\n---\nA file is missing.\n\n## Acceptance criteria\n- it is "+
					"there\n", i+1, i+1))
	}
	return dir
}

// git runs git as a user would.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// tilth prepares git-tilth in the repository.
func (w *world) tilth(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(cmp.Or(w.program, binary(w.t)), args...)
	cmd.Dir, cmd.Env = w.repo, w.environ
	return cmd
}

// run runs git-tilth and checks its exit code.
func (w *world) run(code int, args ...string) {
	w.t.Helper()
	w.timed(code, w.tilth(args...))
}

// timed runs a command, checks its exit code and returns its duration.
func (w *world) timed(code int, cmd *exec.Cmd) time.Duration {
	w.t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	_ = cmd.Run() // the exit code is checked below
	took := time.Since(start)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		w.t.Fatalf("%s: %v, want exit code %d\n%s", strings.Join(cmd.Args, " "), cmd.ProcessState, code, out.Bytes())
	}
	return took
}

// serve starts a scripted endpoint and points git-tilth to it.
func (w *world) serve(script *scripted.Script, options ...scripted.Option) *scripted.Server {
	w.t.Helper()
	s, err := scripted.Start(script, append(options, scripted.WithoutBodies())...)
	must(w.t, err)
	w.t.Cleanup(func() { s.Close() })
	return s
}

// at is the environment with an endpoint in it.
func (w *world) at(url string, more ...string) []string {
	return append(append(w.environ[:len(w.environ):len(w.environ)], "TILTH_BASE_URL="+url), more...)
}

// newest is the newest session.
func (w *world) newest() *session.Session {
	w.t.Helper()
	st := session.Store{Root: w.sessions}
	ids, err := st.IDs()
	must(w.t, err)
	if len(ids) == 0 {
		w.t.Fatal("there is no session")
	}
	s, err := st.Find(ids[0])
	must(w.t, err)
	return s
}

// root is the top of the source tree.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	must(t, err)
	return dir
}

var built struct {
	sync.Once
	path string
	err  error
}

// binary builds bin/git-tilth with the Makefile, because an existing file may be older than the code.
func binary(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		built.path = filepath.Join(root(t), "bin", "git-tilth")
		cmd := exec.Command("make", "build")
		cmd.Dir = root(t)
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("make build: %w\n%s", err, out)
		}
	})
	must(t, built.err)
	return built.path
}
