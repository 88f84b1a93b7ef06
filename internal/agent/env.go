package agent

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// quiet keeps programs from updating themselves in the middle of a run, whichever of them it is.
var quiet = map[string]string{
	"DISABLE_AUTOUPDATER":         "1",
	"OPENCODE_DISABLE_AUTOUPDATE": "1",
	"NO_COLOR":                    "1",
}

// nested are variables by which a program tells the commands that it runs that they are inside of it. When git-tilth is
// itself such a command, they would make the next program refuse to start or take part in its parent's conversation.
var nested = []string{
	"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_CHILD_SESSION",
	"CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI",
	"GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "OPENCODE", "OPENCODE_PID", "OPENCODE_PERMISSION",
}

// ScrubEnv returns environ for a program of somebody else: without the harness's own keys (TILTH_API_KEY and
// TILTH_<ROLE>_API_KEY, and any variable that holds one of secrets unless it is a program's own credential), without
// the marks of an enclosing agent, and with self-updates switched off. The result is sorted and names each variable
// once.
func ScrubEnv(environ []string, secrets ...string) []string {
	own := map[string]bool{}
	for _, p := range Programs() {
		for _, v := range p.KeyVars {
			own[v] = true
		}
	}
	drop := map[string]bool{}
	for _, v := range nested {
		drop[v] = true
	}
	kept := map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || drop[name] || isHarnessKey(name) || (holdsSecret(value, secrets) && !own[name]) {
			continue
		}
		kept[name] = value
	}
	return mergeEnv(kept, quiet)
}

// ToolEnv returns environ for what a run starts beside agent programs, such as shell commands and validators: without any
// key but those in the variables that keep names.
func ToolEnv(environ, keep []string) []string { return withoutKeys(ScrubEnv(environ), keep) }

// Environ returns environ for the program: without any key but its own and those in the variables that keep names. What
// a program needs that the user described is not known.
func (p *Program) Environ(environ, keep []string) []string {
	if p.shellCommands {
		return ScrubEnv(environ)
	}
	return withoutKeys(ScrubEnv(environ), slices.Concat(p.KeyVars, keep))
}

func withoutKeys(environ, keep []string) []string {
	return slices.DeleteFunc(environ, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return gitx.IsKey(name) && !slices.Contains(keep, name)
	})
}

func isHarnessKey(name string) bool {
	return strings.HasPrefix(name, "TILTH_") && strings.HasSuffix(name, "API_KEY")
}

// holdsSecret ignores values too short to be a key: they would match everything.
func holdsSecret(value string, secrets []string) bool {
	for _, s := range secrets {
		if len(s) >= 8 && strings.Contains(value, s) {
			return true
		}
	}
	return false
}

// mergeEnv writes maps as an environment; later maps win.
func mergeEnv(maps ...map[string]string) []string {
	all := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// homeIn returns the home directory that a program run in env would use.
func homeIn(env []string) string {
	if h := proc.Getenv(env, "HOME"); h != "" {
		return h
	}
	h, _ := os.UserHomeDir()
	return h
}

// realPath resolves symlinks as the programs do before they name a directory; a path that is not there is only cleaned.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
