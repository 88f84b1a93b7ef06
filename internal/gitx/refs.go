package gitx

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
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
	var e *commandError
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

// DeleteBranch deletes a branch whatever it holds. Where it is checked out elsewhere git refuses, and the error says
// where.
func (g *Git) DeleteBranch(ctx context.Context, common, branch string) error {
	if err := g.ClearBranchLocks(ctx, common, branch); err != nil {
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

// RepoState is what of the user's repository a worker could change and a session never does: by name ("refs/heads/main",
// "config", "hooks/pre-commit"), a value that is another one once the thing is. See [Git.RepoState].
type RepoState map[string]string

// RepoChange is a difference between two states; Before or After is "" where there was or is nothing.
type RepoChange struct{ What, Before, After string }

// watchedFiles are the files and directories of a repository that say how git works in it.
var watchedFiles = []string{
	"HEAD", "config", "config.worktree", "shallow", "hooks", "info", "objects/info/alternates", "commondir",
}

// RepoState reads the repository's refs other than those of sessions, replacements among them, with one command; its
// HEAD, config, hooks, info and alternates from their files; and the locks in it that no live git can own. Where git
// cannot read the refs, the rest is returned beside the error.
func (g *Git) RepoState(ctx context.Context, common string) (RepoState, error) {
	state := RepoState{}
	for _, name := range watchedFiles {
		state.addFiles(common, name)
	}
	if err := g.addLeftLocks(state, common); err != nil {
		return state, err
	}
	out, err := g.read(ctx, inRepo(common, "for-each-ref", "--format=%(refname) %(objectname) %(symref)"))
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, sessionRefs) {
			state[name] = value
		}
	}
	return state, err
}

// sessionRefs is where the branches of sessions are.
const sessionRefs = "refs/heads/session/"

// addFiles adds a file, or the files below a directory, by mode and content.
func (s RepoState) addFiles(common, name string) {
	_ = filepath.WalkDir(filepath.Join(common, name), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(common, p)
		if err != nil || relErr != nil || d.IsDir() {
			return nil
		}
		if to, err := os.Readlink(p); err == nil {
			s[rel] = "link to " + to
			if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() {
				return nil
			}
		}
		content, err := os.ReadFile(p)
		fi, statErr := os.Stat(p)
		if err = errors.Join(err, statErr); err != nil {
			s[rel] = "unreadable"
			return nil
		}
		sum := sha256.Sum256(content)
		s[rel] += fmt.Sprintf("%s sha256 %x", fi.Mode().Perm(), sum[:8])
		return nil
	})
}

// addLeftLocks adds the locks of the repository's refs and of its own files that no live git process can own.
func (g *Git) addLeftLocks(s RepoState, common string) error {
	places := sync.OnceValue(func() []string { return repoPlaces(common) })
	add := func(p string) {
		rel, err := filepath.Rel(common, p)
		fi, statErr := os.Lstat(p)
		if err != nil || statErr != nil || strings.HasPrefix(rel, sessionRefs) || g.lockOwner(fi, places()) != "" {
			return
		}
		s[rel] = "a lock that a git which has ended left behind, of " + fi.ModTime().UTC().Format(time.RFC3339)
	}
	own, err := os.ReadDir(common)
	if err != nil {
		return err
	}
	for _, e := range own {
		if strings.HasSuffix(e.Name(), ".lock") {
			add(filepath.Join(common, e.Name()))
		}
	}
	return filepath.WalkDir(filepath.Join(common, "refs"), func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".lock") {
			add(p)
		}
		return nil
	})
}

// Changes lists what is another thing in now than it was, sorted by name.
func (s RepoState) Changes(now RepoState) []RepoChange {
	var changes []RepoChange
	for what, before := range s {
		if now[what] != before {
			changes = append(changes, RepoChange{what, before, now[what]})
		}
	}
	for what, after := range now {
		if _, was := s[what]; !was {
			changes = append(changes, RepoChange{what, "", after})
		}
	}
	slices.SortFunc(changes, func(a, b RepoChange) int { return strings.Compare(a.What, b.What) })
	return changes
}
