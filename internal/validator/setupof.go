package validator

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"

	"github.com/git-tilth/git-tilth/internal/project"
)

// NoSetup is the value of tilth.setup by which nothing is installed, whatever a lock file says.
const NoSetup = "none"

// LockSetup is what the lock files of a tree say that is to be installed.
type LockSetup struct {
	Steps []LockStep
	Env   []string // what keeps the programs from asking, and from installing git hooks
	Sum   string   // of the lock files
}

// LockStep is the command that installs what one lock file pins.
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

// SetupByLock reads from a tree what its lock files say is to be installed, each in the topmost directory that has one
// of its kind.
func SetupByLock(at ExecEnv) (s LockSetup) {
	p := survey(at, nil, Tasks{})
	sum := sha256.New()
	for _, kind := range project.Kinds {
		var tops []string
		for _, l := range kind.Locks {
			if l.Setup != "" {
				tops = append(tops, p.tops(l.File)...)
			}
		}
		slices.Sort(tops)
		for _, dir := range slices.Compact(tops) {
			l, ok := p.lock(kind, dir)
			above := slices.ContainsFunc(tops, func(top string) bool { return top != dir && isBelow(dir, top) })
			if !ok || l.Setup == "" || above {
				continue
			}
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

// isBelow reports whether a directory of the tree lies in another one.
func isBelow(dir, top string) bool {
	return top == "." || len(dir) > len(top) && dir[:len(top)+1] == top+"/"
}
