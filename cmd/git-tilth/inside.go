package main

import (
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// onlyLooks are the commands that may be called from inside a run: they change neither sessions nor the repository.
var onlyLooks = map[string]bool{
	"lint": true, "list": true, "show": true, "log": true, "visualize": true, "export": true, "config": true,
	"verify": true, "demo": true, "review": true, "diff": true, "complete": true, "man": true, "help": true,
}

// notInside refuses a command that changes something when what calls it was started by a run: its worker, a validator,
// a hook. The mark in the environment says so, and where that was dropped the kernel does: a process above this one
// writes a session of this root or of this repository.
func (w *repoContext) notInside() error {
	if !w.p.changes || w.p.dryRun {
		return nil
	}
	id := w.p.getenv(session.MarkVar)
	var err error
	if id == "" {
		id = w.store.RunAbove(proc.Above(), func() (dirs []string) {
			for dir := w.p.dir; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
				dirs = append(dirs, dir)
			}
			if w.inRepo {
				var entries []gitx.WorktreeEntry
				entries, err = w.git.Worktrees(w.p.ctx, w.loc.CommonDir, "")
				for _, e := range entries {
					dirs = append(dirs, filepath.Dir(e.Path))
				}
			}
			return dirs
		})
	}
	if id == "" {
		return err
	}
	return refuse("", "this was called from inside the run of session %s, where git tilth changes nothing", id)
}
