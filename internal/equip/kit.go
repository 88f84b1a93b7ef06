// Package equip resolves the settings of a run: agents and models, sandbox and worktree setup. It also checks that
// agents and endpoints answer.
package equip

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync/atomic"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Kit is the environment of a command: the repository and its settings, with the agents, sandbox and worktree setup
// that they name.
type Kit struct {
	Ctx     context.Context
	Dir     string
	Environ []string
	Version string // version of git-tilth, sent to endpoints
	Changes bool   // the command may change something
	Verbose bool
	Warnf   func(format string, args ...any)

	Git    *gitx.Git
	Loc    gitx.Location // zero outside a repository
	Store  session.Store
	Config *config.Config
	Common string // the repository of the settings, or ""
	Redact *record.Redactor

	keys         map[string]string // credentials that did not come from the environment
	asked        map[string]string // answers of git's credential helpers, by URL
	credentials  []string          // git's files with these credentials
	gitFiles     []string          // files that git's settings name
	notedSandbox atomic.Bool       // the note about a missing sandbox or its gaps was printed
	notedSetup   atomic.Bool       // the note about skipped setup was printed
}

// New completes a kit: its programs run in its sandbox.
func New(k *Kit) *Kit {
	k.keys, k.asked = map[string]string{}, map[string]string{}
	k.Git.Sandbox = k.Sandbox
	return k
}

// Set sets the settings of a repository, or of none with "".
func (k *Kit) Set(common string, flags map[string]string, entries []config.Entry) (err error) {
	if common != k.Common {
		clear(k.asked) // the agent's helpers may know another key
	}
	k.Common, k.credentials, k.gitFiles = common, credentialFiles(entries), namedFiles(entries)
	if k.Config, err = config.Load(k.Environ, flags, entries); err != nil {
		return err
	}
	k.Redact = k.redactor()
	return nil
}

// getenv returns a variable of the process's environment.
func (k *Kit) getenv(name string) string { return proc.Getenv(k.Environ, name) }

// Tell prints a line for the user before a session exists.
func (k *Kit) Tell(line string) { k.Warnf("git-tilth: %s\n", line) }

// redactor removes from the record the secrets of the environment and of configured URLs, and the keys known so far.
func (k *Kit) redactor() *record.Redactor {
	return record.NewRedactor(slices.Concat(k.Environ, k.Config.URLs()), k.keys)
}

// FirstCommit returns the command that makes a repository's first commit, of the existing files if there are any.
func (k *Kit) FirstCommit() string {
	if k.Loc.Bare {
		return `git update-ref HEAD "$(git commit-tree -m start "$(git mktree </dev/null)")"`
	}
	files, _ := os.ReadDir(cmp.Or(k.Loc.TopLevel, k.Dir))
	if !slices.ContainsFunc(files, func(d os.DirEntry) bool { return d.Name() != ".git" }) {
		return "git commit --allow-empty -m start"
	}
	return "git add -A && git commit -m start"
}

// Deps returns a session's dependencies.
func (k *Kit) Deps(sink func(record.Line)) held.Deps {
	return held.Deps{
		Git: k.Git, Environ: k.Environ, Now: proc.Now, Redact: k.Redact, Sink: sink,
		Sign: k.Config.Bool("tilth.signCommits"), CommitSubject: k.Config.Text("tilth.commitSubject"),
		BranchForm: k.Config.Text("tilth.branch"), SignOff: k.Config.Bool("tilth.signOff"),
		KeepEmptySeed: k.Config.Text("tilth.seedCommit") == "keep",
		UndoKeep:      int(k.Config.Count("tilth.undoKeep")),
		Setup:         k.setup(),
	}
}
