package gitx

import (
	"context"
	"errors"
	"strings"
)

// CommitOpts are the choices of a commit.
type CommitOpts struct {
	Sign   bool   // with the user's key; a signing program that would ask fails
	Author string // "Name <email>"; "" for the committer
}

// HarnessCommit is the variable by which what a commit hook starts can tell that
// the commit is not the user's. Its value is the branch.
const HarnessCommit = "TILTH_COMMITTING"

// Commit commits the index, empty changes too, with the repository's hooks. It
// returns the new commit, which a hook may have given another tree than the
// index had, and what the hooks printed. The error is a *HookRefusedError when
// a hook refused; HEAD did not move then.
func (g *Git) Commit(ctx context.Context, wt Worktree, msg string, opts CommitOpts) (sha string, hookOutput string, err error) {
	if err := g.prepare(ctx, wt); err != nil {
		return "", "", err
	}
	// commit.template and commit.verbose have no say once a message is given
	// and no editor opens; commit.cleanup would.
	args := []string{"commit", "--quiet", "--allow-empty", "--cleanup=whitespace", "--no-edit", "--file=-"}
	if opts.Author != "" {
		args = append(args, "--author="+opts.Author)
	}
	c := g.inWorktree(wt, append(args, signFlag(opts.Sign))...)
	c.hooks = true
	c.stdin = []byte(msg)
	c.more = append(c.more, g.identity(wt.Path)...)
	c.more = append(c.more, HarnessCommit+"="+wt.Branch)
	if opts.Sign {
		c.more = append(c.more, noDialog...)
	}
	out, err := g.mutate(ctx, c)
	hookOutput = strings.TrimSpace(out.stderr)
	switch {
	case out.skipped:
		return "", "", nil
	case ctx.Err() != nil && err != nil:
		return "", hookOutput, err
	case exitCode(err) == 1:
		// With --allow-empty git has one reason left to exit with 1: a hook. What
		// git itself cannot do ends in 128.
		return "", hookOutput, &HookRefusedError{Output: hookOutput}
	case err != nil:
		return "", hookOutput, err
	}
	sha, err = g.tip(ctx, wt)
	return sha, hookOutput, err
}

// noDialog takes away where a pinentry could show up.
var noDialog = []string{"GPG_TTY=", "DISPLAY=", "WAYLAND_DISPLAY="}

func signFlag(sign bool) string {
	if sign {
		return "--gpg-sign"
	}
	return "--no-gpg-sign"
}

// CommitTree makes a commit of tree on parent without any hook and moves the
// worktree's branch there from parent; it fails if the branch is elsewhere. The
// index and the files stay as they are. reflog is the branch's reflog message.
func (g *Git) CommitTree(ctx context.Context, wt Worktree, tree, parent, msg, reflog string, sign bool) (sha string, err error) {
	return g.CommitTreeOver(ctx, wt, tree, parent, parent, msg, reflog, sign)
}

// CommitTreeOver is CommitTree for a commit that takes the place of tip, the
// commit that the branch is at.
func (g *Git) CommitTreeOver(ctx context.Context, wt Worktree, tree, parent, tip, msg, reflog string, sign bool) (sha string, err error) {
	if wt.Branch == "" {
		return "", errors.New("a commit needs a worktree that was checked against its branch")
	}
	if err := g.prepare(ctx, wt); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-p", parent, "-F", "-"}
	if sign {
		args = append(args, "-S")
	}
	c := g.inWorktree(wt, append(args, tree)...)
	c.stdin = []byte(msg)
	c.more = append(c.more, g.identity(wt.Path)...)
	if sign {
		c.more = append(c.more, noDialog...)
	}
	out, err := g.mutate(ctx, c)
	if err != nil {
		return "", err
	}
	sha = strings.TrimSpace(string(out.stdout))
	if out.skipped {
		sha = "<commit>"
	}
	out, err = g.mutate(ctx, g.inWorktree(wt, "update-ref", "-m", reflog, "refs/heads/"+wt.Branch, sha, tip))
	if err != nil || out.skipped {
		return "", err
	}
	return sha, nil
}
