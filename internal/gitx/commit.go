package gitx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/text"
)

// ErrUnsigned is the error for a commit that could not be signed.
var ErrUnsigned = errors.New("the commit cannot be signed")

// SaysUnsigned reports whether a refusal's words say that the commit could not be signed.
func SaysUnsigned(words string) bool { return strings.HasPrefix(words, ErrUnsigned.Error()) }

// TrySignature makes a signed commit of a commit's tree, outside of the sandbox like CommitTree, and deletes the
// commit's object.
func (g *Git) TrySignature(ctx context.Context, wt Worktree, commit string) error {
	b, remove, err := newBuilder(g, wt.Common, true)
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithTimeoutCause(ctx, signTime, errSignTime)
	defer cancel()
	_, err = b.Commit(ctx, TreeCommit{Tree: commit + "^{tree}", Message: "a signature, tried", Sign: true})
	if context.Cause(ctx) == errSignTime {
		return errSignTime
	}
	return err
}

// signTime limits a signature, because a signing dialog would wait for ever.
const signTime = 20 * time.Second

var errSignTime = errors.New("no signature within " + signTime.String() + ": the signing program waits for input")

// TreeCommit describes a commit of a tree.
type TreeCommit struct {
	Tree, Parent string
	Others       []string // other parents of a merge
	AuthorOf     string   // commit that gives author and date; "" for the user
	Over         string   // commit at the branch's tip that this commit replaces; "" for Parent
	Message      string
	Reflog       string // message for the branch's reflog
	Sign         bool
}

