package teardown

import (
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// PlacesOf are the directories in which a run of a session has commands run; worktree is the session's own.
func PlacesOf(s *session.Session, worktree string) []string {
	places := []string{worktree, s.Path(session.JudgeDir)}
	for _, task := range lanes.Of(s) {
		places = append(places, lanes.Path(s, task))
	}
	return append(places, lanes.JudgingPlaces(s)...)
}

// EndLeftovers ends what a killed git-tilth has left running in worktrees and where changes are judged: its worker's
// commands, validators and programs that judge, and git with its hooks, which would go on in the middle of what comes
// now, or bring back what is removed. Only the lock's holder may call it. Temporary directories of killed processes go
// too.
func EndLeftovers(paths ...string) {
	var real []string // names without links, which cannot be asked for once a directory is gone
	for _, path := range paths {
		if path == "" {
			continue
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
		}
		real = append(real, path)
	}
	proc.EndStale(real...)
	proc.ClearTemp()
}
