package equip

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// setup returns the setup of a new worktree by tilth.setup and tilth.copy. Without tilth.setup it follows the lock
// files, and only in the sandbox, because an installation runs scripts of all packages.
func (k *Kit) setup() held.Setup {
	s := held.Setup{Copy: k.Config.List("tilth.copy")}
	lines := k.Config.List("tilth.setup")
	s.Setting = packages.SetupSetting{Config: k.gitConfigOf("tilth.setup"), Values: lines}
	if len(lines) > 0 {
		s.Configured = true
		if !slices.Equal(lines, []string{packages.NoSetup}) {
			s.Commands = func(string) []string { return lines }
			s.Run = func(ctx context.Context, dir string, env ...string) error {
				return k.WithSandbox(dir, func(in validator.ExecEnv) error {
					in.Env = append(in.Env, env...)
					return held.RunCommands(ctx, lines, in)
				})
			}
		}
		return s
	}
	s.Commands = func(dir string) []string {
		found := k.setupByLock(dir)
		if lines := found.Commands(); len(lines) > 0 && k.maySetUp(lines) {
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
		found := k.setupByLock(dir)
		return k.WithSandbox(dir, func(in validator.ExecEnv) error {
			in.Env = append(append(in.Env, found.Env...), env...)
			first.CompareAndSwap(nil, &found.Sum)
			if in.Box != nil && found.Sum == *first.Load() { // before any worker could have written the lock files
				box := *in.Box
				box.NoNetwork, in.Box = false, &box
			}
			k.noteSetup(lines)
			return held.RunCommands(ctx, lines, in)
		})
	}
	return s
}

// setupByLock returns the setup commands for the lock files in a directory.
func (k *Kit) setupByLock(dir string) packages.LockSetup {
	return packages.SetupByLock(dir,
		agent.ToolEnv(k.Git.Environ(k.Ctx, dir), k.Config.List("tilth.sandboxEnv")))
}

// maySetUp reports whether detected setup may run, and prints a note once if not.
func (k *Kit) maySetUp(lines []string) bool {
	box, err := k.Sandbox()
	if box != nil || err != nil {
		return err == nil
	}
	if k.Changes && !k.notedSetup.Swap(true) {
		k.Warnf("git-tilth: not run without a sandbox: %s (git config tilth.setup %s runs it)\n",
			strings.Join(lines, "; "), text.ShellQuote(strings.Join(lines, " && ")))
	}
	return false
}

// noteSetup prints the setup commands once, because they may take minutes.
func (k *Kit) noteSetup(lines []string) {
	if !k.notedSetup.Swap(true) {
		k.Warnf("setup: %s (detected; git config tilth.setup %s turns it off)\n", strings.Join(lines, "; "),
			packages.NoSetup)
	}
}

// DetectedSetup returns the setup commands for the user's checkout, for config.
func (k *Kit) DetectedSetup() []string {
	if k.Loc.TopLevel == "" {
		return []string{packages.NoSetup}
	}
	var out []string
	for _, step := range k.setupByLock(k.Loc.TopLevel).Steps {
		line := fmt.Sprintf("%s (%s)", step.Command, step.Lock)
		if step.Missing != "" {
			line += " is not run: " + step.Missing + " is not installed"
		} else if box, err := k.Sandbox(); box == nil && err == nil {
			line += " is not run without a sandbox"
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return []string{packages.NoSetup}
	}
	return out
}

// DetectedValidators returns the validators detected in the user's checkout.
func (k *Kit) DetectedValidators() []string {
	top := k.Loc.TopLevel
	files, err := k.TrackedFiles(top)
	if top == "" || err != nil {
		return []string{"none"}
	}
	var found []string
	err = k.WithSandbox(top, func(in validator.ExecEnv) error {
		for _, v := range validator.Detect(k.Ctx, in, files, validator.Tasks{}) {
			if v.Skip != "" {
				found = append(found, v.Name+" is not run: "+v.Skip)
			} else {
				found = append(found, v.Name+" ("+v.From+")")
			}
		}
		return nil
	})
	if err != nil {
		return []string{"unknown: " + err.Error()}
	}
	if len(found) == 0 {
		found = []string{"none"}
	}
	return found
}

// TrackedFiles lists the files of the index at dir and below, relative to dir.
func (k *Kit) TrackedFiles(dir string) ([]string, error) {
	return k.Git.List(k.Ctx, k.Git.In(dir, "ls-files", "-z", "--cached", "--deduplicate"))
}
