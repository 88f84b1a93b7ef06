package scripttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// repoState describes everything in a user's repository that a session must not change: HEAD, branches, index, files,
// stash, config and hooks. Session branches and worktree entries may change.
func repoState(ts *testscript.TestScript, dir string) string {
	var b strings.Builder
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1",
			"GIT_OPTIONAL_LOCKS=0"}
		out, err := cmd.CombinedOutput()
		fmt.Fprintf(&b, "%s: %v\n", strings.Join(args, " "), err)
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "refs/heads/session/") {
				b.WriteString(line)
			}
		}
	}
	git("rev-parse", "HEAD")
	git("symbolic-ref", "-q", "HEAD")
	git("for-each-ref") // its --exclude is newer than the git that is supported
	git("stash", "list")
	common := filepath.Join(dir, ".git")
	if _, err := os.Stat(common); err != nil {
		common = dir
	}
	// packed-refs is left out, because deleting any branch makes git write one.
	for _, name := range []string{"HEAD", "index", "config", "info/exclude"} {
		data, _ := os.ReadFile(filepath.Join(common, name))
		fmt.Fprintf(&b, "%s %x\n", name, data)
	}
	b.WriteString(dirState(ts, dir, false))
	return b.String()
}

func dirState(ts *testscript.TestScript, dir string, skipIgnored bool) string {
	ignored := map[string]bool{}
	if skipIgnored {
		cmd := exec.Command("git", "-C", dir, "ls-files", "-z", "-o", "-i", "--exclude-standard")
		out, _ := cmd.Output()
		for _, f := range strings.Split(string(out), "\x00") {
			ignored[f] = true
		}
	}
	var b strings.Builder
	ts.Check(filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
		if errors.Is(err, fs.ErrPermission) { // overlayfs has a directory next to each layer that only root can read
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if fi.Name() == ".git" || (skipIgnored && rel == "workspace") ||
			(rel != "." && path == ts.Getenv("TILTH_SESSIONS_DIR")) {
			if fi.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if ignored[rel] || fi.IsDir() {
			return nil
		}
		data, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %x\n", rel, fi.Mode(), data)
		return nil
	}))
	return b.String()
}

func keep(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "keep NAME DIR")
	of(ts).kept[args[0]] = repoState(ts, ts.MkAbs(args[1]))
}

func kept(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "kept NAME DIR")
	compare(ts, args[0], repoState(ts, ts.MkAbs(args[1])))
}

func keepdir(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "keepdir NAME DIR")
	of(ts).kept[args[0]] = dirState(ts, ts.MkAbs(args[1]), true)
}

func keptdir(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "keptdir NAME DIR")
	compare(ts, args[0], dirState(ts, ts.MkAbs(args[1]), true))
}

func compare(ts *testscript.TestScript, name, now string) {
	before := of(ts).kept[name]
	if before == now {
		return
	}
	text := LineDiff(before, now)
	if len(text) > 4000 {
		text = text[:4000]
	}
	ts.Fatalf("%s has changed:\n%s", name, text)
}

// LineDiff returns the lines that only was has, each after "- ", and those that only is has, each after "+ ".
func LineDiff(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	var diff []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			diff = append(diff, "+ "+l)
		}
	}
	return strings.Join(diff, "\n")
}
