// Command agents drives the real agent programs against stubs of their APIs. It installs them from the npm registry
// into a scratch directory; everything else stays on loopback. Each program has to be resumable after its turn limit,
// after a kill, and in a recreated worktree, with the earlier conversation in the stub's request. A deleted transcript
// has to lead to a fresh conversation.
//
//	go run ./testdata/agents [-only claude,codex] [-run REGEXP] [-scratch DIR] [-version claude=2.1.197] [-acp]
//		[-without namespaces] [-v]
//
// A program that cannot be installed is reported as not tested. The exit status is 1 if a check failed, or if nothing
// could be tested.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx)
	stop()
	os.Exit(code)
}

func run(ctx context.Context) int {
	only := flag.String("only", "", "programs, separated by commas (default: all)")
	checks := flag.String("run", "", "the checks to do, by a regular expression for their names (default: all)")
	scratch := flag.String("scratch", "", "directory for the installed programs (default: a temporary one)")
	versions := flag.String("version", "",
		"versions to install, as name=version, separated by commas (default: latest)")
	byACP := flag.Bool("acp", false, "drive all programs by the Agent Client Protocol, not claude and codex natively")
	flag.StringVar(&sandbox.Without, "without", "", "what the sandbox does without: namespaces, pid")
	verbose := flag.Bool("v", false, "print what the programs say and do")
	flag.Parse()
	chosen, err := regexp.Compile(*checks)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if *scratch == "" {
		dir, err := os.MkdirTemp("", "git-tilth-agents-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		*scratch = dir
	}
	var tested, failed, missing []string
	names := []string{"claude", "codex"}
	if *byACP {
		names = append(names, "gemini", "opencode", "copilot", "qwen")
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return 1
		}
		if *only != "" && !strings.Contains(","+*only+",", ","+name+",") {
			continue
		}
		r, err := newRig(name, *scratch, versionOf(name, *versions), *byACP)
		if err != nil {
			fmt.Printf("%s\n", err)
			missing = append(missing, name)
			continue
		}
		r.verbose, r.chosen, r.ctx = *verbose, chosen, ctx
		if n := r.check(); n > 0 {
			failed = append(failed, fmt.Sprintf("%s %s (%d)", name, r.version, n))
		}
		tested = append(tested, name+" "+r.version)
		r.close()
	}
	fmt.Printf("\ntested: %s\n", list(tested))
	fmt.Printf("NOT TESTED, could not be installed: %s\n", list(missing))
	fmt.Printf("failed: %s\n", list(failed))
	if len(failed) > 0 || len(tested) == 0 {
		return 1
	}
	return 0
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func versionOf(name, versions string) string {
	for _, v := range strings.Split(versions, ",") {
		if n, version, ok := strings.Cut(v, "="); ok && n == name {
			return version
		}
	}
	return "latest"
}
