package gitx

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// hookPrefix goes before the name of each of the harness's lifecycle hooks.
const hookPrefix = "tilth-"

// HookResult is how a lifecycle hook ended.
type HookResult struct {
	Ran      bool   // there is such a hook
	ExitCode int    // -1 if it was ended by a signal
	Output   string // both streams, capped
}

// HookExists tells whether the repository has the lifecycle hook tilth-<name>.
// It costs no process once the repository's settings are known.
func (g *Git) HookExists(ctx context.Context, wt Worktree, name string) (bool, error) {
	s, err := g.settingsAt(ctx, wt.Path, g.inWorktree(wt))
	if err != nil {
		return false, err
	}
	dir := s.hooksPath
	if dir == "" {
		dir = filepath.Join(wt.Common, "hooks")
	}
	fi, err := os.Stat(filepath.Join(dir, hookPrefix+name))
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0, nil
}

// RunHook runs the lifecycle hook tilth-<name> through `git hook run`, with env
// ("NAME=value") added to its environment and args as its arguments. input is
// in the file that TILTH_HOOK_INPUT names, and on standard input where git can
// pass it on (from 2.40). A hook that fails is no error: see the result.
func (g *Git) RunHook(ctx context.Context, wt Worktree, name string, input []byte, env []string, args ...string) (HookResult, error) {
	exists, err := g.HookExists(ctx, wt, name)
	if err != nil || !exists {
		return HookResult{}, err
	}
	call := []string{"hook", "run", "--ignore-missing"}
	if len(input) > 0 {
		file, err := tempFile(input)
		if err != nil {
			return HookResult{}, err
		}
		defer os.Remove(file)
		env = with(env, "TILTH_HOOK_INPUT="+file)
		if g.atLeast(ctx, 2, 40) {
			call = append(call, "--to-stdin="+file)
		}
	}
	call = append(append(call, hookPrefix+name, "--"), args...)
	c := g.inWorktree(wt, call...)
	c.hooks = true
	c.more = append(c.more, env...)
	out, err := g.mutate(ctx, c)
	if out.skipped {
		return HookResult{}, nil
	}
	result := HookResult{Ran: true, Output: strings.TrimSpace(out.stderr)}
	if err != nil && ctx.Err() == nil && exitCode(err) > 0 {
		result.ExitCode = exitCode(err)
		return result, nil
	}
	return result, err
}

// tempFile writes data to a new file that only this user may read.
func tempFile(data []byte) (string, error) {
	f, err := os.CreateTemp("", "tilth-hook-"+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), f.Close()
}
