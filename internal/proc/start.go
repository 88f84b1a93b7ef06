package proc

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Mark is the environment variable by which processes that a command started are recognised after they have left its
// process group and session. Its value is a colon-separated list, one entry for each git-tilth above the process.
const Mark = "TILTH_PROC"

// IsSetting reports whether a variable, as NAME=value, is a setting of git-tilth. Nothing that a run starts gets one.
// Other variables tell a git-tilth below which run called it and where sessions are, and mark the run's processes.
func IsSetting(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	passed := []string{session.MarkVar, "TILTH_SESSIONS_DIR", Mark}
	return strings.HasPrefix(name, "TILTH_") && !slices.Contains(passed, name)
}

// prepare builds the command and the mark of its family.
func prepare(c Cmd) (*exec.Cmd, string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, "", errors.New("no command given")
	}
	if err := checkDir(c.Dir); err != nil {
		return nil, "", err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = c.Box.Environ(env)
	path, err := LookPath(c.Argv[0], c.Dir, env)
	if err != nil {
		return nil, "", err
	}
	// A session of its own, not only a group: job control (`set -m`) makes new groups but stays in the session, where
	// it is still found.
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: c.Env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if c.Lasting {
		return cmd, newMark(""), nil // which no process has
	}
	id := newMark(cmp.Or(c.Place, c.Dir))
	cmd.Env = childEnv(env, c.Dir, id)
	return cmd, id, nil
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s", ErrDir, dir)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDir, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory", ErrDir, dir)
	}
	return nil
}

// LookPath finds a program as Run does: names with a slash relative to dir, others in the absolute entries of the
// PATH in env. It fails with an error that wraps exec.ErrNotFound.
func LookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if !executable(path) {
			return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		}
		return filepath.Abs(path)
	}
	for _, entry := range filepath.SplitList(Getenv(env, "PATH")) {
		if !filepath.IsAbs(entry) {
			continue
		}
		if path := filepath.Join(entry, name); executable(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Getenv returns the value that a program started with env would see: the last one.
func Getenv(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

// AgentVar names the ssh agent. Only a signature needs it, and git where it talks to a remote.
const AgentVar = "SSH_AUTH_SOCK"

// newMark makes an id that tells this command from every other, and that names its directory in a way that EndStale
// can compute again.
func newMark(dir string) string {
	b := make([]byte, 8)
	rand.Read(b)
	return dirMark(dir) + "-" + hex.EncodeToString(b)
}

func dirMark(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	return hex.EncodeToString(sum[:6])
}

// childEnv adds the mark, after those of outer ones, and PWD, which programs trust for the name under which they were
// started in a directory.
func childEnv(env []string, dir, id string) []string {
	out := make([]string, 0, len(env)+2)
	outer := ""
	for _, kv := range env {
		key, val, _ := strings.Cut(kv, "=")
		switch {
		case key == Mark:
			outer = val + ":"
		case key == "PWD" && dir != "":
		default:
			out = append(out, kv)
		}
	}
	if dir != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			out = append(out, "PWD="+abs)
		}
	}
	return append(out, Mark+"="+outer+id)
}

// startError names the program, which the bare fork error does not.
func startError(c Cmd, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return fmt.Errorf("%s cannot be started: %w", c.Argv[0], err)
}
