package gitx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ResolveCommit returns the commit that rev means. gitDir is the common directory, or Location.GitDir where the HEAD
// of a linked worktree counts. The error is ErrNoCommit, naming rev.
func (g *Git) ResolveCommit(ctx context.Context, gitDir, rev string) (string, error) {
	if rev == "" {
		return "", fmt.Errorf("an empty revision: %w", ErrNoCommit)
	}
	return g.verify(ctx, InRepo(gitDir), rev+"^{commit}", rev)
}

// TreeOf returns the tree of a commit, or of a tree. The error is ErrNoCommit if the repository does not have it.
func (g *Git) TreeOf(ctx context.Context, common, commit string) (string, error) {
	return g.verify(ctx, InRepo(common), commit+"^{tree}", commit)
}

func (g *Git) verify(ctx context.Context, c Command, rev, name string) (string, error) {
	// A partial clone would ask its remote for what is missing.
	c.Vars = append(c.Vars, "GIT_NO_LAZY_FETCH=1")
	c.Args = append(c.Args, "rev-parse", "--verify", "--quiet", "--end-of-options", rev)
	sha, err := g.Read(ctx, c)
	// --quiet: exit 1 without a word. An invalid name may still be a complaint, but never an object id: of one that
	// is not there git says just that.
	if err != nil && (ExitCode(err) == 1 || ExitCode(err) == 128 && !IsObjectID(name) && !isBroken(err)) {
		return "", fmt.Errorf("%s: %w", name, ErrNoCommit)
	}
	return trimLine(sha), err
}

// isBroken tells the errors of the repository itself from those about a name that it does not know.
func isBroken(err error) bool {
	var e *commandError
	broken := []string{"not a git repository", "dubious ownership", "bad config", "corrupt", "Permission denied"}
	return errors.As(err, &e) &&
		slices.ContainsFunc(broken, func(said string) bool { return strings.Contains(e.Stderr, said) })
}

