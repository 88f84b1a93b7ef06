package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// setup is what tilth.setup and tilth.copy ask for in a new worktree; where tilth.setup is not set, what its lock files
// say, behind the wall only: what installs runs scripts of everybody whose code is installed.
func (w *repoContext) setup() held.Setup {
	s := held.Setup{Copy: w.config.List("tilth.copy")}
	if lines := w.config.List("tilth.setup"); len(lines) > 0 {
		s.Configured = true
		if !slices.Equal(lines, []string{validator.NoSetup}) {
			s.Commands = func(string) []string { return lines }
			s.Run = func(ctx context.Context, dir string, env ...string) error {
				return w.withSandbox(dir, func(in validator.ExecEnv) error {
					in.Env = append(in.Env, env...)
					return validator.RunSetup(ctx, lines, in)
				})
			}
		}
		return s
	}
	s.Commands = func(dir string) []string {
		found := w.setupByLock(dir)
		if lines := found.Commands(); len(lines) > 0 && w.walled(lines) {
			return lines
		}
		return nil
	}
	var first atomic.Pointer[string]
	s.Run = func(ctx context.Context, dir string, env ...string) error {
		lines := s.Commands(dir)
		if len(lines) == 0 {
			return nil
		}
		found := w.setupByLock(dir)
		return w.withSandbox(dir, func(in validator.ExecEnv) error {
			in.Env = append(append(in.Env, found.Env...), env...)
			first.CompareAndSwap(nil, &found.Sum)
			if in.Box != nil && found.Sum == *first.Load() { // before any worker could have written the lock files
				box := *in.Box
				box.NoNetwork, in.Box = false, &box
			}
			w.noteSetup(lines)
			return validator.RunSetup(ctx, lines, in)
		})
	}
	return s
}

// setupByLock is what the lock files in a directory ask for.
func (w *repoContext) setupByLock(dir string) validator.LockSetup {
	return validator.SetupByLock(validator.ExecEnv{Dir: dir,
		Env: agent.ToolEnv(w.git.Environ(w.p.ctx, dir), w.config.List("tilth.sandboxEnv"))})
}

// walled reports whether what a lock file asks for may be run. Where not, it is said once.
func (w *repoContext) walled(lines []string) bool {
	box, err := w.sandbox()
	if box != nil || err != nil {
		return err == nil
	}
	if w.p.changes && !w.p.notedSetup.Swap(true) {
		w.p.warnf("git-tilth: not run for want of a sandbox: %s (git config tilth.setup %s runs it)\n",
			strings.Join(lines, "; "), text.ShellQuote(strings.Join(lines, " && ")))
	}
	return false
}

// noteSetup says once what is installed: it may take minutes.
func (w *repoContext) noteSetup(lines []string) {
	if !w.p.notedSetup.Swap(true) {
		w.p.warnf("setup: %s (by the lock file; git config tilth.setup %s turns it off)\n", strings.Join(lines, "; "),
			validator.NoSetup)
	}
}

// detectedSetup is what would be run in the user's checkout, for config.
func (w *repoContext) detectedSetup() []string {
	if w.loc.TopLevel == "" {
		return []string{validator.NoSetup}
	}
	var out []string
	for _, step := range w.setupByLock(w.loc.TopLevel).Steps {
		line := fmt.Sprintf("%s (%s)", step.Command, step.Lock)
		if step.Missing != "" {
			line += " is not run: " + step.Missing + " is not installed"
		} else if box, err := w.sandbox(); box == nil && err == nil {
			line += " is not run: there is no sandbox"
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return []string{validator.NoSetup}
	}
	return out
}
