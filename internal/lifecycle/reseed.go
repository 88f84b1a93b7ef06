package lifecycle

import (
	"context"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Reseed takes an edited plan over while no work has been done: the seed is committed again on the same parent.
//
// On disk after each step:
//  1. prd.json                  the new plan over the old seed commit, whose tests are the same
//  2. the branch at a new seed  HealSeed finds it
//  3. seed_committed            done
func (h *Handle) Reseed(ctx context.Context, tasks []session.Task, tests int) error {
	ctx = quiet(ctx)
	wt, err := h.Worktree()
	if err != nil {
		return err
	}
	recorded, err := SeedOf(h.S)
	if err != nil {
		return err
	}
	old, err := ResolveSeed(ctx, h.Git, h.Common, recorded)
	if err != nil {
		return err
	}
	tree, err := h.Git.TreeOf(ctx, h.Common, old)
	if err != nil {
		return err
	}
	base, err := h.Git.ResolveCommit(ctx, h.Common, old+"^")
	if err != nil {
		return err
	}
	if err := h.S.SaveTasks(tasks); err != nil {
		return err
	}
	made, err := h.Git.CommitTreeOver(ctx, wt, tree, base, old, SeedMessage(h.S.ID, len(tasks), tests), "tilth: seed", h.Sign)
	if err != nil {
		return err
	}
	return h.noteSeed(made)
}

func (h *Handle) noteSeed(sha string) error {
	if err := h.OpenRecord(); err != nil {
		return err
	}
	return h.Record.Append(&record.SeedCommitted{SHA: sha, Branch: h.S.Branch()})
}

// HealSeed writes down a seed commit whose process died between the commit and the record. The tip of the branch is
// such a commit if it carries this session's trailer and names no task.
func (h *Handle) HealSeed(ctx context.Context) error {
	recorded, err := SeedOf(h.S)
	if (err == nil && h.Checkpoint.Status != session.Prepared) || h.Common == "" || h.Checkpoint.GitCommonDir == "" {
		return nil
	}
	tip, ok, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil || !ok || (recorded != "" && (!isSHA(recorded) || strings.HasPrefix(tip, recorded))) {
		return err
	}
	commits, err := h.Git.Log(ctx, h.Common, tip, "", 1)
	if err != nil || len(commits) == 0 {
		return err
	}
	c := commits[0]
	if one(c.Trailers[TrailerSession]) != h.S.ID || len(c.Trailers[TrailerTask]) > 0 || !strings.HasPrefix(c.Subject, "seed: ") {
		return nil
	}
	if _, err := h.S.Tasks(); err != nil {
		return nil // without its plan it is no seed
	}
	if err := h.noteSeed(tip); err != nil {
		return err
	}
	h.Checkpoint.Status = session.Prepared
	return h.Save()
}
