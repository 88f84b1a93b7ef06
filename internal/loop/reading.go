package loop

import (
	"context"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Reading is what git is asked of the commit at which a run begins, one command after the other, while what a resume
// does is written down and the run makes itself ready.
type Reading struct {
	commit  string
	files   func() (map[string]string, error) // filesThatDecide
	project func() (string, error)            // projectOf
}

// ReadAhead begins to read, where a preflight has passed before, no lanes are asked for and no work is kept that comes
// back: then nothing else is asked of git until both are known. Else it is nil.
func ReadAhead(ctx context.Context, h *held.Handle, o Options, commit string) *Reading {
	if o.NoPreflight || o.Lanes > 1 || h.Checkpoint.Preflight == "" || held.Exists(h.S.Path(session.KeptGitDir)) {
		return nil
	}
	n := &Reading{commit: commit, files: sync.OnceValues(func() (map[string]string, error) {
		return filesThatDecide(ctx, h, commit)
	})}
	n.project = sync.OnceValues(func() (string, error) {
		_, _ = n.files() // first
		return projectOf(ctx, h, commit)
	})
	go n.End()
	return n
}

// End waits for git.
func (n *Reading) End() {
	if n != nil {
		_, _ = n.project()
	}
}

// of reports whether a commit is the one that is read.
func (n *Reading) of(commit string) bool { return n != nil && n.commit == commit }

// filesThatDecide are the files of a commit that say which validators a project has and what they need: the mode, kind
// and id of each.
func filesThatDecide(ctx context.Context, h *held.Handle, commit string) (map[string]string, error) {
	entries, err := h.Git.List(ctx, gitx.InRepo(h.Common, "ls-tree", "-r", "-z", "--full-tree", commit))
	files := map[string]string{}
	for _, e := range entries {
		if object, name, _ := strings.Cut(e, "\t"); decides(name) {
			files[name] = object
		}
	}
	return files, err
}

// projectOf is the project's context as a commit has it: what lies ignored or uncommitted in the worktree has no say.
func projectOf(ctx context.Context, h *held.Handle, commit string) (string, error) {
	files, err := h.Git.FilesAt(ctx, h.Common, commit, contextFiles)
	if err != nil {
		return "", err
	}
	return projectContext(func(name string) ([]byte, bool) {
		data, ok := files[name]
		return data, ok
	}), nil
}
