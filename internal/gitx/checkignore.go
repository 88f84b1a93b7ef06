package gitx

import (
	"context"
	"strings"
)

// CheckIgnored returns those of the paths, relative to the worktree, that git
// would ignore there. The paths need not exist.
func (g *Git) CheckIgnored(ctx context.Context, wt Worktree, paths []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	if len(paths) == 0 {
		return ignored, nil
	}
	c := g.inWorktree(wt, "check-ignore", "-z", "--stdin")
	c.stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	out, err := g.read(ctx, c)
	// Exit code 1 says that none of them is.
	if err != nil && exitCode(err) != 1 {
		return nil, err
	}
	for _, path := range fields(out) {
		ignored[path] = true
	}
	return ignored, nil
}
