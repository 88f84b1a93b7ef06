//go:build bench

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Variables of the git that records.
const (
	recordDirVar   = "BENCH_RECORD_DIR"   // directory for the recorded calls
	recordWatchVar = "BENCH_RECORD_WATCH" // patterns of files to write down, separated by colons
)

// call is one recorded git command.
type call struct {
	Args  []string
	Dir   string
	Env   []string
	Stdin []byte
	Exit  int
	// Files are the watched files that existed at its start, and those of a git directory made by git-tilth; a
	// directory ends in a slash.
	Files map[string][]byte
}

// recordGit replaces git: it runs the real git and records arguments and input.
func recordGit(args []string) int {
	began := time.Now().UnixNano()
	c := call{Args: args, Files: map[string][]byte{}}
	c.Dir, _ = os.Getwd()
	own := filepath.Dir(os.Args[0])
	for _, line := range os.Environ() {
		if rest, ok := strings.CutPrefix(line, "PATH="); ok {
			line = "PATH=" + strings.TrimPrefix(rest, own+":")
		}
		if !strings.HasPrefix(line, "BENCH_") {
			c.Env = append(c.Env, line)
		}
	}
	for pattern := range strings.SplitSeq(os.Getenv(recordWatchVar), ":") {
		names, _ := filepath.Glob(pattern)
		// In the sandbox the directories above cannot be listed.
		here, _ := filepath.Glob(filepath.Join(c.Dir, filepath.Base(pattern)))
		for _, name := range append(names, here...) {
			if data, err := os.ReadFile(name); err == nil {
				c.Files[name] = data
			}
		}
	}
	if dir := c.madeGitDir(); dir != "" {
		if err := c.keepGitDir(dir); err != nil {
			fmt.Fprintln(os.Stderr, "the recording git:", err)
			return 125
		}
	}
	c.Stdin, _ = io.ReadAll(os.Stdin)
	cmd := c.command()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run()
	c.Exit = cmd.ProcessState.ExitCode()
	data, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Getenv(recordDirVar), fmt.Sprintf("%020d.json", began)), data, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the recording git:", err)
		return 125
	}
	return c.Exit
}

// madeGitDir returns the call's git directory if git-tilth made it: that of the judged checkout, or a temporary one for
// the sandbox or for raw objects, which is deleted after the call. It returns "" for any other.
func (c call) madeGitDir() string {
	for _, line := range c.Env {
		dir, ok := strings.CutPrefix(line, "GIT_DIR=")
		for _, made := range []string{"tilth-temp-", "tmp_objdir-tilth-"} {
			if ok && strings.HasPrefix(filepath.Base(dir), made) {
				return dir
			}
		}
	}
	for _, arg := range c.Args {
		if dir, ok := strings.CutPrefix(arg, "--git-dir="); ok && strings.HasSuffix(dir, "/judge/.git") {
			return dir
		}
	}
	return ""
}

// keepGitDir adds the files of the call's git directory to the call, except objects and the judged checkout's index,
// which git writes.
func (c call) keepGitDir(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, name)
		if err = errors.Join(err, relErr); err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if strings.HasPrefix(rel, "objects/") && rel != "objects/info" {
				return fs.SkipDir
			}
			c.Files[name+"/"] = nil
		case d.Type().IsRegular() && d.Name() != "index.lock" &&
			(d.Name() != "index" || filepath.Base(dir) != ".git"):
			c.Files[name], err = os.ReadFile(name)
		}
		return err
	})
}

// command returns the call with the first git on its PATH.
func (c call) command() *exec.Cmd {
	git := "git"
	for _, line := range c.Env {
		if path, ok := strings.CutPrefix(line, "PATH="); ok {
			for dir := range strings.SplitSeq(path, ":") {
				if _, err := os.Stat(filepath.Join(dir, "git")); err == nil {
					git = filepath.Join(dir, "git")
					break
				}
			}
		}
	}
	cmd := exec.Command(git, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	// Started as by git-tilth, because a scheduler may share the processors by sessions.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if len(c.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	return cmd
}

// recorder has the recording git and a directory for its output, which the sandbox may write.
type recorder struct {
	t        testing.TB
	bin, out string
	watch    []string
}

func (w *world) newRecorder(watch ...string) *recorder {
	t := w.t
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(w.dir, "state"), 0o700))
	out, err := os.MkdirTemp(filepath.Join(w.dir, "state"), "recorded-")
	must(t, err)
	r := &recorder{t: t, bin: t.TempDir(), out: out, watch: watch}
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(r.bin, "git")))
	return r
}

// environ is env with the recording git first on PATH.
func (r *recorder) environ(env []string) []string {
	out := slices.Clone(env)
	for i, line := range out {
		if path, ok := strings.CutPrefix(line, "PATH="); ok {
			out[i] = "PATH=" + r.bin + ":" + path
		}
	}
	return append(out, recordDirVar+"="+r.out, recordWatchVar+"="+strings.Join(r.watch, ":"))
}

// calls returns the recorded calls in the order of their start.
func (r *recorder) calls() []call {
	r.t.Helper()
	entries, err := os.ReadDir(r.out)
	must(r.t, err)
	var out []call
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		must(r.t, err)
		var c call
		must(r.t, json.Unmarshal(data, &c))
		out = append(out, c)
	}
	if len(out) == 0 {
		r.t.Fatal("no git command was recorded")
	}
	return out
}

// replay runs recorded commands alone and returns their duration, without the time for the files that the worker wrote
// in between. A different exit code of a command means that the measurement is wrong.
func replay(t testing.TB, calls []call) time.Duration {
	t.Helper()
	var total time.Duration
	written := map[string]string{}
	for _, c := range calls {
		for name, data := range c.Files {
			if was, ok := written[name]; ok && was == string(data) {
				continue
			}
			written[name] = string(data)
			if strings.HasSuffix(name, "/") {
				must(t, os.MkdirAll(name, 0o700))
				continue
			}
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.WriteFile(name, data, 0o644))
		}
		cmd := c.command()
		start := time.Now()
		_ = cmd.Run()
		total += time.Since(start)
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.Exit {
			t.Fatalf("the replay of git %s in %s: %v, was exit code %d", strings.Join(c.Args, " "), c.Dir,
				cmd.ProcessState, c.Exit)
		}
		c.adopt(t)
	}
	return total
}

// adopt moves the objects of a command in quarantine to the repository's, as git-tilth does between two commands.
func (c call) adopt(t testing.TB) {
	t.Helper()
	for _, line := range c.Env {
		gitDir, is := strings.CutPrefix(line, "GIT_DIR=")
		if !is || !strings.HasPrefix(filepath.Base(gitDir), "tmp_objdir-") {
			continue
		}
		loose, err := filepath.Glob(filepath.Join(gitDir, "objects", "[0-9a-f][0-9a-f]", "*"))
		must(t, err)
		for _, name := range loose {
			to := filepath.Join(filepath.Dir(gitDir), filepath.Base(filepath.Dir(name)))
			must(t, os.MkdirAll(to, 0o755))
			must(t, os.Rename(name, filepath.Join(to, filepath.Base(name))))
		}
	}
}

// subcommands counts recorded calls by git subcommand, for -v.
func subcommands(calls []call) string {
	count := map[string]int{}
	for _, c := range calls {
		count[subcommand(c.Args)]++
	}
	var out []string
	for name, n := range count {
		out = append(out, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(out)
	return fmt.Sprintf("%d git commands: %s", len(calls), strings.Join(out, ", "))
}

func subcommand(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c" || args[i] == "-C":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return "?"
}
