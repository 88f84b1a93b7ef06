package proc

import (
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

// IsSetting reports whether a variable, as NAME=value, is a setting of git-tilth. A run's commands get no settings.
// Other variables tell a nested git-tilth which run called it and where sessions are.
func IsSetting(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return strings.HasPrefix(name, "TILTH_") && name != session.MarkVar && name != "TILTH_SESSIONS_DIR"
}

// prepare builds the command.
func prepare(c Cmd) (*exec.Cmd, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, errors.New("no command given")
	}
	if err := checkDir(c.Dir); err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = c.Box.Environ(env)
	path, err := LookPath(c.Argv[0], c.Dir, env)
	if err != nil {
		return nil, err
	}
	// A new session, so that the command has no terminal.
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if c.Dir != "" { // programs trust PWD for the name under which they were started in a directory
		if abs, err := filepath.Abs(c.Dir); err == nil {
			cmd.Env = append(slices.Clip(env), "PWD="+abs)
		}
	}
	return cmd, nil
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

// AgentVar names the ssh agent. Only signatures and git commands with a remote need it.
const AgentVar = "SSH_AUTH_SOCK"

// startError adds the name of the program to the error of a failed start.
func startError(c Cmd, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return fmt.Errorf("%s cannot be started: %w", c.Argv[0], err)
}
