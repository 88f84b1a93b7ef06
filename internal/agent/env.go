package agent

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
)

// quiet keeps programs from updating themselves in the middle of a run, whichever of them it is.
var quiet = []string{"DISABLE_AUTOUPDATER=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "NO_COLOR=1"}

// nested are variables by which a program tells the commands that it runs that they are inside of it. When git-tilth is
// itself such a command, they would make the next program refuse to start or take part in its parent's conversation.
var nested = []string{
	"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT",
	"CLAUDE_CODE_CHILD_SESSION",
	"CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI",
	"GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "OPENCODE", "OPENCODE_PID", "OPENCODE_PERMISSION",
}

// ScrubEnv returns environ for a program of somebody else: without the harness's own keys (TILTH_API_KEY and
// TILTH_<ROLE>_API_KEY), without the marks of an enclosing agent, and with self-updates switched off. The result is
// sorted and names each variable once.
func ScrubEnv(environ []string) []string {
	kept := map[string]string{}
	for _, entry := range slices.Concat(environ, quiet) {
		name, _, ok := strings.Cut(entry, "=")
		ours := strings.HasPrefix(name, "TILTH_") && strings.HasSuffix(name, "API_KEY")
		if ok && name != "" && !slices.Contains(nested, name) && !ours {
			kept[name] = entry
		}
	}
	return slices.Sorted(maps.Values(kept))
}

// marks are the variables of git-tilth's own that what a run starts needs: by them a git-tilth below knows which run it
// is called from and where sessions are, and a run finds what it left behind.
var marks = []string{session.MarkVar, "TILTH_SESSIONS_DIR", proc.Mark}

// ToolEnv returns environ for what a run starts beside agent programs, such as shell commands and validators: without
// any key and any setting of git-tilth but those in the variables that keep names.
func ToolEnv(environ, keep []string) []string { return withoutKeys(ScrubEnv(environ), keep) }

// Environ returns environ for the program: without any key but its own and those in the variables that keep names.
// What a program needs that the user described is not known.
func (p *Program) Environ(environ, keep []string) []string {
	if p.shellCommands {
		return ScrubEnv(environ)
	}
	return withoutKeys(ScrubEnv(environ), slices.Concat(p.keyVars, keep))
}

func withoutKeys(environ, keep []string) []string {
	return slices.DeleteFunc(environ, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		ours := strings.HasPrefix(name, "TILTH_") && !slices.Contains(marks, name)
		return (ours || proc.IsKey(name)) && !slices.Contains(keep, name)
	})
}

// homeIn returns the home directory that a program run in env would use.
func homeIn(env []string) string {
	if h := proc.Getenv(env, "HOME"); h != "" {
		return h
	}
	h, _ := os.UserHomeDir()
	return h
}

// inside returns a Box in which the program may write its own state. A directory of it that is not there yet is made,
// because only what is there can be allowed; a file is not.
func (p *Program) inside(b *sandbox.Box, env []string) *sandbox.Box {
	if b == nil {
		return nil
	}
	var own []string
	for _, at := range p.state {
		path := filepath.Join(homeIn(env), at.inHome)
		if dir := proc.Getenv(env, at.variable); at.variable != "" && dir != "" {
			path = filepath.Join(dir, at.name)
		}
		if filepath.Ext(path) != ".json" {
			_ = os.MkdirAll(path, 0o700) // without it the program says itself what it cannot write
		}
		own = append(own, path)
	}
	return b.With(own...)
}
