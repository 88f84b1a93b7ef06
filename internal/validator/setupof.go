package validator

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// NoSetup is the value of tilth.setup that turns setup off. It has to be the only one.
const NoSetup = "none"

// SetupSetting is the present state of tilth.setup, for the hints that change it.
type SetupSetting struct {
	Config string // the git config command of the file that sets it
	Values []string
}

// Only returns the command that makes value the only value of tilth.setup.
func (s SetupSetting) Only(value string) string {
	switch {
	case len(s.Values) == 0:
		return "git config tilth.setup " + text.ShellQuote(value)
	case s.Config == "git config":
		return "git config --replace-all tilth.setup " + text.ShellQuote(value)
	}
	// An empty value in the repository clears the values of the user's other files.
	return "git config --replace-all tilth.setup '' && git config --add tilth.setup " + text.ShellQuote(value)
}

// Add returns the command that adds a setup command, or replaces NoSetup by it.
func (s SetupSetting) Add(command string) string {
	if slices.Equal(s.Values, []string{NoSetup}) {
		return s.Only(command)
	}
	return "git config --add tilth.setup " + text.ShellQuote(command)
}

// LockSetup has the setup commands for the lock files of a tree.
type LockSetup struct {
	Steps []LockStep
	Env   []string // what keeps the programs from asking, and from installing git hooks
	Sum   string   // of the lock files
}

// LockStep is the command that installs the dependencies of one lock file.
type LockStep struct {
	Command string // a line for sh
	Lock    string // the file
	Missing string // the program that would run it and is not installed; "" where it is
}

// Commands are those that can be run.
func (s LockSetup) Commands() (lines []string) {
	for _, step := range s.Steps {
		if step.Missing == "" {
			lines = append(lines, step.Command)
		}
	}
	return lines
}

// SetupByLock returns the commands that install the dependencies of a tree's lock files, else of a package.json, each
// in the topmost directory with such a file.
func SetupByLock(at ExecEnv) (s LockSetup) {
	p := survey(at, nil, Tasks{})
	sum := sha256.New()
	for _, kind := range project.Kinds {
		var tops []string
		for _, l := range append(kind.Locks, kind.NoLock) {
			for _, dir := range p.dirsOf(l.File) {
				if l, ok := p.lock(kind, dir); ok && l.Setup != "" {
					tops = append(tops, dir)
				}
			}
		}
		for _, dir := range outermost(tops) {
			l, _ := p.lock(kind, dir)
			step := LockStep{Command: in(dir, l.Setup), Lock: path.Join(dir, l.File)}
			if !has(l.Program, p.root, p.env) {
				step.Missing = l.Program
			}
			s.Steps, s.Env = append(s.Steps, step), append(s.Env, kind.SetupEnv...)
			fmt.Fprintf(sum, "%q %q\n", step.Lock, p.read(step.Lock))
		}
	}
	s.Sum = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	return s
}

// outermost returns those of some directories that lie in no other one of them, sorted.
func outermost(dirs []string) []string {
	dirs = slices.Compact(slices.Sorted(slices.Values(dirs)))
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(top string) bool {
			return top != dir && (top == "." || strings.HasPrefix(dir, top+"/"))
		})
	})
}
