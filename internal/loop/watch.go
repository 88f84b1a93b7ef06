package loop

import (
	"context"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/urgency"
)

// watchRepo begins to watch the user's repository, before a worker has begun.
func (r *run) watchRepo(ctx context.Context) (err error) {
	if r.watch == nil {
		r.watch, err = r.Git.WatchRepo(ctx, r.Common)
	}
	return err
}

// look puts on record what changed in the user's repository since the last look.
func (r *run) look(ctx context.Context, emit func(record.Event) error) error {
	if r.watch == nil {
		return nil
	}
	changes, all, err := r.watch(ctx)
	r.changed = all
	for _, c := range changes {
		if e := emit(&record.RepoChanged{What: c.What, Before: c.Before, After: c.After}); e != nil {
			return e
		}
	}
	return err
}

// lastLook is the look at the stop, and returns what the whole run changed. What keeps it from looking has ended the
// run already, or will end the next one.
func (r *run) lastLook(ctx context.Context) []gitx.RepoChange {
	_ = r.look(urgency.UntilSecond(ctx), r.Record.Append)
	return r.changed
}
