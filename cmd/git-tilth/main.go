// Command git-tilth runs a coding agent unattended over a list of tasks, in a separate git worktree. It is a git
// plugin: if it is on PATH, it is called as `git tilth`.
package main

import (
	"os"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// version is set by the Makefile from git; a plain go build does not set it.
var version = "0.1.0-dev"

func main() { os.Exit(Main()) }

// Main runs the command line of this process and returns its exit code.
func Main() int {
	p := newProcess()
	defer p.stopSignals()
	defer sandbox.Close()
	return p.exitCode(p.run(os.Args))
}
