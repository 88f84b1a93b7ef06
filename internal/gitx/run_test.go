package gitx

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

func TestHookOutputIsBounded(t *testing.T) {
	w := newWorld(t)
	write(t, w.common, "hooks/pre-commit", "#!/bin/sh\necho first\nyes x | head -c 1000000\necho last\nexit 1\n")
	_, out, err := w.commit(ctx, w.wt(), "x", false)
	if err == nil {
		t.Fatal("it was committed")
	}
	if len(out) > 2*stderrLimit || !strings.HasPrefix(out, "first") ||
		!strings.HasSuffix(out, "last") {
		t.Errorf("%d bytes", len(out))
	}
}

func TestCanceledBeforeTheStart(t *testing.T) {
	w := newWorld(t)
	c, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.git.Reset(c, w.wt(), w.base, true); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, _, _ = w.git.Hooks(ctx, w.wt())
			_, _ = w.git.Version(ctx, 2, 40)
			_ = w.git.Environ(ctx, w.path)
			_, _ = w.git.Discover(ctx, w.path, w.environ)
		})
	}
	wg.Wait()
}

func TestSubcommand(t *testing.T) {
	for want, args := range map[string][]string{
		"commit": {"commit", "-m", "x"}, "worktree": {"--git-dir=/x", "worktree", "add"},
		"add": {"-c", "a=b", "-C", "x", "add"}, "": {"--version"},
	} {
		equal(t, "subcommand", subcommand(args), want)
	}
}

func TestErrorSaysWhatGitSaid(t *testing.T) {
	w := newWorld(t)
	err := w.git.Reset(ctx, w.wt(), "nowhere", false)
	var gitErr *commandError
	if !errors.As(err, &gitErr) || gitErr.ExitCode != 128 ||
		!strings.HasPrefix(err.Error(), "git update-ref: fatal: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	gone := New([]string{"PATH=/nowhere"}, false, nil)
	gone.program = "/nowhere/git"
	_, err = gone.List(ctx, gone.In(w.repo, "ls-files", "-z"))
	if !errors.As(err, &gitErr) || gitErr.ExitCode != -1 || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no git: %v", err)
	}
}

func TestVersion(t *testing.T) {
	w := newWorld(t)
	atLeast := func(major, minor int) bool {
		_, is := w.git.Version(ctx, major, minor)
		return is
	}
	if !atLeast(2, 36) || !atLeast(1, 99) || atLeast(99, 0) {
		t.Errorf("got %q", w.sh(w.home, "version"))
	}
}
