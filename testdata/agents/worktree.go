package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// worktree creates a repository with a linked worktree like a session's, and returns the worktree and its git
// directories.
func worktree(home string) (dir string, git [2]string, err error) {
	repo, dir := filepath.Join(home, "repo"), filepath.Join(home, "sessions", "20260101-000000-abcdef", "workspace")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", repo},
		{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m",
			"start"},
		{"-C", repo, "worktree", "add", "-q", "-b", "session", dir},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return "", git, fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return dir, [2]string{filepath.Join(repo, ".git", "worktrees", "workspace"), filepath.Join(repo, ".git")}, nil
}
