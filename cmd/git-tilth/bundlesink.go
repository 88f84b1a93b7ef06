package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
)

// bundleSink installs an accepted bundle, completely or not at all.
type bundleSink struct {
	w     *repoContext
	h     *held.Handle
	rules seed.Rules
	undo  func() // removes the installed files; nil if there are none
	// approve shows the plan to the user; nil without a terminal. The error is an *seed.Objection, or seed.ErrEdit.
	approve func(context.Context, *seed.Bundle) error
}

// propose checks a bundle and installs it.
func (s *bundleSink) propose(ctx context.Context, b *seed.Bundle) ([]seed.Violation, error) {
	if err := s.look(ctx, b); err != nil {
		return nil, err
	}
	check := func(b *seed.Bundle) []seed.Violation { return seed.Check(b, s.rules) }
	if vs := check(b); len(vs) > 0 {
		return vs, nil
	}
	if err := s.ask(ctx, b, check); err != nil {
		return nil, err
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
	var err error
	s.undo, err = seed.Install(b, s.h.Path(), s.h.S)
	return nil, err
}

// look reads the worktree's tracked and ignored paths, which the rules need if the bundle has tests.
func (s *bundleSink) look(ctx context.Context, b *seed.Bundle) (err error) {
	s.rules.Root, s.rules.Tracked, s.rules.Ignored = s.h.Path(), nil, nil
	if len(b.TestFiles) == 0 {
		return nil
	}
	if s.rules.Tracked, err = s.w.TrackedFiles(s.h.Path()); err != nil {
		return err
	}
	wt, err := s.h.Worktree(ctx)
	if err != nil {
		return err
	}
	ask := s.w.Git.InWorktree(wt, "check-ignore", "-z", "--stdin")
	for path := range b.TestFiles {
		ask.Stdin = append(ask.Stdin, path+"\x00"...)
	}
	// List fails if no path is ignored, or if git rejects a path. Check has a rule for the second case.
	s.rules.Ignored, _ = s.w.Git.List(ctx, ask)
	return nil
}

// ask lets the user accept the plan, edit it, or object to it.
func (s *bundleSink) ask(ctx context.Context, b *seed.Bundle, check func(*seed.Bundle) []seed.Violation) error {
	for s.approve != nil {
		err := s.approve(ctx, b)
		if !errors.Is(err, seed.ErrEdit) {
			return err
		}
		plan, err := session.FormatTasks(b.Tasks)
		if err != nil {
			return err
		}
		edited, err := s.w.editDraft(s.h, "git tilth prep-feature --continue", plan)
		if err != nil {
			s.w.p.warnf("git-tilth: %s\n", err)
		}
		if err != nil || edited == nil {
			continue
		}
		changed, err := b.WithTasks(edited)
		if err != nil {
			s.w.p.warnf("git-tilth: the edited plan cannot be used: %s\n", err)
		} else if vs := check(changed); len(vs) > 0 {
			s.w.p.warnf("git-tilth: the edited plan cannot be used:\n%s", seed.Explain(vs, 20))
		} else {
			*b = *changed
			if err := os.Remove(draftOf(s.h.S)); err != nil {
				return err
			}
		}
	}
	return nil
}
