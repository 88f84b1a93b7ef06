package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestStopWhoeverComesNext: stop ends with the stopped run, even if the next run already holds the session.
func TestStopWhoeverComesNext(t *testing.T) {
	s, err := session.Store{Root: t.TempDir()}.Create("20260601-102030-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := s.Lock(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // or it would be waited for
	w := &repoContext{Kit: &equip.Kit{}, p: &process{ctx: ctx, stdout: &output{file: null}}}
	if err := w.awaitRelease(s, os.Getpid()+1); err != nil {
		t.Error(err)
	}
	if err := w.awaitRelease(s, os.Getpid()); err == nil {
		t.Error("the one that was told to stop has not ended")
	}
}

// TestMarkATaskThatIsGone: the plan was edited between the look at the command's arguments and the session's lock.
func TestMarkATaskThatIsGone(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=x", "-c", "user.email=x@y",
		"commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	p := &process{ctx: t.Context(), dir: repo, stdout: &output{file: os.Stdout}, stderr: os.Stderr, dryRun: true,
		environ: append(os.Environ(), "TILTH_SESSIONS_DIR="+filepath.Join(dir, "sessions"))}
	w, err := p.enter("", nil)
	if err != nil {
		t.Fatal(err)
	}
	base, err := w.Git.RevParse(t.Context(), w.Loc.CommonDir, "HEAD^{commit}")
	if err != nil {
		t.Fatal(err)
	}
	deps := w.Deps(nil)
	deps.Git = p.git(false)
	h, err := lifecycle.Create(t.Context(), deps, lifecycle.New{Store: w.Store, Location: w.Loc, Base: base})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.S.SaveTasks([]session.Task{{ID: "T-001", Title: "x", Status: session.TaskPending}}); err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.CommitSeed(t.Context(), h, 1, 0, record.SessionPrepared{}); err != nil {
		t.Fatal(err)
	}
	h.Close()
	err = w.onTask(h.S, "T-002", "", (*repoContext).markDone)
	if err == nil || !strings.Contains(err.Error(), "has no task T-002") {
		t.Error(err)
	}
}
