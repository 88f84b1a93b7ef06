package gitx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ResolveCommit returns the commit that rev means. gitDir is the common directory, or Location.GitDir where the HEAD
// of a linked worktree counts. The error is ErrNoCommit, naming rev.
func (g *Git) ResolveCommit(ctx context.Context, gitDir, rev string) (string, error) {
	if rev == "" {
		return "", fmt.Errorf("an empty revision: %w", ErrNoCommit)
	}
	return g.verify(ctx, inRepo(gitDir), rev+"^{commit}", rev)
}

// TreeOf returns the tree of a commit, or of a tree. The error is ErrNoCommit if the repository does not have it.
func (g *Git) TreeOf(ctx context.Context, common, commit string) (string, error) {
	return g.verify(ctx, inRepo(common), commit+"^{tree}", commit)
}

// TreeFiles lists what a commit holds: files, symlinks and submodules, with slash-separated paths.
func (g *Git) TreeFiles(ctx context.Context, common, commit string) ([]string, error) {
	out, err := g.read(ctx, inRepo(common, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit))
	return fields(out), err
}

func (g *Git) verify(ctx context.Context, c command, rev, name string) (string, error) {
	// A partial clone would ask its remote for what is missing.
	c.more = append(c.more, "GIT_NO_LAZY_FETCH=1")
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
	var e *commandError
	if !errors.As(err, &e) {
		return false
	}
	broken := []string{"not a git repository", "dubious ownership", "bad config", "corrupt", "Permission denied"}
	return slices.ContainsFunc(broken, func(said string) bool {
		return strings.Contains(e.Stderr, said)
	})
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

// looseTip returns the commit that a branch is at if it was written lately: then it is a file, which costs no process
// to read.
func looseTip(common, branch string) (sha string, ok bool) {
	b, err := os.ReadFile(filepath.Join(common, "refs", "heads", filepath.FromSlash(branch)))
	return trimLine(b), err == nil && isObjectID(trimLine(b))
}

// OnlyOn counts the commits that are reachable from the branch and from no other branch, tag or remote branch: what is
// lost with it.
func (g *Git) OnlyOn(ctx context.Context, common, branch string) (int, error) {
	out, err := g.read(ctx, inRepo(common, "rev-list", "--count", "refs/heads/"+branch,
		"--not", "--exclude="+branch, "--branches", "--tags", "--remotes"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// DeleteBranch deletes a branch whatever it holds, and clears what a git that was killed on it has left; deleted is
// false if there is none. Where it is checked out elsewhere git refuses, and the error says where.
func (g *Git) DeleteBranch(ctx context.Context, common, branch string) (deleted bool, err error) {
	if err := g.clearBranchLocks(ctx, common, branch); err != nil {
		return false, err
	}
	// A ref file that a crash left empty is no branch to git, and stays.
	file := filepath.Join(common, "refs", "heads", filepath.FromSlash(branch))
	b, err := os.ReadFile(file)
	if err == nil && !g.dry && !isObjectID(trimLine(b)) && !strings.HasPrefix(string(b), "ref:") {
		deleted = os.Remove(file) == nil
	}
	_, there, err := g.BranchTip(ctx, common, branch)
	if err != nil || !there {
		return deleted, err
	}
	_, err = g.mutate(ctx, inRepo(common, "branch", "--quiet", "-D", "--", branch))
	return err == nil, err
}

// AttachHead puts HEAD back on a branch; files and index stay as they are. What the worktree was in the middle of (a
// rebase, a merge) is forgotten.
func (g *Git) AttachHead(ctx context.Context, wt Worktree, branch string) error {
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	g.plan(wt.Path, made)
	_, err := g.mutate(ctx, g.inWorktree(wt, "symbolic-ref", "-m", reflogHarness+": back on "+branch, "HEAD",
		"refs/heads/"+branch))
	return err
}

// TagRefs returns the tags of a repository as lines for a packed-refs file.
func (g *Git) TagRefs(ctx context.Context, common string) ([]byte, error) {
	return g.read(ctx, inRepo(common, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/"))
}

// FilesAt returns the contents of files of a commit, by their paths; links within
// the commit are followed, and what is not there or no file is left out.
func (g *Git) FilesAt(ctx context.Context, common, commit string, paths []string) (map[string][]byte, error) {
	var in strings.Builder
	for _, p := range paths {
		in.WriteString(commit + ":" + p + "\n")
	}
	c := inRepo(common, "cat-file", "--batch", "--follow-symlinks")
	c.stdin = []byte(in.String())
	out, err := g.read(ctx, c)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, p := range paths {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		words := strings.Fields(string(head))
		if !ok || len(words) == 0 {
			break
		}
		out = rest
		switch words[0] {
		case "dangling", "loop", "notdir", "symlink":
			// The size and then the name of what was not found.
			out = after(out, words[1])
			continue
		}
		if len(words) != 3 || words[2] == "missing" {
			continue
		}
		n := atoi(words[2])
		if n > len(out) {
			break
		}
		if words[1] == "blob" {
			files[p] = out[:n:n]
		}
		out = after(out, words[2])
	}
	return files, nil
}

// after returns what follows an object of a size and its newline.
func after(out []byte, size string) []byte {
	return out[min(atoi(size)+1, len(out)):]
}
