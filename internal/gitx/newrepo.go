package gitx

import "context"

// NewRepository makes a repository in dir, on branch main, with one commit of
// everything that is there.
func (g *Git) NewRepository(ctx context.Context, dir, message string) error {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--no-verify", "-m", message},
	} {
		c := command{dir: dir, args: args, more: []string{g.ceiling(dir)}}
		if args[0] == "commit" {
			c.more = append(c.more, g.identity(dir)...)
		}
		if _, err := g.mutate(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
