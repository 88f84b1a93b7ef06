package judge

import (
	"context"
	"path"
)

// Move reuses a checkout for another worktree, or after its session got a name: dir is its new path. Setup's files
// stay, except a virtual environment, which works only at its original path.
func (p *Checkout) Move(ctx context.Context, dir string, o Options) (*Checkout, error) {
	for _, k := range p.kept {
		for name := range k.stamps {
			if dir != p.Dir && path.Base(name) == "pyvenv.cfg" {
				p.forget()
				break
			}
		}
	}
	n, err := New(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	moved := *p
	moved.Dir, moved.o, moved.settings = n.Dir, n.o, n.settings
	return &moved, nil
}
