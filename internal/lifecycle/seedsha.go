package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// ResolveSeed turns the seed's sha as recorded, which may be abbreviated, into the full id of a commit of the
// repository. Any other revision is refused: a name such as HEAD means another commit after each task, and a rewind
// to it would be none.
func ResolveSeed(ctx context.Context, g *gitx.Git, common, recorded string) (string, error) {
	if !isSHA(recorded) {
		return "", fmt.Errorf("%q is not the id of a commit", recorded)
	}
	full, err := g.ResolveCommit(ctx, common, recorded)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(full, strings.ToLower(recorded)) {
		return "", fmt.Errorf("%s names a ref that leads to %s: %w", recorded, full, gitx.ErrNoCommit)
	}
	return full, nil
}

// isSHA tells a commit's id, full or abbreviated, from any other revision.
func isSHA(s string) bool {
	return len(s) >= 4 && len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// SeedOf is the seed's commit as recorded: of the last seed_committed before anything ran.
func SeedOf(s *session.Session) (sha string, err error) {
	b, err := record.ReadBeginning(s.Path(session.RecordFile))
	if err == nil && b.Seed == nil {
		err = errNoSeed
	}
	if err != nil {
		return "", err
	}
	return b.Seed.SHA, nil
}

var errNoSeed = errors.New("no seed_committed event in the record")
