package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// SeedFiles names the seed's commit and what it brought, by the record. commit is "" where the error is that there is
// no such commit.
func (h *Handle) SeedFiles(ctx context.Context) (commit string, files []gitx.FileChange, err error) {
	commit, parent, err := h.seedCommit(ctx)
	if err != nil || parent == "" {
		return commit, nil, err
	}
	files, _, _, err = h.Git.Changes(ctx, h.Common, parent, commit, 0)
	return commit, files, err
}

// seedCommit is the seed's commit and its parent, which is "" where the seed has no commit of its own, but is what the
// branch begins at.
func (h *Handle) seedCommit(ctx context.Context) (commit, parent string, err error) {
	b, err := seedBeginning(h.S)
	if err != nil {
		return "", "", err
	}
	if b.Seed.SHA == b.Base && text.IsObjectID(b.Base) {
		return b.Base, "", nil
	}
	if commit, err = resolveSeed(ctx, h.Git, h.Common, b.Seed.SHA); err != nil || commit == b.Base {
		return commit, "", err
	}
	if parent, err = h.Git.RevParse(ctx, h.Common, commit+"^^{commit}"); err != nil {
		return "", "", err
	}
	return commit, parent, nil
}

// resolveSeed turns the seed's sha as recorded, which may be abbreviated, into the full id of a commit of the
// repository. Any other revision is refused: a name such as HEAD means another commit after each task, and a rewind
// to it would be none.
func resolveSeed(ctx context.Context, g *gitx.Git, common, recorded string) (string, error) {
	if !text.IsSHA(recorded) {
		return "", fmt.Errorf("%q is not the id of a commit", recorded)
	}
	full, err := g.RevParse(ctx, common, recorded+"^{commit}")
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(full, strings.ToLower(recorded)) {
		return "", fmt.Errorf("%s names a ref that leads to %s: %w", recorded, full, gitx.ErrNotFound)
	}
	return full, nil
}

// seedOf is the seed's commit as recorded: of the last seed_committed before anything ran.
func seedOf(s *session.Session) (sha string, err error) {
	b, err := seedBeginning(s)
	if err != nil {
		return "", err
	}
	return b.Seed.SHA, nil
}

// seedBeginning is the beginning of a record, with the seed; without one it is an error.
func seedBeginning(s *session.Session) (*record.State, error) {
	b, err := record.ReadBeginning(s.Path(session.RecordFile))
	if err == nil && b.Seed == nil {
		err = errNoSeed
	}
	return b, err
}

var errNoSeed = errors.New("no seed_committed event in the record")
