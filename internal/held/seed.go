package held

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// SeedFiles returns the recorded commit of the seed and its files. If the commit does not exist, commit is "" and the
// error says so.
func (h *Handle) SeedFiles(ctx context.Context) (commit string, files []gitx.FileChange, err error) {
	commit, parent, err := h.SeedCommit(ctx)
	if err != nil || parent == "" {
		return commit, nil, err
	}
	files, _, _, err = h.Git.Changes(ctx, h.Common, parent, commit, 0)
	return commit, files, err
}

// SeedCommit returns the seed's commit and its parent. The parent is "" if the seed has no commit and is the branch's
// base.
func (h *Handle) SeedCommit(ctx context.Context) (commit, parent string, err error) {
	b, err := withSeed(h.S.State())
	if err != nil {
		return "", "", err
	}
	if b.Seed.SHA == b.Base && text.IsObjectID(b.Base) {
		return b.Base, "", nil
	}
	if commit, err = ResolveSeed(ctx, h.Git, h.Common, b.Seed.SHA); err != nil || commit == b.Base {
		return commit, "", err
	}
	if parent, err = h.Git.RevParse(ctx, h.Common, commit+"^^{commit}"); err != nil {
		return "", "", err
	}
	return commit, parent, nil
}

// SeedOf returns the commit of the recorded seed: the last one before anything ran, or the one on a new base.
func SeedOf(s *session.Session) (sha string, err error) {
	b, err := SeedBeginning(s)
	if err != nil {
		return "", err
	}
	return b.Seed.SHA, nil
}

// Seeded reports whether the seed is recorded. Then it is part of the session, even if later steps fail.
func Seeded(s *session.Session) bool {
	_, err := SeedBeginning(s)
	return err == nil
}

// SeedBeginning returns the state of a record with a seed; without one it is an error.
func SeedBeginning(s *session.Session) (*record.State, error) { return withSeed(s.State()) }

func withSeed(b *record.State, err error) (*record.State, error) {
	switch {
	case err != nil:
	case b.Seed == nil:
		err = ErrNoSeed
	case b.Base == "":
		err = ErrNoBase
	}
	return b, err
}

// WorkedUnseeded is the problem of a session that has Worked without a seed in its record.
const WorkedUnseeded = "the record does not name the seed's commit, but tasks were started"

// Worked reports whether a session without a seed in its record had one, by its status, its task list or a task's
// commit.
func Worked(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint,
	common, tip string) (bool, error) {
	tasks, _ := s.StoredTasks() // an unprepared session has none
	begun := slices.ContainsFunc(tasks, func(t session.Task) bool {
		return t.Status != "" && t.Status != session.TaskPending
	})
	begun = begun || check.Status == session.Prepared || check.Status == session.AllDone
	if begun || tip == "" {
		return begun, nil
	}
	commits, err := g.Log(ctx, common, tip, "", 0, SessionLine(s.ID))
	return slices.ContainsFunc(commits, func(m gitx.Commit) bool {
		sig := SignatureOf(m)
		return sig.Session == s.ID && sig.Task != ""
	}), err
}

// Errors of a record whose beginning is incomplete.
var (
	ErrNoSeed = errors.New("no seed_committed event in the record")
	ErrNoBase = errors.New("the record does not name the commit at which the branch starts")
)

// ResolveSeed turns the recorded id of the seed, which may be abbreviated, into the full id of a commit in the
// repository. It refuses any other revision. A name such as HEAD means another commit after each task, so a rewind to
// it would change nothing.
func ResolveSeed(ctx context.Context, g *gitx.Git, common, recorded string) (string, error) {
	if !text.IsSHA(recorded) {
		return "", fmt.Errorf("%q is not a commit id", recorded)
	}
	full, err := g.RevParse(ctx, common, recorded+"^{commit}")
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(full, strings.ToLower(recorded)) {
		return "", fmt.Errorf("%s is a ref that points to %s: %w", recorded, full, gitx.ErrNotFound)
	}
	return full, nil
}

// CommitsSince lists a branch's commits after the seed, newest first, and the seed itself if it is on its first-parent
// line, else the zero commit. The recorded id of the seed may be abbreviated.
func CommitsSince(
	ctx context.Context, g *gitx.Git, common, tip, seed string,
) (commits []gitx.Commit, at gitx.Commit, err error) {
	// A missing or invalid seed is a fact about the session, not a read error.
	if !text.IsObjectID(seed) {
		if seed, err = ResolveSeed(ctx, g, common, seed); err != nil {
			return nil, at, nil
		}
	}
	commits, err = g.Log(ctx, common, tip, seed+"^@", 0)
	if err != nil {
		if _, unknown := ResolveSeed(ctx, g, common, seed); unknown != nil {
			err = nil
		}
		return nil, at, err
	}
	if n := len(commits) - 1; n >= 0 && commits[n].SHA == seed {
		return commits[:n], commits[n], nil
	}
	return nil, at, nil
}
