package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/gitx"
)

// The password of a URL comes from the user's or the repository's credential helpers. A helper that waits is killed.
func TestPassword(t *testing.T) {
	home := t.TempDir()
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_SYSTEM=/dev/null"}
	sh := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = home, environ
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	sh("config", "--global", "credential.helper",
		"!f() { grep -q '^host=known.example' || exit 0; echo username=u; echo password=s3=cret; }; f")
	g := gitx.New(environ, false, nil)
	for url, want := range map[string]string{"https://known.example/v1": "s3=cret", "https://unknown.example/": "", "": "",
		"https://x\nhost=known.example": "", "no url": ""} {
		if got := equip.Password(t.Context(), g, "", url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
	}
	sh("init", "-q", "repo")
	sh("-C", "repo", "config", "credential.helper", "")
	sh("-C", "repo", "config", "--add", "credential.helper", "!sleep 3600;:")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	got := equip.Password(ctx, g, filepath.Join(home, "repo", ".git"), "https://known.example/v1")
	if got != "" || time.Since(start) > time.Minute {
		t.Errorf("got %q after %s", got, time.Since(start))
	}
}
