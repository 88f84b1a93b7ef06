package packages

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"

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

// Only returns the command that sets tilth.setup to value only.
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

// Off returns the command that turns setup off.
func (s SetupSetting) Off() string { return s.Only(NoSetup) }

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
	Env   []string // variables against prompts and against installing git hooks
	Sum   string   // hash of the lock files
}

// LockStep is the command that installs the dependencies of one lock file.
type LockStep struct {
	Command string // a line for sh
	Lock    string // the file
	Missing string // the program that would run it and is not installed; "" where it is
}

// Commands returns the commands that can run.
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
func SetupByLock(dir string, env []string) (s LockSetup) {
	p := Survey(dir, Environment(env, nil), nil, nil)
	sum := sha256.New()
	for _, kind := range project.Kinds {
		var tops []string
		for _, l := range append(kind.Locks, kind.NoLock) {
			for _, dir := range p.DirsOf(l.File) {
				if l, ok := p.Lock(kind, dir); ok && l.Setup != "" {
					tops = append(tops, dir)
				}
			}
		}
		// A package with its own lock file is installed separately, if it has tests.
		apart := slices.DeleteFunc(slices.Clone(tops), func(dir string) bool {
			l, _ := p.Lock(kind, dir)
			return l.File == kind.NoLock.File || !slices.ContainsFunc(Below(p.Files, dir), project.IsTest)
		})
		for _, dir := range slices.Compact(slices.Sorted(slices.Values(append(apart, Outermost(tops)...)))) {
			l, _ := p.Lock(kind, dir)
			step := LockStep{Command: In(dir, l.Setup), Lock: path.Join(dir, l.File)}
			if !Has(l.Program, p.Root, p.Env) {
				step.Missing = l.Program
			}
			s.Steps, s.Env = append(s.Steps, step), append(s.Env, kind.SetupEnv...)
			fmt.Fprintf(sum, "%q %q\n", step.Lock, p.Read(step.Lock))
		}
	}
	s.Sum = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	return s
}
