package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
)

// bundleSink puts an accepted bundle in place: all of it, or nothing.
type bundleSink struct {
	w     *repoContext
	h     *lifecycle.Handle
	rules seed.Rules
	undo  func()
}

// Propose implements seed.Sink.
func (s *bundleSink) Propose(ctx context.Context, b *seed.Bundle) ([]seed.Violation, error) {
	tracked := map[string]bool{}
	files, err := s.w.git.TrackedFiles(ctx, s.h.Path())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		tracked[f] = true
	}
	wt, err := s.h.Worktree(ctx)
	if err != nil {
		return nil, err
	}
	ignored, err := s.w.git.CheckIgnored(ctx, wt, slices.Collect(maps.Keys(b.TestFiles)))
	if err != nil {
		ignored = nil // a path that git cannot take breaks a rule that Check knows
	}
	s.rules.Ignored = func(path string) bool { return ignored[path] }
	if vs := seed.Check(b, s.h.Path(), func(path string) bool { return tracked[path] }, s.rules); len(vs) > 0 {
		return vs, nil
	}
	if b.Meta.EndedAt == "" {
		b.Meta.EndedAt = record.FormatTime(s.w.p.now())
	}
	b.Meta.Tokens = s.h.Checkpoint.TokensUsed
	if s.w.p.dryRun {
		for _, path := range slices.Sorted(maps.Keys(b.TestFiles)) {
			fmt.Fprintf(s.w.p.planOut, "would write: %s\n", filepath.Join(s.h.Path(), path))
		}
		return nil, nil
	}
	s.undo, err = seed.Install(b, s.h.Path(), s.h.S)
	return nil, err
}

// abort takes back a bundle whose commit failed.
func (s *bundleSink) abort() {
	if s.undo != nil {
		s.undo()
	}
}
