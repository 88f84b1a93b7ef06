package main

import "github.com/git-tilth/git-tilth/internal/session"

// onlyLooks are the commands that may be called from inside a run: they change neither sessions nor the repository.
var onlyLooks = map[string]bool{
	"lint": true, "list": true, "show": true, "log": true, "visualize": true, "export": true, "config": true,
	"verify": true, "demo": true, "review": true, "diff": true, "complete": true, "man": true, "help": true,
}

// notInside refuses a command that changes something when a run's worker, validator or hook calls it. The mark in the
// environment says so: advice to whoever means well, since the wall keeps the others from it.
func (w *repoContext) notInside() error {
	id := w.p.getenv(session.MarkVar)
	if !w.p.changes || w.p.dryRun || id == "" {
		return nil
	}
	return refuse("", "this was called from inside the run of session %s, where git tilth changes nothing", id)
}
