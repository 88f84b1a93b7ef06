package main

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

//go:embed all:demo
var demoFiles embed.FS

func (p *process) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "run the whole thing in a throwaway repository with a scripted model: no key, no network",
		Description: "Everything but the model is real: the repository, the worktree, the commits, the tests and the " +
			"record. The\nscripted model is an HTTP server on loopback. What is left is in a temporary directory, to " +
			"be looked at.",
		Action: func(*cli.Context) error { return p.demo() },
	}
}

// demo makes a small repository and runs git tilth in it as a user would.
func (p *process) demo() error {
	if p.dryRun {
		p.printf("would make a repository in a temporary directory and run git tilth in it\n")
		return nil
	}
	dir, err := os.MkdirTemp("", "git-tilth-demo-")
	if err != nil {
		return fail("", err)
	}
	files, err := fs.Sub(demoFiles, "demo")
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err != nil {
		return fail("", err)
	}
	script, err := demoFiles.ReadFile("demo/script.json")
	if err != nil {
		return fail("", err)
	}
	server, url, err := serveDemoModel(script)
	if err != nil {
		return fail("", err)
	}
	defer server.Close()
	repo := filepath.Join(dir, "repo")
	inside := p.inDemo(dir, repo, url)
	git := inside.git(false)
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"commit", "--quiet", "--no-verify", "-m", "A word counter, still empty"}} {
		c := gitx.Command{Dir: repo, Args: args, Vars: git.Identity(p.ctx, "", false)}
		if _, err := git.Mutate(p.ctx, c); err != nil {
			return fail("", err)
		}
	}
	p.printf("A throwaway repository: %s\n$ git tilth run --from tasks\n\n", repo)
	if err := inside.run([]string{"git-tilth", "run", "--from", filepath.Join(dir, "tasks"), "--yes"}); err != nil {
		return err
	}
	p.printf("\nThe checkout in %s is untouched; the work is on the session's branch. Look at it with\n", repo)
	if _, err := proc.LookPath("git-tilth", "", p.environ); err != nil {
		if self, err := os.Executable(); err == nil {
			p.printf("  export PATH=%s:$PATH\n", text.ShellQuote(filepath.Dir(self)))
		}
	}
	p.printf("  cd %s\n  export TILTH_SESSIONS_DIR=%s\n  git log --graph --all\n  git tilth show\n"+
		"  git tilth visualize --open\n", repo, inside.getenv("TILTH_SESSIONS_DIR"))
	return nil
}

// inDemo is this process as if it had been started in the demo's repository, with nothing of the user's settings.
func (p *process) inDemo(dir, repo, url string) *process {
	inside := &process{ctx: p.ctx, dir: repo, stdin: p.stdin, stdout: p.stdout, stderr: p.stderr, verbose: p.verbose,
		interrupted: p.interrupted}
	inside.environ = []string{
		"PATH=" + p.getenv("PATH"), "HOME=" + dir, "TERM=" + p.getenv("TERM"), "TMPDIR=" + os.TempDir(),
		"LANG=" + p.getenv("LANG"),
		"GIT_CONFIG_NOSYSTEM=1", "TILTH_SESSIONS_DIR=" + filepath.Join(dir, "sessions"),
		"TILTH_BASE_URL=" + url, "TILTH_WORKER_MODEL=scripted-demo",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=tilth.validator", "GIT_CONFIG_VALUE_0=checks=sh checks.sh",
	}
	return inside
}