// CommitTree makes a commit without any hook and moves the worktree's branch to it. It fails if the branch is not at
// the expected commit. The index and the files do not change.
func (g *Git) CommitTree(ctx context.Context, wt Worktree, c TreeCommit) (sha string, err error) {
	if wt.Branch == "" {
		return "", errors.New("a commit needs a worktree that was checked against its branch")
	}
	if err := g.ClearInProgress(ctx, wt); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-p", cmp.Or(c.Parent, "<commit>"), "-F", "-"} // "" if a dry run made no parent
	if c.Sign {
		args = append(args, "-S")
	}
	call := g.InEntry(wt, append(args, cmp.Or(c.Tree, "<tree>"))...) // as for the parent
	call.Stdin = []byte(c.Message)
	if _, err := g.settingsOf(ctx, wt); err != nil {
		return "", err
	}
	call.Vars = append(call.Vars, g.Identity(ctx, wt.Path, c.Sign)...)
	sha, err = g.Mutate(ctx, call)
	if c.Sign && ExitCode(err) > 0 {
		return "", fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	if err != nil {
		return "", err
	}
	_, err = g.Mutate(ctx, g.InEntry(wt, "update-ref", "--no-deref", "-m", c.Reflog, "refs/heads/"+wt.Branch, sha,
		cmp.Or(c.Over, c.Parent)))
	return sha, err
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

// Log returns the commits from tip back along first parents, newest first, except those reachable from exclude (""
// excludes none). It returns at most max commits; 0 is no limit. With words it returns all commits reachable from tip
// that have a line beginning with one of the words.
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
	for _, sha := range strings.Fields(exclude) {
		args = append(args, "^"+sha)
	}
	out, err := g.Read(ctx, InRepo(common, append(args, "--")...))
	return parseCommits(string(out)), err
}

// parseCommits reads records of commitFormat. A newline follows each record.
func parseCommits(out string) (commits []Commit) {
	f := strings.Split(out, "\x00")
	for ; len(f) > commitFields; f = f[commitFields:] {
		commits = append(commits, Commit{
			SHA: strings.TrimPrefix(f[0], "\n"), Tree: f[1], Parents: strings.Fields(f[2]), Subject: f[3],
			Body: strings.TrimRight(f[4], "\n"), Trailers: parseTrailers(f[5]),
		})
	}
	return commits
}

// ReadMessage parses a commit message.
func (g *Git) ReadMessage(ctx context.Context, message string) (Commit, error) {
	subject, body, _ := strings.Cut(strings.TrimSpace(message), "\n\n")
	c := Command{Dir: "/", Args: []string{"interpret-trailers", "--parse"}, Stdin: []byte(message)}
	out, err := g.Read(ctx, c)
	return Commit{
		Subject: strings.Join(strings.Split(subject, "\n"), " "), Body: strings.TrimSpace(body),
		Trailers: parseTrailers(string(out)),
	}, err
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

// WorkerCommits returns the commits that a program with Environ brought onto the branch, by the branch's reflog.
func (g *Git) WorkerCommits(ctx context.Context, common, branch string) (map[string]bool, error) {
	// Only git log prints the reflog's text (%gs); rev-list does not.
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

// RevParse returns the object id of a revision: "<rev>^{commit}" is its commit, "<rev>^{tree}" its tree. gitDir is the
// common directory, or Location.GitDir for the HEAD of a linked worktree. The error is ErrNotFound and names <rev>.
func (g *Git) RevParse(ctx context.Context, gitDir, rev string) (string, error) {
	name := rev
	if peel := strings.LastIndex(rev, "^{"); peel >= 0 {
		name = rev[:peel]
	}
	if name == "" {
		return "", fmt.Errorf("an empty revision: %w", errNoCommit)
	}
	if rev == "HEAD^{commit}" {
		if sha, known := readHead(gitDir); known {
			return sha, nil
		}
	}
	c := InRepo(gitDir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev)
	c.Vars = []string{"GIT_NO_LAZY_FETCH=1"} // a partial clone would fetch missing objects
	sha, err := g.Read(ctx, c)
	// With --quiet a missing name is exit 1 without output. An invalid name may be an error, but an object id may not:
	// for a missing object git prints a message.
	if err != nil && (ExitCode(err) == 1 || ExitCode(err) == 128 && !text.IsObjectID(name) && !isBroken(err)) {
		return "", fmt.Errorf("%s: %w", name, errNoCommit)
	}
	return trimLine(sha), err
}

// isBroken reports whether an error is a fault of the repository rather than an unknown name.
func isBroken(err error) bool {
	broken := []string{"not a git repository", "dubious ownership", "bad config", "corrupt", "Permission denied"}
	return slices.ContainsFunc(broken, func(said string) bool { return strings.Contains(saidBy(err).Stderr, said) })
}

// BranchTip returns the commit at the tip of a branch. ok is false if the branch does not exist.
func (g *Git) BranchTip(ctx context.Context, common, branch string) (sha string, ok bool, err error) {
	ref := "refs/heads/" + branch
	if sha, known := readRef(common, ref); known {
		return sha, sha != "", nil
	}
	// This reads the refs next to it too, but distinguishes a missing ref from a broken repository. The pattern also
	// matches refs below refs/heads/<branch>/.
	refs, err := g.Refs(ctx, common, ref)
	return refs[ref], refs[ref] != "", err
}

// PackedRefs lists a repository's refs that match patterns, or all refs without patterns, in the format of
// packed-refs.
func (g *Git) PackedRefs(ctx context.Context, gitDir string, patterns ...string) ([]byte, error) {
	return g.Read(ctx, InRepo(gitDir, append([]string{"for-each-ref", "--format=%(objectname) %(refname)"},
		patterns...)...))
}

// Refs returns the object ids of these refs.
func (g *Git) Refs(ctx context.Context, gitDir string, patterns ...string) (map[string]string, error) {
	out, err := g.PackedRefs(ctx, gitDir, patterns...)
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = sha
	}
	return refs, err
}

// DeleteBranch deletes a branch, merged or not, and the locks of a killed git on it. deleted is false if the branch
// does not exist. If it is checked out elsewhere, git refuses and the error names the checkout.
func (g *Git) DeleteBranch(ctx context.Context, common, branch string) (deleted bool, err error) {
	if err := g.clearBranchLocks(ctx, common, branch); err != nil {
		return false, err
	}
	// Git ignores a ref file that a crash left empty, and does not delete it.
	file := filepath.Join(common, "refs", "heads", filepath.FromSlash(branch))
	b, err := readFile(file)
	if err == nil && !g.dry && !text.IsObjectID(trimLine(b)) && !strings.HasPrefix(string(b), "ref:") {
		deleted = os.Remove(file) == nil
	}
	_, there, err := g.BranchTip(ctx, common, branch)
	if err != nil || !there {
		return deleted, err
	}
	_, err = g.Mutate(ctx, InRepo(common, "branch", "--quiet", "-D", "--", branch))
	return err == nil, err
}

// AttachHead sets HEAD to a branch again; files and index do not change. It ends an unfinished rebase or merge.
func (g *Git) AttachHead(ctx context.Context, wt Worktree, branch string) error {
	g.plan(wt.Path, made)
	return g.change(ctx, wt, g.InEntry(wt, "symbolic-ref", "-m", reflogHarness+": back on "+branch, "HEAD",
		"refs/heads/"+branch))
}
