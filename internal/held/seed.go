package held

import (
	"context"
	"errors"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// SeedFiles names the seed's commit and what it brought, by the record. commit is "" where the error is that there is
// no such commit.
func (h *Handle) SeedFiles(ctx context.Context) (commit string, files []gitx.FileChange, err error) {
	commit, parent, err := h.SeedCommit(ctx)
	if err != nil || parent == "" {
		return commit, nil, err
	}
	files, _, _, err = h.Git.Changes(ctx, h.Common, parent, commit, 0)
	return commit, files, err
}

// SeedCommit is the seed's commit and its parent, which is "" where the seed has no commit of its own, but is what the
// branch begins at.
func (h *Handle) SeedCommit(ctx context.Context) (commit, parent string, err error) {
	b, err := SeedBeginning(h.S)
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

// SeedOf is the seed's commit as recorded: of the last seed_committed before anything ran.
func SeedOf(s *session.Session) (sha string, err error) {
	b, err := SeedBeginning(s)
	if err != nil {
		return "", err
	}
	return b.Seed.SHA, nil
}

// Seeded reports whether the seed is on record. From then on it is part of the session, whatever fails after it.
func Seeded(s *session.Session) bool {
	_, err := SeedBeginning(s)
	return err == nil
}

// SeedBeginning is the beginning of a record, with the seed; without one it is an error.
func SeedBeginning(s *session.Session) (*record.State, error) {
	b, err := record.ReadBeginning(s.Path(session.RecordFile))
	if err == nil && b.Seed == nil {
		err = ErrNoSeed
	}
	return b, err
}

// ErrNoSeed says that a record has no seed.
var ErrNoSeed = errors.New("no seed_committed event in the record")
