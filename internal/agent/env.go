package agent

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// quiet prevents programs from updating themselves during a run.
var quiet = []string{"DISABLE_AUTOUPDATER=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "NO_COLOR=1"}

// nested are variables with which a program marks its commands. If git-tilth runs as such a command, the variables
// would make the next program refuse to start, or join its parent's conversation.
var nested = []string{
	"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT",
	"CLAUDE_CODE_CHILD_SESSION",
	"CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI",
	"GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "OPENCODE", "OPENCODE_PID", "OPENCODE_PERMISSION",
}

// ScrubEnv returns environ for an agent program. It removes git-tilth's keys (TILTH_API_KEY and TILTH_<ROLE>_API_KEY)
// and the marks of an enclosing agent, and turns self-updates off. The result is sorted and has each variable once.
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

// proxies are the proxy variables. Their URLs may have a password.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}

// ToolEnv returns environ for programs other than agents, such as shell commands and validators. It removes keys and
// git-tilth's settings, except for the variables in keep. It always removes the lane's number, which would be an
// enclosing run's. CI is true unless the user has set it, because nobody answers a program's questions.
func ToolEnv(environ, keep []string) []string {
	env := slices.DeleteFunc(ScrubEnv(environ), func(entry string) bool { return isDropped(entry, keep) })
	if slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "CI=") }) {
		return env
	}
	return append(env, "CI=true")
}

// Environ returns environ for the program. It removes keys, except for the program's own keys and the variables in
// keep.
func (p *Program) Environ(environ, keep []string) []string {
	return ToolEnv(environ, p.kept(environ, keep))
}

// kept returns the variables that the program gets although they look like keys.
func (p *Program) kept(environ, keep []string) []string {
	return slices.Concat(p.keyVars, p.named(environ), proxies, keep)
}

// Misses returns the command that passes a variable to the program, if the program's failure names a missing variable;
// else "".
func (p *Program) Misses(said string, environ, keep []string) string {
	if name := text.NamedIn(said, Dropped(environ, p.kept(environ, keep))); name != "" {
		return "git config --add tilth.sandboxEnv " + name
	}
	return ""
}

func isDropped(entry string, keep []string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return (proc.IsSetting(entry) || text.HoldsKey(entry)) && (name == session.LaneVar || !slices.Contains(keep, name))
}

// Dropped names the variables of environ that programs of a run do not get, except git-tilth's settings.
func Dropped(environ, keep []string) []string {
	var names []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if isDropped(entry, keep) && !strings.HasPrefix(name, "TILTH_") || name == "GIT_ASKPASS" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxSettings limits how much of a program's settings is read.
const maxSettings = 4 << 20

// named returns the variables for keys that the user's own settings of the program name.
func (p *Program) named(environ []string) (names []string) {
	if p.keyName == nil {
		return nil
	}
	f, err := os.Open(p.keyFile.in(environ))
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxSettings))
	for _, m := range p.keyName().FindAllSubmatch(data, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// in returns the path of a place for a program with the environment env.
func (at place) in(env []string) string {
	if dir := proc.Getenv(env, at.variable); at.variable != "" && dir != "" {
		return filepath.Join(dir, at.name)
	}
	return filepath.Join(homeIn(env), at.inHome)
}

// homeIn returns the home directory of a program with the environment env.
func homeIn(env []string) string {
	if h := proc.Getenv(env, "HOME"); h != "" {
		return h
	}
	h, _ := os.UserHomeDir()
	return h
}
