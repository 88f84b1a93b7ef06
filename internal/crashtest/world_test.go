//go:build linux && (amd64 || arm64)

package crashtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// world is a directory with everything that a command uses: home/, repo/ and sessions/ with one session. All worlds
// have paths of the same length, so that a copy of one becomes another by replacing the path in the files that have
// it, without changing an offset.
type world struct {
	dir    string
	binary string
	url    string // of the scripted model
	id     string // of the session
	// childDied means that only a child was killed. If that was a command of a hook, which continues, the accepted
	// change is committed, and the command's locks and unstaged changes stay in the worktree.
	childDied bool
	// unwritten: the disk was full, and the worker submitted its partial work.
	unwritten bool
	// backThere: ignored files stayed when the session was rewound to a state without the ignore rule.
	backThere bool
	// arriving: under its mark the session is still being written.
	arriving bool
	remotes  *remotes // of a session that moves between machines
	more     []string // variables
	first    int      // status of the endpoint's first answer about T-002, 0 for an answer
	since    string   // base of a session that was moved to another base; "" for main
	at       string   // directory next to the repository for commands, "" for the repository
}

func (w *world) repo() string         { return filepath.Join(w.dir, "repo") }
func (w *world) here() string         { return filepath.Join(w.dir, cmp.Or(w.at, "repo")) }
func (w *world) sessionDir() string   { return filepath.Join(w.dir, "sessions", w.id) }
func (w *world) workspace() string    { return filepath.Join(w.sessionDir(), "workspace") }
func (w *world) branch() string       { return "session/" + w.id }
func (w *world) logFile() string      { return w.dir + ".out" }
func (w *world) file(n string) string { return filepath.Join(w.sessionDir(), n) }

func (w *world) environ() []string {
	url := w.url
	if w.first != 0 {
		url = strings.TrimSuffix(url, "v1") + fmt.Sprintf("%d/%s/v1", w.first, filepath.Base(w.dir))
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"), "TMPDIR=" + os.TempDir(), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"TILTH_SESSIONS_DIR=" + filepath.Join(w.dir, "sessions"), "TILTH_BASE_URL=" + url,
		"TILTH_WORKER_MODEL=scripted", "TILTH_PROVIDER_ATTEMPTS=1",
		"TILTH_SANDBOX=off", // entering the sandbox is not a step of a run
		"TILTH_RESUME_NOTICE=0", "TILTH_AGAIN=true", "GIT_EDITOR=sed -i -e s/Alpha/Alef/ -e s/Gamma/Gimel/",
		// The runtime's own signals would only slow the tracer down.
		"GODEBUG=asyncpreemptoff=1",
	}
	for _, more := range w.more { // a process that the tracer starts would see the first of two
		name, _, _ := strings.Cut(more, "=")
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		env = append(env, more)
	}
	return env
}

// result is the result of a command.
type result struct {
	code        int
	out, errOut string
}

// tilth runs git-tilth undisturbed.
func (w *world) tilth(args ...string) (result, error) {
	return w.command(w.binary, args...)
}

func (w *world) command(program string, args ...string) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = w.here(), w.environ()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	r := result{out: out.String(), errOut: errOut.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		return r, fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	if strings.Contains(r.errOut, "panic:") || strings.Contains(r.errOut, "goroutine ") {
		return r, fmt.Errorf("git-tilth %s panicked:\n%s", strings.Join(args, " "), r.errOut)
	}
	return r, nil
}

// expect runs git-tilth and checks for one of the exit codes.
func (w *world) expect(codes []int, args ...string) (result, error) {
	r, err := w.tilth(args...)
	if err == nil && !slices.Contains(codes, r.code) {
		err = fmt.Errorf("git-tilth %s: exit code %d, want %v\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.code,
			codes, clip(r.out), clip(r.errOut))
	}
	return r, err
}

// git runs git in the user's repository, without taking optional locks.
func (w *world) git(args ...string) (string, error) {
	r, err := w.command("git", append([]string{"--no-optional-locks", "-C", w.repo()}, args...)...)
	if err == nil && r.code != 0 {
		err = fmt.Errorf("git %s: exit code %d: %s", strings.Join(args, " "), r.code, r.errOut)
	}
	return r.out, err
}

func clip(s string) string {
	if len(s) > 3000 {
		return s[:1500] + "\n...\n" + s[len(s)-1500:]
	}
	return s
}

// trace runs git-tilth under the tracer.
func (w *world) trace(decide func(n int, o op) way, args ...string) (outcome, error) {
	return traced{
		argv: append([]string{w.binary}, args...), env: w.environ(), dir: w.here(), root: w.dir, log: w.logFile(),
		decide: decide,
	}.run()
}

