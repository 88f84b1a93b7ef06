package agent

import (
	"context"
	"errors"
	"time"
)

// Presence says whether a program's own store holds a conversation.
type Presence string

const (
	// Present conversations hold at least one message and can be resumed.
	Present Presence = "present"
	// Empty conversations exist but hold nothing: they can be neither resumed nor started again under their id.
	Empty Presence = "empty"
	// Missing conversations are not there, or belong to another directory.
	Missing Presence = "missing"
	// Unknown means that the store cannot be read; the program's own answer decides.
	Unknown Presence = "unknown"
)

// StoreState is what a program's store says about one conversation.
type StoreState struct {
	Presence Presence
	Why      string // one line, for people
}

// store reads one program's conversations. Each function gets the environment in which the program would run.
type store interface {
	state(ctx context.Context, h *history) StoreState
	newest(ctx context.Context, h *history, since time.Time, except map[string]bool) (id string, err error)
}

// history names the conversation and directory that a store is asked about.
type history struct {
	program *Program
	env     []string
	dir     string // symlinks resolved
	id      string
}

// Stored looks a conversation up in the program's own store. It asks for the conversation as it would be resumed from
// dir.
func (p *Program) Stored(ctx context.Context, env []string, dir, id string) StoreState {
	switch {
	case id == "":
		return StoreState{Missing, "no conversation is stored"}
	case !p.CanResume:
		return StoreState{Missing, p.Name + " cannot resume a conversation"}
	case !p.valid(id):
		return StoreState{Missing, "not an id of " + p.Name}
	case p.store == nil:
		return StoreState{Unknown, "the store of " + p.Name + " is not known; it will say itself"}
	}
	return p.store.state(ctx, &history{program: p, env: env, dir: realPath(dir), id: id})
}

// Discover finds the newest conversation that was begun in exactly dir at or after since. Ids in except, such as those
// of other tasks, are passed over. ok is false when there is none.
func (p *Program) Discover(
	ctx context.Context, env []string, dir string, since time.Time, except ...string,
) (id string, ok bool, err error) {
	if p.store == nil || !p.CanResume {
		return "", false, nil
	}
	skip := make(map[string]bool, len(except))
	for _, e := range except {
		skip[e] = true
	}
	id, err = p.store.newest(ctx, &history{program: p, env: env, dir: realPath(dir)}, since, skip)
	if errors.Is(err, errNoStore) {
		return "", false, nil
	}
	return id, id != "" && err == nil, err
}

// errNoStore says that the program has never stored anything here.
var errNoStore = errors.New("no conversations are stored")