// IsObjectID reports whether s is a full SHA-1 or SHA-256 object id.
func IsObjectID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// BranchTip returns the commit at the tip of a branch; ok is false if there is no such branch.
func (g *Git) BranchTip(ctx context.Context, common, branch string) (sha string, ok bool, err error) {
	ref := "refs/heads/" + branch
	// for-each-ref reads all that lies beside the ref, but only it tells a missing ref from a broken repository.
	if sha, err := g.Line(ctx, InRepo(common, "show-ref", "--verify", "--hash", "--", ref)); err == nil && sha != "" {
		return sha, true, nil
	}
	// The pattern also matches what lies below refs/heads/<branch>/.
	out, err := g.Read(ctx, InRepo(common, "for-each-ref", "--format=%(objectname) %(refname)", ref))
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

// Tip is BranchTip of a worktree's branch. A branch that was written lately is a file, which costs no process to read;
// unlike BranchTip this says nothing about whether git can read the repository.
func (g *Git) Tip(ctx context.Context, wt Worktree) (sha string, ok bool, err error) {
	b, err := readFile(filepath.Join(wt.Common, "refs", "heads", filepath.FromSlash(wt.Branch)))
	if sha := trimLine(b); err == nil && IsObjectID(sha) {
		return sha, true, nil
	}
	return g.BranchTip(ctx, wt.Common, wt.Branch)
}

// DeleteBranch deletes a branch whatever it holds, and clears what a git that was killed on it has left; deleted is
// false if there is none. Where it is checked out elsewhere git refuses, and the error says where.
func (g *Git) DeleteBranch(ctx context.Context, common, branch string) (deleted bool, err error) {
	if err := g.clearBranchLocks(ctx, common, branch); err != nil {
		return false, err
	}
	// A ref file that a crash left empty is no branch to git, and stays.
	file := filepath.Join(common, "refs", "heads", filepath.FromSlash(branch))
	b, err := readFile(file)
	if err == nil && !g.dry && !IsObjectID(trimLine(b)) && !strings.HasPrefix(string(b), "ref:") {
		deleted = os.Remove(file) == nil
	}
	_, there, err := g.BranchTip(ctx, common, branch)
	if err != nil || !there {
		return deleted, err
	}
	_, err = g.Mutate(ctx, InRepo(common, "branch", "--quiet", "-D", "--", branch))
	return err == nil, err
}

// AttachHead puts HEAD back on a branch; files and index stay as they are. What the worktree was in the middle of (a
// rebase, a merge) is forgotten.
func (g *Git) AttachHead(ctx context.Context, wt Worktree, branch string) error {
	if err := g.QuitOperations(ctx, wt); err != nil {
		return err
	}
	g.plan(wt.Path, made)
	_, err := g.Mutate(ctx, g.InWorktree(wt, "symbolic-ref", "-m", reflogHarness+": back on "+branch, "HEAD",
		"refs/heads/"+branch))
	return err
}

// FilesAt returns the contents of files of a commit, by their paths; links within the commit are followed, and what is
// not there or no file is left out. With commit "" the paths are object ids.
func (g *Git) FilesAt(ctx context.Context, common, commit string, paths []string) (map[string][]byte, error) {
	var in strings.Builder
	for _, p := range paths {
		if commit != "" {
			in.WriteString(commit + ":")
		}
		in.WriteString(p + "\n")
	}
	c := InRepo(common, "cat-file", "--batch", "--follow-symlinks")
	c.Stdin = []byte(in.String())
	out, err := g.Read(ctx, c)
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

// IsDirty reports whether the work tree at dir has changes to tracked files, in the index or out of it, or untracked
// files that are not ignored. Build products, which stay untracked from one task to the next, are no one's work. It
// takes no lock and leaves the index as it is, byte for byte.
func (g *Git) IsDirty(ctx context.Context, dir string) (bool, error) {
	c := g.In(dir, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=dirty",
		"--no-renames")
	c.Tree = dir
	out, err := g.Read(ctx, c)
	var s survey
	for _, f := range fields(out) {
		path, untracked := strings.CutPrefix(f, "?? ")
		if untracked {
			s.sortUntracked(dir, path)
		}
		if !untracked || len(s.refused)+len(s.heldBack) > 0 {
			return true, err
		}
	}
	return false, err
}

// DiffersFromIndex reports whether anything in a worktree's files may be otherwise than its index has it: a file
// changed, gone, or new and no build product. A file that StageAll had to leave out counts as new.
func (g *Git) DiffersFromIndex(ctx context.Context, wt Worktree) (bool, error) {
	out, err := g.Read(ctx, g.InWorktree(wt, "ls-files", "-z", "-t", "--modified", "--others", "--exclude-standard",
		"--directory", "--no-empty-directory"))
	if err != nil {
		return false, err
	}
	var s survey
	for _, f := range fields(out) {
		path, untracked := strings.CutPrefix(f, "? ")
		if !untracked {
			return true, nil
		}
		s.sortUntracked(wt.Path, path)
	}
	return len(s.refused)+len(s.heldBack) > 0, nil
}

// Untracked lists what a worktree has that is not tracked and no build product: what is ignored, or what is not. A
// directory of which nothing is tracked, or all is ignored, is one entry, with a slash at its end.
func (g *Git) Untracked(ctx context.Context, wt Worktree, ignored bool) (paths []string, err error) {
	if ignored {
		paths, err = g.ignored(ctx, wt)
	} else {
		paths, err = g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--others", "--exclude-standard", "--directory",
			"--no-empty-directory"))
	}
	return slices.DeleteFunc(paths, namesProduct), err
}

// IgnoredFiles lists the untracked files at dir and below that the ignore rules cover and that match any of the
// patterns, relative to dir. In a pattern, * stays within a path segment and ** does not; a directory stands for what
// is in it.
func (g *Git) IgnoredFiles(ctx context.Context, dir string, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}
	for _, p := range patterns {
		args = append(args, ":(glob)"+p)
	}
	return g.List(ctx, g.In(dir, args...))
}

// ignored lists what the ignore rules keep out of the worktree's tree. A directory of which all is ignored is one
// entry, with a slash at its end.
func (g *Git) ignored(ctx context.Context, wt Worktree) ([]string, error) {
	return g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard",
		"--directory"))
}