// copyTo copies this world to a directory with a path of the same length.
func (w *world) copyTo(dir string) (*world, error) {
	if len(dir) != len(w.dir) {
		return nil, fmt.Errorf("%s and %s are not of the same length", dir, w.dir)
	}
	to := *w
	to.dir = dir
	return &to, filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return copyEntry(path, filepath.Join(dir, strings.TrimPrefix(path, w.dir)), d, func(data []byte) []byte {
			if w.id != "" && strings.HasPrefix(path, w.workspace()) && d.Name() != ".git" ||
				strings.Contains(path, "/objects/") {
				return data
			}
			return bytes.ReplaceAll(data, []byte(w.dir+"/"), []byte(dir+"/"))
		})
	})
}

func copyEntry(from, to string, d fs.DirEntry, edit func([]byte) []byte) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		return os.Mkdir(to, info.Mode().Perm())
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, edit(data), info.Mode().Perm()); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, info.ModTime())
}

// preCommit is the repository's hook. It changes the commit once, so the result has to be judged again.
const preCommit = `#!/bin/sh
grep -q RAW gamma.txt 2>/dev/null && echo COOKED > gamma.txt && git add gamma.txt
exit 0
`

const prd = `[
 {"id": "T-001", "title": "Alpha", "description": "Write alpha.txt", "acceptance_criteria": ["alpha.txt exists"]},
 {"id": "T-002", "title": "Beta", "description": "Write beta.txt", "acceptance_criteria": ["beta.txt exists"]},
 {"id": "T-003", "title": "Gamma", "description": "Write gamma.txt", "acceptance_criteria": ["gamma.txt exists"], "note": "kept"}
]
`

// newWorld creates a repository with files of a user that a session must not touch, and prepares a session in it.
func newWorld(dir, binary, url string) (*world, error) {
	w := &world{dir: dir, binary: binary, url: url}
	for name, content := range map[string]string{
		"home/.gitconfig": "[user]\n\tname = Test User\n\temail = user@example.com\n[init]\n\tdefaultBranch = " +
			"main\n",
		"tasks/prd.json":     prd,
		"repo/hello.txt":     "hello\n",
		"repo/.gitignore":    "*.ignored\n",
		"repo/mine.ignored":  "mine\n",
		"sessions/notes.txt": "no session\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	write := func(name, content string, mode os.FileMode) func() error {
		return func() error { return os.WriteFile(filepath.Join(w.repo(), name), []byte(content), mode) }
	}
	git := func(args ...string) func() error {
		return func() error { _, err := w.git(args...); return err }
	}
	for _, step := range []func() error{
		git("init", "-q", "--template="), git("add", "-A"), git("commit", "-q", "-m", "first"), git("branch", "other"),
		git("tag", "v1"),
		write("hello.txt", "stashed\n", 0o644), git("stash", "-q"),
		write("staged.txt", "staged\n", 0o644), git("add", "staged.txt"), write("hello.txt", "changed\n", 0o644),
		write("untracked.txt", "untracked\n", 0o644),
		git("config", "tilth.validator", "check=test -f hello.txt"), git("config", "branch.main.description", "mine"),
		func() error { return os.MkdirAll(filepath.Join(w.repo(), ".git/hooks"), 0o755) },
		write(".git/hooks/pre-commit", preCommit, 0o755), write(".git/hooks/commit-msg", commitMsg, 0o755),
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// prepare makes the session.
func (w *world) prepare() error {
	if _, err := w.expect([]int{0}, "prep", "--from", "../tasks/prd.json"); err != nil {
		return err
	}
	if w.findSession(); w.id == "" {
		return errors.New("there is no session")
	}
	return nil
}

// findSession sets the id to that of the one session there is.
func (w *world) findSession() {
	entries, _ := os.ReadDir(filepath.Join(w.dir, "sessions"))
	for _, e := range entries {
		if e.IsDir() {
			w.id = e.Name()
		}
	}
}

// litter leaves files in the worktree that a user or a process may leave; sweep removes them.
func (w *world) litter() error {
	deep := filepath.Join(w.workspace(), "sub", "deep")
	return errors.Join(
		os.WriteFile(filepath.Join(w.workspace(), "junk.txt"), []byte("junk\n"), 0o644),
		os.MkdirAll(deep, 0o755),
		os.WriteFile(filepath.Join(deep, "junk.txt"), []byte("junk\n"), 0o644),
		os.WriteFile(filepath.Join(w.workspace(), "hello.txt"), []byte("changed\n"), 0o644),
	)
}

func (w *world) sweep() error {
	return errors.Join(
		os.RemoveAll(filepath.Join(w.workspace(), "junk.txt")), os.RemoveAll(filepath.Join(w.workspace(), "sub")),
		os.WriteFile(filepath.Join(w.workspace(), "hello.txt"), []byte("hello\n"), 0o644),
	)
}
