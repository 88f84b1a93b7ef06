package gitx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
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
	c.Vars = append(c.Vars, g.identity(ctx, wt.Path)...)
	c.Vars = append(c.Vars, HarnessCommit+"="+wt.Branch)
	if sign {
		c.Vars = append(c.Vars, g.signing()...)
	}
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
	if err != nil || g.dry {
		return "", err
	}
	sha, _, err = g.Tip(ctx, wt)
	return sha, err
}

// noDialog takes away where a pinentry could show up.
var noDialog = []string{"GPG_TTY=", "DISPLAY=", "WAYLAND_DISPLAY="}

// signing returns the variables of a command that signs.
func (g *Git) signing() []string {
	return append([]string{agentVar + "=" + proc.Getenv(g.env.raw, agentVar)}, noDialog...)
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
	call.Vars = append(call.Vars, g.identity(ctx, wt.Path)...)
	if c.Sign {
		call.Vars = append(call.Vars, g.signing()...)
	}
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

// NewRepository makes a repository in dir, on branch main, with one commit of everything that is there.
func (g *Git) NewRepository(ctx context.Context, dir, message string) error {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--no-verify", "-m", message},
	} {
		c := Command{Dir: dir, Args: args, Vars: []string{g.ceiling(dir)}}
		if args[0] == "commit" {
			c.Vars = append(c.Vars, g.identity(ctx, dir)...)
		}
		if _, err := g.Mutate(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Bench makes trees and commits that no ref names yet: until a branch is moved to one, nothing of the repository has
// changed but for objects that a gc takes away. In a dry run even those are made elsewhere.
type Bench struct {
	git    *Git
	common string
	dir    string   // for scratch indexes
	env    []string // where objects are written
}

// ErrOldGit says that git is too old to merge without a checkout.
var ErrOldGit = errors.New("this needs git 2.38 or newer")

// NewBench is a bench over the repository at common; remove takes its scratch files away.
func (g *Git) NewBench(ctx context.Context, common string) (b *Bench, remove func(), err error) {
	if !g.atLeast(ctx, 2, 38) {
		return nil, nil, ErrOldGit
	}
	dir, remove, err := proc.TempDir("take")
	if err != nil {
		return nil, nil, err
	}
	b = &Bench{git: g, common: common, dir: dir}
	if g.dry {
		b.env = []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(dir, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(common, "objects")}
		err = os.Mkdir(filepath.Join(dir, "objects"), 0o700)
	}
	return b, remove, err
}

func (b *Bench) run(ctx context.Context, stdin string, env []string, args ...string) (string, error) {
	c := InRepo(b.common, args...)
	c.Vars, c.Stdin = append(env, b.env...), []byte(stdin)
	out, err := b.git.Read(ctx, c)
	return strings.TrimSpace(string(out)), err
}

// Without names the tree of a commit without some files.
func (b *Bench) Without(ctx context.Context, commit string, paths []string) (tree string, err error) {
	if len(paths) == 0 {
		return b.git.TreeOf(ctx, b.common, commit)
	}
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(b.dir, "index")}
	if _, err = b.run(ctx, "", index, "read-tree", commit); err == nil {
		_, err = b.run(ctx, strings.Join(paths, "\x00")+"\x00", index, "update-index", "--force-remove", "-z",
			"--stdin")
	}
	if err != nil {
		return "", err
	}
	return b.run(ctx, "", index, "write-tree")
}

// Merge names the tree that two commits make, or the files in which they conflict.
func (b *Bench) Merge(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	out, err := b.run(ctx, "", nil, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z",
		"--end-of-options", ours, theirs)
	list := fields([]byte(out))
	if ExitCode(err) == 1 && len(list) > 1 {
		for i := range list { // git marks a file that a directory is in the way of by whose it is
			list[i], _, _ = strings.Cut(list[i], "~"+ours)
			list[i], _, _ = strings.Cut(list[i], "~"+theirs)
		}
		return "", list[1:], nil
	}
	if err != nil || len(list) == 0 {
		return "", nil, errors.Join(err)
	}
	return list[0], nil, nil
}

// Apply names the tree that the change from one tree to another makes of a third, or the files in which they conflict.
func (b *Bench) Apply(ctx context.Context, from, to, onto string) (tree string, conflicts []string, err error) {
	base, err := b.Commit(ctx, TreeCommit{Tree: from, Message: "base"}, nobody)
	if err != nil {
		return "", nil, err
	}
	ours, err := b.Commit(ctx, TreeCommit{Tree: onto, Parent: base, Message: "ours"}, nobody)
	if err != nil {
		return "", nil, err
	}
	theirs, err := b.Commit(ctx, TreeCommit{Tree: to, Parent: base, Message: "theirs"}, nobody)
	if err != nil {
		return "", nil, err
	}
	return b.Merge(ctx, ours, theirs)
}

// Commit makes a commit; with more parents it is a merge. author is variables that say who wrote it, none for the user.
func (b *Bench) Commit(ctx context.Context, c TreeCommit, author []string, more ...string) (sha string, err error) {
	args := []string{"commit-tree", "-F", "-"}
	if c.Parent != "" {
		args = append(args, "-p", c.Parent)
	}
	for _, p := range more {
		args = append(args, "-p", p)
	}
	env := append(b.git.identity(ctx, b.common), author...)
	if c.Sign {
		args, env = append(args, "-S"), append(env, b.git.signing()...)
	}
	return b.run(ctx, c.Message, env, append(args, c.Tree)...)
}

// Author is the variables that make a commit have the author and date of another one.
func (b *Bench) Author(ctx context.Context, commit string) ([]string, error) {
	out, err := b.run(ctx, "", nil, "rev-list", "--no-commit-header", "--max-count=1", "--date=raw",
		"--format=%an%x00%ae%x00%ad", commit, "--")
	f := strings.Split(out, "\x00")
	if err != nil || len(f) != 3 {
		return nil, errors.Join(err)
	}
	return []string{"GIT_AUTHOR_NAME=" + f[0], "GIT_AUTHOR_EMAIL=" + f[1], "GIT_AUTHOR_DATE=@" + f[2]}, nil
}

// Hooks runs hooks of the repository's that look at a commit before it is made: those without arguments over an index
// of its tree, commit-msg over its message, which it may change. dir is where they run. The error is a
// *HookRefusedError.
func (b *Bench) Hooks(ctx context.Context, dir string, c *TreeCommit, names ...string) error {
	file := filepath.Join(b.dir, "message")
	index := "GIT_INDEX_FILE=" + filepath.Join(b.dir, "hook-index")
	if b.git.dry {
		return nil
	}
	if err := os.WriteFile(file, []byte(c.Message), 0o600); err != nil {
		return err
	}
	if _, err := b.run(ctx, "", []string{index}, "read-tree", c.Tree); err != nil {
		return err
	}
	for _, name := range names {
		call := b.git.inUserDir(dir, "hook", "run", "--ignore-missing", name)
		if name == "commit-msg" {
			call.Args = append(call.Args, "--", file)
		}
		call.Hooks, call.Vars = true, []string{index}
		if out, err := b.git.Mutate(ctx, call); ExitCode(err) > 0 {
			return &HookRefusedError{Output: out}
		} else if err != nil {
			return err
		}
	}
	message, err := os.ReadFile(file)
	c.Message = string(message)
	return err
}

// ErrRefused says that git, or a hook, would not do what it was to do.
var ErrRefused = errors.New("git refuses")

// ClearAdvance removes the locks of an Advance that died. gitDir is that of the checkout, "" for none.
func (g *Git) ClearAdvance(ctx context.Context, common, gitDir, branch string) error {
	places := func() []string { return repoPlaces(common) }
	err := g.ClearLocks(ctx, places, common, "refs/heads/"+branch+".lock")
	if err == nil && gitDir != "" {
		err = g.ClearLocks(ctx, places, gitDir, "index.lock", "HEAD.lock", "ORIG_HEAD.lock")
	}
	return err
}

// Advance moves a branch from one commit to a descendant of it, with the user's hooks. at is where the branch is
// checked out, "" for nowhere: its files follow. With ErrRefused the branch is where it was.
func (g *Git) Advance(ctx context.Context, common, branch, at, from, to, why string) error {
	c := InRepo(common, "update-ref", "-m", why, "refs/heads/"+branch, to, from)
	if at != "" {
		c = g.inUserDir(at, "merge", "--ff-only", "--no-squash", "--commit", "--no-stat", "--quiet", to)
		c.Vars = []string{"GIT_REFLOG_ACTION=" + why}
	}
	c.Hooks = true
	out, err := g.Mutate(ctx, c)
	if ExitCode(err) > 0 {
		return fmt.Errorf("%w: %s", ErrRefused, firstLines(out, errorLines))
	}
	return err
}

// HasChanges reports whether tracked files of the user's checkout at dir have changes, in the index or out of it, or
// what is in the middle of there.
func (g *Git) HasChanges(ctx context.Context, dir string) (bool, error) {
	out, err := g.Read(ctx, g.inUserDir(dir, "status", "--porcelain=v1", "-z", "--untracked-files=no",
		"--ignore-submodules=dirty"))
	return len(out) > 0, err
}
