package scripttest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

func manifest(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "manifest NAME VAR")
	of(ts).kept["manifest "+args[0]] = manifestOf(ts, args[1])
}

// same compares with a manifest. Lines that begin with one of the named files are left out of both.
func same(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: same NAME VAR [FILE]...")
	}
	before, ok := of(ts).kept["manifest "+args[0]]
	if !ok {
		ts.Fatalf("there is no manifest %s", args[0])
	}
	cut := func(text string) string {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
			return slices.ContainsFunc(args[2:],
				func(name string) bool { return strings.HasPrefix(line+" ", name+" ") })
		})
		return strings.Join(lines, "\n")
	}
	of(ts).kept["manifest, cut"] = cut(before)
	compare(ts, "manifest, cut", cut(manifestOf(ts, args[1])))
}

func manifestOf(ts *testscript.TestScript, name string) string {
	var b strings.Builder
	dir := ts.Getenv(name + "_DIR")
	wt := filepath.Join(dir, "workspace")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"--no-optional-locks", "-C", wt}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil {
			ts.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	for _, args := range [][]string{
		{"symbolic-ref", "HEAD"}, {"rev-parse", "HEAD"}, {"log", "--format=%H %T %s", "HEAD"},
		{"ls-files", "-v", "--stage"},
		{"diff", "--cached", "--raw", "--no-abbrev"}, {"status", "--porcelain=v1", "--untracked-files=all"},
	} {
		fmt.Fprintf(&b, "git %s\n%s", args[0], git(args...))
	}
	ignored := map[string]bool{}
	for _, path := range strings.Split(git("ls-files", "-z", "-o", "-i", "--exclude-standard"), "\x00") {
		if path != "" {
			ignored[path] = true
		}
	}
	// A directory with ignored files stays.
	for path := range ignored {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			ignored[dir] = true
		}
	}
	listFiles(ts, &b, wt, func(rel string) bool { return rel == ".git" || ignored[rel] })
	for _, name := range []string{"prd.json", "progress.txt", "ledger", "conversation", "aside"} {
		listFiles(ts, &b, filepath.Join(dir, name), func(string) bool { return false })
	}
	checkpoint, err := os.ReadFile(filepath.Join(dir, "checkpoint.json"))
	ts.Check(err)
	fmt.Fprintf(&b, "conversations %q\n", gjson.GetBytes(checkpoint, "conversations").Raw)
	return b.String()
}

// listFiles writes a line for everything at path and below: name, mode and content.
func listFiles(ts *testscript.TestScript, b *strings.Builder, path string, skip func(rel string) bool) {
	ts.Check(filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(path, at)
		if err != nil || skip(rel) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(at)
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(at)
			content = string(data)
		}
		fmt.Fprintf(b, "%s %v %q\n", strings.TrimSuffix(filepath.Base(path)+"/"+rel, "/."), info.Mode(), content)
		return err
	}))
}
