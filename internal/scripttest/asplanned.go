package scripttest

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// asPlanned runs a command of git tilth twice: dry, and then with -v, which must exit with the given code. The git
// commands of the dry run must be the writing commands of the real run, in order.
func asPlanned(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 2, "asplanned CODE COMMAND ARGS...")
	run := func(flag string) (said string, code int) {
		cmd := exec.Command("git", append([]string{"tilth", flag}, args[1:]...)...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			ts.Fatalf("%v: %v", cmd.Args, err)
		}
		ts.Logf("%s\n%s", strings.Join(cmd.Args, " "), out.String())
		return out.String(), cmd.ProcessState.ExitCode()
	}
	dry, code := run("-n")
	if code != 0 {
		ts.Fatalf("the dry run ended with %d", code)
	}
	real, code := run("-v")
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("the real run ended with %d, want %s", code, args[0])
	}
	var planned []string
	for line := range strings.Lines(dry) {
		if cmd, ok := strings.CutPrefix(strings.TrimSpace(line), "would run: "); ok {
			planned = append(planned, nameless(cmd))
		}
	}
	if written := writes(real); !slices.Equal(planned, written) {
		ts.Fatalf("planned:\n  %s\nrun:\n  %s", strings.Join(planned, "\n  "), strings.Join(written, "\n  "))
	}
}

var (
	traced = regexp.MustCompile(`^\+ (git .*)  \([^()]*\)$`)
	// writing are the git commands that write, after git's own options.
	writing = regexp.MustCompile(`^git (?:(?:-C|-c) (?:'[^']*'|\S+) |--(?:git-dir|literal-pathspecs)\S* )*` +
		`(worktree (add|remove|repair|move)|add|write-tree|update-index|commit|commit-tree|update-ref|reset|symbolic-ref -m|read-tree|restore|` +
		`clean|branch|fetch|push|fast-import) `)
	// ids matches ids of commits that a dry run does not make, and times in the names of stashed files.
	ids = regexp.MustCompile(` '?<commit>'?|(update-ref (?:--no-deref )?-m '[^']*' \S+) [0-9a-f]{40}`)
	// claims matches the ids of claim commits, which depend on the time. travels matches directories with a random
	// name.
	claims  = regexp.MustCompile(`[0-9a-f]{40}:refs/tilth/claims/`)
	travels = regexp.MustCompile(`/[.]travel-\w+`)
)

// nameless removes from a command the parts that only the real run has: a commit's id, a directory's name.
func nameless(cmd string) string {
	cmd = travels.ReplaceAllString(claims.ReplaceAllString(cmd, "<claim>:refs/tilth/claims/"), "/.travel-new")
	return ids.ReplaceAllString(cmd, "$1 <commit>")
}

// writes returns the commands in the output of -v that write to the repository or the worktree. It skips those of a
// preview, which has its own index and objects.
func writes(said string) []string {
	var out []string
	for line := range strings.Lines(said) {
		m := traced.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || !writing.MatchString(m[1]+" ") || strings.HasSuffix(line, "failed)\n") ||
			strings.HasSuffix(line, ", ahead)\n") {
			continue
		}
		out = append(out, nameless(m[1]))
	}
	return out
}
