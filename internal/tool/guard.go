package tool

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// guard inspects commands that are about to run in one worktree. It is a rail, not a wall: it stops what is plainly
// written, and does not try to see through variables or scripts.
type guard struct {
	tops      []string // names of the worktree; the first is where commands start
	protected []string // directories that are the harness's own
	home      string
}

func newGuard(tops, protected, env []string) guard {
	g := guard{tops: tops, home: proc.Getenv(env, "HOME")}
	for _, dir := range protected {
		if dir == "" {
			continue
		}
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		g.protected = append(g.protected, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			g.protected = append(g.protected, real)
		}
	}
	return g
}

// maxNesting is how deep commands in commands are followed. Nobody writes more by hand.
const maxNesting = 12

// maxCommand is the longest command line that is looked at, here documents included. Linux starts no program with a
// longer argument.
const maxCommand = 128<<10 - 1

// maxOpeners is how much of a command line may begin something that can hold commands. The parser takes some 8 KB of
// stack for each of them that is not closed again.
const maxOpeners = 10_000

// openers are what begins something that can hold commands.
var openers = regexp.MustCompile("[({`]|\\b(if|while|until|for|select|case)\\b")

// check gives the reason for which a command is refused, or "".
func (g guard) check(command string) string {
	if len(command) > maxCommand {
		return "the command line is too long; write a file with write_file"
	}
	if len(openers.FindAllStringIndex(command, maxOpeners+1)) > maxOpeners {
		return "the command line nests too much; write a file with write_file"
	}
	if reason := g.mention(command); reason != "" {
		return reason
	}
	left := 16 * maxCommand
	in := inspector{guard: g, cwd: g.tops[0], left: &left}
	return in.script(command)
}

const harnessDir = "the directory above the worktree belongs to the harness; work inside the worktree only"

// mention looks for a protected path anywhere in the text, quoted or not.
func (g guard) mention(text string) string {
	for _, dir := range g.protected {
		for from := 0; ; {
			i := strings.Index(text[from:], dir)
			if i < 0 {
				break
			}
			from += i
			if !g.namesOther(text[from:], dir) {
				return harnessDir
			}
			from += len(dir)
		}
	}
	return ""
}

var nameGoesOn = pattern.New(`^[\w.-]`)

// namesOther reports whether the path at the beginning of text only begins like dir, or is inside the worktree.
func (g guard) namesOther(text, dir string) bool {
	rest := text[len(dir):]
	if nameGoesOn.MatchString(rest) && !strings.HasPrefix(rest, "..") {
		return true
	}
	for _, top := range g.tops {
		rest, ok := strings.CutPrefix(text, top)
		if !ok {
			continue
		}
		if end := strings.IndexAny(rest, " \t\n'\"`;|&<>(),:="); end >= 0 {
			rest = rest[:end]
		}
		if g.inTops(filepath.Clean(top + rest)) {
			return true
		}
	}
	return false
}

func (g guard) inTops(path string) bool {
	for _, top := range g.tops {
		if within(top, path) {
			return true
		}
	}
	return false
}

// isProtected reports whether a cleaned absolute path is the harness's own.
func (g guard) isProtected(path string) bool {
	if g.inTops(path) {
		return false
	}
	for _, dir := range g.protected {
		if within(dir, path) {
			return true
		}
	}
	return false
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// locate turns a word into an absolute path, as far as that can be told without
// running anything. cwd may be empty for a directory that is not known.
func (g guard) locate(word, cwd string) (path string, ok bool) {
	for _, name := range []string{"$HOME", "${HOME}", "~"} {
		rest, found := strings.CutPrefix(word, name)
		if found && (rest == "" || rest[0] == '/') {
			if g.home == "" {
				return "", false
			}
			return filepath.Join(g.home, rest), true
		}
	}
	for _, name := range []string{"$PWD", "${PWD}"} {
		if rest, found := strings.CutPrefix(word, name); found && (rest == "" || rest[0] == '/') {
			word = "." + rest
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
