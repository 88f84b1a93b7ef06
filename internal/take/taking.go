package take

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// A take makes all of its trees and commits first, without a checkout, so that a conflict or a hook changes nothing.
// The state on disk after each step, and the next take's reaction:
//  1. unreferenced objects              makes them again
//  2. taking.json, if the branch is checked out
//  3. files of the checkout, one by one refuses, because only the user knows the author of these changes
//  4. the branch moved, by one command  notes that nothing is left to take
//  5. a line of taken.jsonl             the same
//  6. taking.json removed

const (
	takenFile  = "taken.jsonl" // what was taken into which branch
	takingFile = "taking.json" // there while the checkout of a branch is brought to what is taken
)

// ErrTaking says that another process takes something into a branch of the repository.
var ErrTaking = errors.New("another take into this repository is running")

// execute moves the branch and notes the taken tasks.
func (p Plan) execute(ctx context.Context, d held.Deps) error {
	n := p.Note
	if n.From != n.To {
		if err := p.advance(ctx, d); err != nil {
			return err
		}
	}
	if d.Git.IsDryRun() {
		return nil
	}
	n.TS = record.FormatTime(d.Now())
	line, err := jsonl.Encode(n)
	if err != nil {
		return err
	}
	err = jsonl.AppendOnce(p.S.Path(takenFile), append(line, '\n'), jsonl.IsObject, true)
	return errors.Join(err, os.RemoveAll(p.S.Path(takingFile)))
}

// advance moves the branch, and the files of its checkout with it.
func (p Plan) advance(ctx context.Context, d held.Deps) error {
	n, mark := p.Note, p.S.Path(takingFile)
	if p.place != "" && !d.Git.IsDryRun() {
		// A hook, or a person while one ran, may have gone to another branch, which the merge would move.
		on, err := d.Git.Line(ctx, d.Git.In(p.place, "symbolic-ref", "--quiet", "HEAD"))
		if err != nil || on != "refs/heads/"+n.Onto {
			return errors.Join(err,
				&held.RefusedError{Why: n.Onto + " is not checked out any more; nothing was changed",
					Hint: held.GitLine(p.place, "switch", n.Onto) + " && " + p.again})
		}
		if err := jsonl.WriteFile(mark, record.JSON(taking{n, p.dirty})); err != nil {
			return err
		}
	}
	why := fmt.Sprintf("tilth take: %s of session %s", n.How, p.S.ID)
	c := gitx.InRepo(p.common, "update-ref", "-m", why, "refs/heads/"+n.Onto, n.To, n.From)
	if p.place != "" {
		c = d.Git.In(p.place, "merge", "--ff-only", "--no-squash", "--commit", "--no-stat", "--quiet", n.To)
		c.Vars = []string{"GIT_REFLOG_ACTION=" + why}
	}
	c.Hooks = true // the user's
	_, err := d.Git.Mutate(ctx, c)
	if gitx.ExitCode(err) <= 0 {
		return err
	}
	_, said, _ := strings.Cut(err.Error(), ": ")
	refused := "git refuses: " + said
	if err := p.unchanged(ctx, d); err != nil {
		return err // git refuses in the middle where the disk is full
	}
	if p.cutOff {
		return &held.RefusedError{Why: refused + "; an earlier take into " + n.Onto + " was cut off",
			Hint: p.putAway()}
	}
	return errors.Join(&held.RefusedError{Why: refused + "; nothing was changed",
		Hint: p.again}, os.RemoveAll(mark))
}

// clearLocks removes the locks of an advance that died. gitDir is that of the checkout, "" for none.
func (p Plan) clearLocks(ctx context.Context, g *gitx.Git, gitDir string) error {
	err := g.ClearLocks(ctx, p.common, "", p.common, "refs/heads/"+p.Note.Onto+".lock")
	if err == nil && gitDir != "" {
		err = g.ClearLocks(ctx, p.common, "", gitDir, "index.lock", "HEAD.lock", "ORIG_HEAD.lock")
	}
	return err
}

// putAway returns the command that stashes the files of an interrupted take.
func (p Plan) putAway() string {
	return held.GitLine(p.place, "stash", "-u") + " && " + p.again
}

// taking is the journal of a take while it changes the checkout of a branch.
type taking struct {
	Taken
	Dirty []string `json:"dirty,omitempty"` // what git status had to say before
}

// status returns git status for the tracked files of the checkout.
func (p Plan) status(ctx context.Context, d held.Deps) ([]string, error) {
	if p.place == "" {
		return nil, nil
	}
	return d.Git.List(ctx, d.Git.In(p.place, "status", "--porcelain=v1", "-z", "--untracked-files=no",
		"--ignore-submodules=dirty"))
}

// unchanged refuses a checkout in which a take that was cut off has changed something. What its user had changed before
// is in the way only where it is for git.
func (p Plan) unchanged(ctx context.Context, d held.Deps) error {
	now, err := p.status(ctx, d)
	if err != nil || slices.Equal(now, p.dirty) {
		return err
	}
	return held.Refuse(p.putAway(), "an earlier take into %s was cut off while it changed %s", p.Note.Onto, p.place)
}
