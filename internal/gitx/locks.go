package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// lockWait is how long a live git process is waited for.
	lockWait = 5 * time.Second
	lockPoll = 20 * time.Millisecond
)

// clearLocks removes lock files below dir that a killed git left behind. Git
// takes a lock by making the file and drops it by renaming or removing it; a
// killed one leaves it for ever, and every later command fails on it. A file
// goes only if no live git process can be its owner; one that has an owner is
// waited for, and is ErrLocked if it stays. common is another directory in
// which an owner may be at work.
func (g *Git) clearLocks(ctx context.Context, common, dir string, names ...string) error {
	for _, name := range names {
		lock := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(lock); err != nil {
			continue
		}
		if g.dry {
			continue
		}
		if err := g.clearLock(ctx, lock, common, dir); err != nil {
			return err
		}
	}
	return nil
}

func (g *Git) clearLock(ctx context.Context, lock string, places ...string) error {
	deadline := time.Now().Add(lockWait)
	for {
		fi, err := os.Lstat(lock)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		owner := g.lockOwner(lock, fi, places)
		if owner == "" {
			if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w: %s", lock, ErrLocked, owner)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
