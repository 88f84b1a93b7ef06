package main

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

//go:embed all:demo
var demoFiles embed.FS

func (p *process) demoCommand() *cli.Command {
	return p.declare(traits{wish: "begin", rare: true, looks: true, plans: true}, &cli.Command{
		Name:  "demo",
		Usage: "try git tilth in a throwaway repository: no key, no network",
		Description: "The model is a scripted HTTP server on loopback. Repository, worktree, commits, tests and " +
			"record are real and stay in a temporary directory.",
		Action: func(*cli.Context) error { return p.demo() },
	})
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
	git := p.inDemo(dir, repo, url).git(false)
	sessions := filepath.Join(dir, "sessions")
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"},
		// The repository's config has the settings, so that commands typed there need no environment.
		{"config", "tilth.sessionsDir", sessions}, {"config", "tilth.validator", "checks=sh checks.sh"},
		{"config", "user.name", "Demo"}, {"config", "user.email", "demo@localhost"},
		{"add", "--all"}, {"commit", "--quiet", "--no-verify", "-m", "A word counter, still empty"}} {
		c := gitx.Command{Dir: repo, Args: args, Vars: git.Identity(p.ctx, "", false)}
		if _, err := git.Mutate(p.ctx, c); err != nil {
			return fail("", err)
		}
	}
	p.printf("A throwaway repository: %s\n", repo)
	for _, step := range [][]string{{"run", "--from", "tasks"}, {"review"}, {"take"}} {
		p.printf("\n$ git tilth %s\n\n", strings.Join(step, " "))
		if step[0] == "run" {
			step = []string{"run", "--from", filepath.Join(dir, "tasks"), "--yes"} // a directory next to the repository
		}
		if err := p.inDemo(dir, repo, url).run(append([]string{"git-tilth"}, step...)); err != nil {
			return err
		}
	}
	tilth := "git tilth"
	if _, err := proc.LookPath("git-tilth", "", p.environ); err != nil {
		if self, err := os.Executable(); err == nil {
			tilth = text.ShellQuote(self)
		}
	}
	p.printf("\nYour checkout was untouched until the last command. To look around:\n  cd %s\n"+
		"  git log --stat\n  %s log\n  %s visualize --open\n", text.ShellQuote(repo), tilth, tilth)
	return nil
}

// inDemo returns a process for the demo's repository, without the user's settings.
func (p *process) inDemo(dir, repo, url string) *process {
	inside := &process{ctx: p.ctx, dir: repo, stdin: p.stdin, stdout: p.stdout, stderr: p.stderr, verbose: p.verbose,
		interrupted: p.interrupted}
	inside.environ = []string{
		"PATH=" + p.getenv("PATH"), "HOME=" + dir, "TERM=" + p.getenv("TERM"), "TMPDIR=" + os.TempDir(),
		"LANG=" + p.getenv("LANG"),
		"GIT_CONFIG_NOSYSTEM=1", "TILTH_BASE_URL=" + url, "TILTH_WORKER_MODEL=scripted-demo",
	}
	return inside
}
