// Command git-tilth runs a coding agent unattended over a list of tasks, in a git worktree of its own. It is a
// git plugin: as long as it is on PATH, it is called as `git tilth`.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// version is set by the Makefile from git; a plain go build leaves it.
var version = "0.1.0-dev"

func main() { os.Exit(Main()) }

// Main runs the command line of this process and returns its exit code.
func Main() int {
	debug.SetGCPercent(400) // what lives of a command are a few MB, which would be looked through many times
	// Who comes back from a file or from git goes on at once, instead of when another leaves one of the few places.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	p := newProcess()
	defer p.stopSignals()
	defer sandbox.Close()
	return p.exitCode(p.run(os.Args))
}
