package judge

import (
	"context"
	"path"
)

// Move goes on with a place for another worktree, or of a session that has its name since: dir is where it lies now.
// What a setup made is kept, but for a virtual environment, which works in no other place than the one that it was made
// in.
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
