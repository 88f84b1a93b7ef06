package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Head returns the commit that HEAD is at in dir: a worktree or a repository. The error is ErrNoCommit when nothing
// was committed yet.
func (g *Git) Head(ctx context.Context, dir string) (string, error) {
	return g.verify(ctx, g.inUserDir(dir), "HEAD^{commit}", "HEAD")
}

// ResolveCommit returns the commit that rev means. gitDir is the common directory, or Location.GitDir where the HEAD
// of a linked worktree counts. The error is ErrNoCommit, naming rev.
func (g *Git) ResolveCommit(ctx context.Context, gitDir, rev string) (string, error) {
	if rev == "" {
		return "", fmt.Errorf("an empty revision: %w", ErrNoCommit)
	}
	return g.verify(ctx, inRepo(gitDir), rev+"^{commit}", rev)
}

// TreeOf returns the tree of a commit.
func (g *Git) TreeOf(ctx context.Context, common, commit string) (string, error) {
	return g.verify(ctx, inRepo(common), commit+"^{tree}", commit)
}

// TreeFiles lists what a commit holds: files, symlinks and submodules, with slash-separated paths.
func (g *Git) TreeFiles(ctx context.Context, common, commit string) ([]string, error) {
	out, err := g.read(ctx, inRepo(common, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit))
	return fields(out), err
}

func (g *Git) verify(ctx context.Context, c command, rev, name string) (string, error) {
	c.args = append(c.args, "rev-parse", "--verify", "--quiet", "--end-of-options", rev)
	sha, err := g.line(ctx, c)
	// --quiet: exit 1 without a word. An invalid name may still be a complaint, but never an object id: of one that
	// is not there git says just that.
	if err != nil && (exitCode(err) == 1 || exitCode(err) == 128 && !isObjectID(name) && !isBroken(err)) {
		return "", fmt.Errorf("%s: %w", name, ErrNoCommit)
	}
	return sha, err
}

// isBroken tells the errors of the repository itself from those about a name that it does not know.
func isBroken(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return slices.ContainsFunc([]string{"not a git repository", "dubious ownership", "bad config", "corrupt", "Permission denied"}, func(said string) bool {
		return strings.Contains(e.Stderr, said)
	})
}

// ObjectExists reports whether the repository has the object with this full id.
func (g *Git) ObjectExists(ctx context.Context, common, oid string) (bool, error) {
	if !isObjectID(oid) {
		return false, nil
	}
	c := inRepo(common, "cat-file", "-e", oid)
	// A partial clone would ask its remote for what is missing.
	c.more = []string{"GIT_NO_LAZY_FETCH=1"}
	_, err := g.read(ctx, c)
	switch exitCode(err) {
	case 1:
		return false, nil
	case 128:
		if !isBroken(err) {
			return false, nil
		}
	}
	return err == nil, err
}

// isObjectID reports whether s is a full SHA-1 or SHA-256 object id.
func isObjectID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// BranchTip returns the commit at the tip of a branch; ok is false if there is no such branch.
func (g *Git) BranchTip(ctx context.Context, common, branch string) (sha string, ok bool, err error) {
	ref := "refs/heads/" + branch
	// The pattern also matches what lies below refs/heads/<branch>/.
	out, err := g.read(ctx, inRepo(common, "for-each-ref", "--format=%(objectname) %(refname)", ref))
	if err != nil {
		return "", false, err
	}
	for line := range strings.Lines(string(out)) {
		if sha, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return sha, true, nil
		}
	}
	return "", false, nil
}

// Contains reports whether the commit sha is reachable from the branch.
func (g *Git) Contains(ctx context.Context, common, branch, sha string) (bool, error) {
	_, err := g.read(ctx, inRepo(common, "merge-base", "--is-ancestor", sha, "refs/heads/"+branch))
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// DeleteBranch deletes a branch whatever it holds. Where it is checked out elsewhere git refuses, and the error says
// where.
func (g *Git) DeleteBranch(ctx context.Context, common, branch string) error {
	if err := g.clearBranchLocks(ctx, common, branch); err != nil {
		return err
	}
	c := inRepo(common, "branch", "--quiet", "-D", "--", branch)
	_, err := g.mutate(ctx, c)
	// A ref file that a crash left empty is no branch to git, and stays.
	if err != nil && ctx.Err() == nil && removeBrokenRef(common, branch) {
		if _, packed, tipErr := g.BranchTip(ctx, common, branch); tipErr == nil && packed {
			_, err = g.mutate(ctx, c)
			return err
		}
		return nil
	}
	return err
}

// removeBrokenRef removes the file of a branch that holds neither an object id nor the name of another ref.
func removeBrokenRef(common, branch string) bool {
	file := filepath.Join(common, "refs", "heads", filepath.FromSlash(branch))
	b, err := os.ReadFile(file)
	if err != nil || isObjectID(trimLine(b)) || strings.HasPrefix(string(b), "ref:") {
		return false
	}
	return os.Remove(file) == nil
}

// AttachHead puts HEAD back on a branch; files and index stay as they are. What the worktree was in the middle of (a
// rebase, a merge) is forgotten.
func (g *Git) AttachHead(ctx context.Context, wt Worktree, branch string) error {
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	g.plan(wt.Path, made)
	_, err := g.mutate(ctx, g.inWorktree(wt, "symbolic-ref", "-m", reflogHarness+": back on "+branch, "HEAD", "refs/heads/"+branch))
	return err
}

// tip returns the commit that the worktree's branch is at. A ref that was just written is a loose file, which costs
// no process to read.
func (g *Git) tip(ctx context.Context, wt Worktree) (string, error) {
	if branch, err := headBranch(wt); err == nil && branch != "" {
		b, err := os.ReadFile(filepath.Join(wt.Common, "refs", "heads", filepath.FromSlash(branch)))
		if sha := trimLine(b); err == nil && isObjectID(sha) {
			return sha, nil
		}
	}
	return g.verify(ctx, g.inWorktree(wt), "HEAD^{commit}", "HEAD")
}
