package agent

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// guard checks commands before they run in a worktree. It is advice to a well-meaning model: a short list of obvious
// mistakes, each with a reason. The sandbox is the protection.
type guard struct {
	tops      []string // names of the worktree; commands start in the first
	protected []string // git-tilth's own directories
	home      string
}

func newGuard(tops, protected, env []string) guard {
	g := guard{tops: tops, home: proc.Getenv(env, "HOME")}
	for _, dir := range protected {
		if abs, err := filepath.Abs(dir); err == nil && dir != "" {
			g.protected = append(g.protected, abs)
			if real, err := filepath.EvalSymlinks(abs); err == nil {
				g.protected = append(g.protected, real)
			}
		}
	}
	return g
}

// maxCommand is the longest command line that the guard parses, with here documents. Linux starts no program with a
// longer argument.
const maxCommand = 128<<10 - 1

// maxOpeners limits the openings of constructs that can contain commands. The parser uses about 8 KB of stack for each
// unclosed one.
const maxOpeners = 10_000

// openers matches the start of a construct that can contain commands.
var openers = pattern.New("[({`]|\\b(if|while|until|for|select|case)\\b")

// check returns the reason for refusing a command, or "".
func (g guard) check(command string) string {
	if len(command) > maxCommand {
		return "the command line is too long; write a file with write_file"
	}
	if len(openers().FindAllStringIndex(command, maxOpeners+1)) > maxOpeners {
		return "the command line nests too much; write a file with write_file"
	}
	if reason := g.mention(command); reason != "" {
		return reason
	}
	in := inspector{guard: g, cwd: g.tops[0]}
	in.script(command)
	return in.reason
}

const harnessDir = "the directory above the worktree belongs to the harness; work inside the worktree only"

// mention looks for a protected path anywhere in the text, quoted or not.
func (g guard) mention(text string) string {
	for _, top := range g.tops {
		text = strings.ReplaceAll(text, top, ".")
	}
	for _, dir := range g.protected {
		_, rest, found := strings.Cut(text, dir)
		for ; found; _, rest, found = strings.Cut(rest, dir) {
			if !nameGoesOn().MatchString(rest) {
				return harnessDir
			}
		}
	}
	return ""
}

var nameGoesOn = pattern.New(`^[\w.-]`)

// isProtected reports whether a cleaned absolute path belongs to git-tilth.
func (g guard) isProtected(path string) bool { return !inAny(g.tops, path) && inAny(g.protected, path) }

// inAny reports whether path is one of the directories or below one.
func inAny(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	})
}

// locate makes a word an absolute path, as far as possible without running a command. cwd is empty if the directory is
// unknown.
func (g guard) locate(word, cwd string) (path string, ok bool) {
	for name, dir := range map[string]string{
		"$HOME": g.home, "${HOME}": g.home, "~": g.home, "$PWD": cwd, "${PWD}": cwd,
	} {
		if rest, found := strings.CutPrefix(word, name); found && (rest == "" || rest[0] == '/') {
			return filepath.Join(dir, rest), dir != ""
		}
	}
	switch {
	case strings.HasPrefix(word, "/"):
		return filepath.Clean(word), true
	case cwd == "" || strings.HasPrefix(word, "$") || strings.HasPrefix(word, "~"):
		return "", false
	}
	return filepath.Join(cwd, word), true
}

// writesTo returns the reason for refusing a write to a path, or "".
func (g guard) writesTo(word, cwd string) string {
	if p, ok := g.locate(word, cwd); ok && g.isProtected(p) {
		return harnessDir
	}
	return ""
}

// tooMuch reports whether a directory must not be removed recursively: a parent of the worktree or of the home
// directory, or a directory at the root.
func (g guard) tooMuch(word, cwd string) bool {
	dir := strings.TrimRight(word, "*") // an asterisk means the directory's contents
	p, ok := g.locate(dir, cwd)
	if !ok || word == "" || dir != word && inAny(g.tops[:1], p) {
		return false
	}
	return inAny([]string{p}, g.tops[0]) || g.home != "" && inAny([]string{p}, g.home) || strings.Count(p, "/") <= 1
}
