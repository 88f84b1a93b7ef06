package gitx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// HarnessCommit is the variable by which what a commit hook starts can tell that the commit is not the user's. Its
// value is the branch.
const HarnessCommit = "TILTH_COMMITTING"

// Commit commits the index, empty changes too, with the repository's hooks, and signed with the user's key if sign is
// set; a signing program that would ask fails. It returns the new commit, which a hook may have given another tree than
// the index had. The error is a *HookRefusedError when a hook refused; HEAD did not move then.
func (g *Git) Commit(ctx context.Context, wt Worktree, msg string, sign bool) (sha string, err error) {
	if err := g.QuitOperations(ctx, wt); err != nil {
		return "", err
	}
	// commit.template and commit.verbose have no say once a message is given and no editor opens; commit.cleanup would.
	args := []string{"commit", "--quiet", "--allow-empty", "--cleanup=whitespace", "--no-edit", "--file=-"}
	if sign {
		args = append(args, "--gpg-sign")
	}
	c := g.InWorktree(wt, args...)
	c.Hooks = true
	c.Stdin = []byte(msg)
	c.Vars = append(append(c.Vars, g.Identity(ctx, wt.Path, sign)...), HarnessCommit+"="+wt.Branch)
	remove, err := g.pinned(ctx, wt, &c, false)
	if err != nil {
		return "", err
	}
	defer remove()
	out, err := g.Mutate(ctx, c)
	if ctx.Err() == nil && ExitCode(err) == 1 {
		// With --allow-empty git has one reason left to exit with 1: a hook. What git itself cannot do ends in 128.
		err = &HookRefusedError{Output: out}
	}
	if errors.Is(err, errHookTime) {
		said := fmt.Sprintf("%s\nThe hooks took longer than %s and were ended.", out, g.hooking)
		err = &HookRefusedError{Output: strings.TrimSpace(said)}
	}
	if err != nil || g.dry {
		return "", err
	}
	sha, _, err = g.Tip(ctx, wt)
	return sha, err
}

// TreeCommit is a commit to make of a tree.
type TreeCommit struct {
	Tree, Parent string
	Over         string // the commit that the branch is at and whose place this one takes; "" for Parent
	Message      string
	Reflog       string // the branch's reflog message
	Sign         bool
}

// CommitTree makes a commit without any hook and moves the worktree's branch there; it fails if the branch is not where
// it is said to be. The index and the files stay as they are.
func (g *Git) CommitTree(ctx context.Context, wt Worktree, c TreeCommit) (sha string, err error) {
	if wt.Branch == "" {
		return "", errors.New("a commit needs a worktree that was checked against its branch")
	}
	if err := g.QuitOperations(ctx, wt); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-p", c.Parent, "-F", "-"}
	if c.Sign {
		args = append(args, "-S")
	}
	call := g.InWorktree(wt, append(args, cmp.Or(c.Tree, "<tree>"))...) // "": a dry run that could make none
	call.Stdin = []byte(c.Message)
	call.Vars = append(call.Vars, g.Identity(ctx, wt.Path, c.Sign)...)
	if sha, err = g.Mutate(ctx, call); err != nil {
		return "", err
	}
	if g.dry {
		sha = "<commit>"
	}
	_, err = g.Mutate(ctx, g.InWorktree(wt, "update-ref", "-m", c.Reflog, "refs/heads/"+wt.Branch, sha,
		cmp.Or(c.Over, c.Parent)))
	if err != nil || g.dry {
		return "", err
	}
	return sha, nil
}

// Commit is one commit of a branch.
type Commit struct {
	SHA, Tree     string
	Parents       []string
	Subject, Body string              // Body includes the trailers
	Trailers      map[string][]string // values by key, in order
}

// commitFormat lists the fields of a Commit, each ended by NUL.
const commitFormat = "%H%x00%T%x00%P%x00%s%x00%b%x00%(trailers:only,unfold)%x00"

const commitFields = 6

// Log returns the commits from tip back along first parents, newest first, without those that exclude reaches (none
// if it is "") and at most max of them (all if it is 0). With words it returns, of all that tip reaches, those with a
// line that begins with one of them.
func (g *Git) Log(
	ctx context.Context, common, tip, exclude string, max int, words ...string,
) ([]Commit, error) {
	args := []string{"rev-list", "--no-commit-header", "--encoding=UTF-8", "--format=" + commitFormat}
	for _, w := range words {
		args = append(args, "--grep=^"+w)
	}
	if len(words) == 0 {
		args = append(args, "--first-parent")
	}
	if max > 0 {
		args = append(args, "--max-count="+strconv.Itoa(max))
	}
	args = append(args, "--end-of-options", tip)
	if exclude != "" {
		args = append(args, "^"+exclude)
	}
	out, err := g.Read(ctx, InRepo(common, append(args, "--")...))
	if err != nil {
		return nil, err
	}
	return parseCommits(string(out)), nil
}

// parseCommits reads records of commitFormat. A newline follows each record.
func parseCommits(out string) []Commit {
	var commits []Commit
	f := strings.Split(out, "\x00")
	for ; len(f) > commitFields; f = f[commitFields:] {
		commits = append(commits, Commit{
			SHA: strings.TrimPrefix(f[0], "\n"), Tree: f[1], Parents: strings.Fields(f[2]), Subject: f[3],
			Body: strings.TrimRight(f[4], "\n"), Trailers: parseTrailers(f[5]),
		})
	}
	return commits
}

func parseTrailers(s string) map[string][]string {
	trailers := map[string][]string{}
	for line := range strings.Lines(s) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			key = strings.TrimSpace(key)
			trailers[key] = append(trailers[key], strings.TrimSpace(value))
		}
	}
	return trailers
}

// WorkerCommits returns the commits that reached the branch through a program that ran with Environ, going by the
// branch's reflog.
func (g *Git) WorkerCommits(ctx context.Context, common, branch string) (map[string]bool, error) {
	// Only git log shows what the reflog says (%gs); rev-list leaves it empty.
	out, err := g.Read(ctx, InRepo(common, "log", "--walk-reflogs", "--no-show-signature", "--no-patch", "--no-color",
		"--format=%H%x00%gs%x00", "refs/heads/"+branch, "--"))
	if err != nil {
		return nil, err
	}
	workers := map[string]bool{}
	f := strings.Split(string(out), "\x00")
	for ; len(f) > 2; f = f[2:] {
		// rebase and cherry-pick append to the action: "tilth-worker (pick): ...".
		if strings.HasPrefix(f[1], reflogWorker) {
			workers[strings.TrimPrefix(f[0], "\n")] = true
		}
	}
	return workers, nil
}
