package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/ttytest"
)

// place is a home, a repository and a sessions root of a test's own.
type place struct {
	t    *testing.T
	repo string
	env  []string
	// store is the sessions root.
	store session.Store
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	p := &place{t: t, repo: filepath.Join(dir, "repo"), store: session.Store{Root: filepath.Join(dir, "sessions")}}
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"TILTH_SESSIONS_DIR=" + p.store.Root, "TILTH_RESUME_NOTICE=0", "TILTH_AGAIN=true", "TERM=xterm", "LC_ALL=C",
		"TMPDIR=" + os.TempDir()}
	p.write("../home/.gitconfig",
		"[user]\n\tname = Test User\n\temail = user@example.com\n[init]\n\tdefaultBranch = main\n")
	p.write("calc.py", "def add(a, b):\n    return a + b\n")
	p.write("docs/spec.md", "# Subtraction\n\nsub(3, 2) is 1.\n")
	p.git("init", "-q")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	name = filepath.Join(p.repo, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// git runs git in the repository and returns its output.
func (p *place) git(args ...string) string {
	p.t.Helper()
	out, code := p.try("git", args...)
	if code != 0 {
		p.t.Fatalf("git %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return strings.TrimSpace(out)
}

// try runs a program without a terminal and returns its output and exit code.
func (p *place) try(name string, args ...string) (string, int) {
	p.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.repo, p.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// model starts a scripted endpoint and points the environment to it.
func (p *place) model(script *scripted.Script) *scripted.Server {
	p.t.Helper()
	server, err := scripted.Start(script)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { server.Close() })
	p.env = append(p.env, "TILTH_BASE_URL="+server.URL, "TILTH_WORKER_MODEL=scripted")
	return server
}

// newest is the newest session.
func (p *place) newest() *session.Session {
	p.t.Helper()
	ids, err := p.store.IDs()
	if err != nil || len(ids) == 0 {
		p.t.Fatalf("no session: %v", err)
	}
	s, err := p.store.Find(ids[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *place) sessions() int {
	ids, err := p.store.IDs()
	if err != nil {
		p.t.Fatal(err)
	}
	return len(ids)
}

func (p *place) checkpoint() *session.Checkpoint {
	p.t.Helper()
	c, err := p.newest().Checkpoint()
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// events are the types of the newest session's events, in order.
func (p *place) events() []string {
	p.t.Helper()
	var out []string
	_, _, err := jsonl.Scan(p.newest().Path(session.RecordFile), 0, func(_ int64, line []byte) error {
		var e struct{ Type string }
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		out = append(out, e.Type)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// noBundle checks that no part of a seed exists: not in the session's directory, its worktree, its index or on its
// branch.
func (p *place) noBundle() {
	p.t.Helper()
	s := p.newest()
	for _, name := range []string{session.TasksFile, session.SeedMetaFile} {
		if _, err := os.Lstat(s.Path(name)); err == nil {
			p.t.Errorf("%s is left", name)
		}
	}
	if out := p.git("-C", s.Workspace(), "status", "--porcelain", "--ignored"); out != "" {
		p.t.Errorf("the worktree is not as it was:\n%s", out)
	}
	if tip, head := p.git("rev-parse", s.Branch()), p.git("rev-parse", "HEAD"); tip != head {
		p.t.Errorf("the branch is at %s", p.git("log", "-1", "--format=%s", s.Branch()))
	}
}

// user describes everything that a session must not change: every file of the working tree, the index, HEAD, branches
// and the stash.
func (p *place) user() string {
	p.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(p.repo, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %s %s %x\n", path, info.Mode(), info.ModTime(), sha256.Sum256(text))
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, name := range []string{"HEAD", "index", "config", "info/exclude"} {
		text, _ := os.ReadFile(filepath.Join(p.repo, ".git", name))
		fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256(text))
	}
	for line := range strings.Lines(p.git("for-each-ref")) {
		if !strings.Contains(line, "refs/heads/session/") {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

// console starts git tilth, through git, at a pseudo-terminal.
func (p *place) console(args ...string) *ttytest.Console {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"tilth"}, args...)...)
	cmd.Dir, cmd.Env = p.repo, p.env
	return ttytest.Start(p.t, cmd)
}
