package loop

import (
	"context"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/urgency"
)

// repoWatch is what is known of the user's repository, which a worker can reach.
type repoWatch struct {
	read        func(context.Context) (map[string]string, error) // nil: it is not watched yet
	first, last map[string]string                                // what is there, by name
}

// watchRepo begins to watch the user's repository, before a worker has begun.
func (r *run) watchRepo(ctx context.Context) (err error) {
	if r.watch.read == nil {
		r.watch.read = r.Git.WatchRepo(r.Common)
		r.watch.first, err = r.watch.read(ctx)
		r.watch.last = r.watch.first
	}
	return err
}

// look puts on record what changed in the user's repository since the last look.
func (r *run) look(ctx context.Context, emit func(record.Event) error) error {
	if r.watch.read == nil {
		return nil
	}
	now, err := r.watch.read(ctx)
	changes := repoChanges(r.watch.last, now)
	r.watch.last = now
	for _, c := range changes {
		if e := emit(&c); e != nil {
			return e
		}
	}
	return err
}

// lastLook is the look at the stop, and returns what the whole run changed. What keeps it from looking has ended the
// run already, or will end the next one.
func (r *run) lastLook(ctx context.Context) []record.RepoChanged {
	_ = r.look(urgency.UntilSecond(ctx), r.Record.Append)
	return repoChanges(r.watch.first, r.watch.last)
}

// repoChanges lists what is another thing now than it was, sorted by name.
func repoChanges(was, now map[string]string) (changes []record.RepoChanged) {
	all := map[string]string{}
	maps.Copy(all, was)
	maps.Copy(all, now)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		if was[what] != now[what] {
			changes = append(changes, record.RepoChanged{What: what, Before: was[what], After: now[what]})
		}
	}
	return changes
}
