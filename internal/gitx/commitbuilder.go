package gitx

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// CommitBuilder makes trees and commits without a ref. Until a branch moves to one of them, the repository gets only
// unreferenced objects, which gc removes. In a dry run the objects are written elsewhere.
type CommitBuilder struct {
	git  *Git
	repo string
	dir  string   // for scratch indexes
	vars []string // directories for new objects
	anon bool     // its commits have an anonymous author
}

// CommitsIn returns a builder for the repository at repo, for commits that never get onto a branch of the user. vars
// name the directories of its objects.
func CommitsIn(g *Git, repo string, vars []string) *CommitBuilder {
	return &CommitBuilder{git: g, repo: repo, vars: vars, anon: true}
}

// NewCommitBuilder returns a builder for the repository at common; remove deletes its scratch files.
func NewCommitBuilder(g *Git, common string) (b *CommitBuilder, remove func(), err error) {
	return newBuilder(g, common, g.dry)
}

// newBuilder returns a builder. With aside, remove also deletes its objects.
func newBuilder(g *Git, common string, aside bool) (b *CommitBuilder, remove func(), err error) {
	dir, remove, err := proc.TempDir()
	if err != nil {
		return nil, nil, err
	}
	b = &CommitBuilder{git: g, repo: common, dir: dir}
	if aside {
		b.vars = []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(dir, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + Quote(filepath.Join(common, "objects"))}
		err = os.Mkdir(filepath.Join(dir, "objects"), 0o700)
	}
	return b, remove, err
}

// run runs a command that writes only objects and files in the builder's directory.
func (b *CommitBuilder) run(ctx context.Context, stdin string, vars []string, args ...string) (string, error) {
	c := InRepo(b.repo, args...)
	c.Vars, c.Stdin = append(vars, b.vars...), []byte(stdin)
	out, err := b.git.Read(ctx, c)
	return strings.TrimSpace(string(out)), err
}

// Merge is the result of merging two commits.
type Merge struct {
	Tree      string
	Conflicts []string // conflicting files; text files in Tree have markers
	Said      string   // git's messages about conflicts, one per line
	Marker    string   // label of the second commit in the markers
}

// Merge merges two commits into a tree. Git's output is: <tree> NUL, then each file NUL, then NUL, then for each
// message <n> NUL, n paths, its kind and its text, each with a NUL.
func (b *CommitBuilder) Merge(ctx context.Context, ours, theirs string) (Merge, error) {
	out, err := b.run(ctx, "", nil, "merge-tree", "--write-tree", "--name-only", "-z", "--end-of-options", ours, theirs)
	list := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	m := Merge{Tree: list[0], Marker: theirs}
	if ExitCode(err) != 1 || len(list) == 1 {
		return m, err
	}
	end := slices.Index(list, "")
	if end < 0 {
		end = len(list)
	}
	for _, file := range list[1:end] {
		for _, side := range []string{ours, theirs} { // git's name for one of two files that need the same path
			file, _, _ = strings.Cut(file, "~"+side)
		}
		m.Conflicts = append(m.Conflicts, file)
	}
	slices.Sort(m.Conflicts)
	m.Conflicts = slices.Compact(m.Conflicts)
	for said := list[min(end+1, len(list)):]; len(said) > 0; {
		n, err := strconv.Atoi(said[0])
		if err != nil || n < 0 || len(said) < n+3 {
			break // advice on submodules without a file name
		}
		if strings.HasPrefix(said[n+1], "CONFLICT") {
			m.Said += strings.TrimSpace(said[n+2]) + "\n"
		}
		said = said[n+3:]
	}
	return m, nil
}

// Apply applies the change from a commit (without some of its files) to a tree onto a third tree.
func (b *CommitBuilder) Apply(ctx context.Context, from string, without []string, to,
	onto string) (m Merge, err error) {
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(b.dir, "index")}
	if _, err = b.run(ctx, "", index, "read-tree", from); err != nil {
		return m, err
	}
	if len(without) > 0 {
		if _, err = b.run(ctx, strings.Join(without, "\x00")+"\x00", index, "update-index", "--force-remove", "-z",
			"--stdin"); err != nil {
			return m, err
		}
	}
	made := make([]string, 3)
	if from, err = b.run(ctx, "", index, "write-tree"); err != nil {
		return m, err
	}
	sides := *b
	sides.anon = true
	for i, c := range []TreeCommit{{Tree: from}, {Tree: onto}, {Tree: to}} {
		c.Message, c.Parent = "apply", made[0]
		if made[i], err = sides.Commit(ctx, c); err != nil {
			return m, err
		}
	}
	return b.Merge(ctx, made[1], made[2])
}

// WithFilesOf returns the tree of a merge in which the conflicting files are a commit's version.
func (b *CommitBuilder) WithFilesOf(ctx context.Context, m Merge, commit string) (tree string, err error) {
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(b.dir, "index")}
	if _, err = b.run(ctx, "", index, "read-tree", m.Tree); err != nil {
		return "", err
	}
	all, err := b.git.List(ctx, InRepo(b.repo, "ls-tree", "-r", "-z", "--name-only", "--full-tree", m.Tree))
	if err != nil {
		return "", err
	}
	isOf := func(f string) func(string) bool {
		return func(conflict string) bool { return f == conflict || strings.HasPrefix(f, conflict+"~") }
	}
	all = slices.DeleteFunc(all, func(f string) bool { return !slices.ContainsFunc(m.Conflicts, isOf(f)) })
	if _, err = b.run(ctx, strings.Join(append(all, ""), "\x00"), index, "update-index", "--force-remove", "-z",
		"--stdin"); err != nil {
		return "", err
	}
	had, err := b.git.List(ctx, InRepo(b.repo, append([]string{"--literal-pathspecs", "ls-tree", "-z", "--full-tree",
		commit, "--"}, m.Conflicts...)...))
	if err != nil {
		return "", err
	}
	if _, err = b.run(ctx, strings.Join(append(had, ""), "\x00"), index, "update-index", "-z",
		"--index-info"); err != nil {
		return "", err
	}
	return b.run(ctx, "", index, "write-tree")
}

// ApplyChange applies the change between two commits to a third tree and returns the result. It returns "" if the
// change does not apply, in a dry run, and with git before 2.38, which cannot merge trees. A change that the tree
// already has applies again.
func (g *Git) ApplyChange(ctx context.Context, common, from, to, onto string) (tree string, err error) {
	if _, can := g.Version(ctx, 2, 38); g.dry || !can {
		return "", nil
	}
	b, remove, err := NewCommitBuilder(g, common)
	if err != nil {
		return "", err
	}
	defer remove()
	m, err := b.Apply(ctx, from, nil, to+"^{tree}", onto)
	if len(m.Conflicts) > 0 {
		return "", err
	}
	return m.Tree, err
}

// Repeat makes a commit again on another commit, without a ref. It makes none if the merge has conflicts.
func (g *Git) Repeat(ctx context.Context, common string, c Commit, onto, message string, sign bool) (
	sha string, m Merge, err error) {
	b, remove, err := NewCommitBuilder(g, common)
	if err != nil {
		return "", m, err
	}
	defer remove()
	m, err = b.Apply(ctx, c.Parents[0], nil, c.Tree, onto+"^{tree}")
	if err != nil || len(m.Conflicts) > 0 {
		return "", m, err
	}
	sha, err = b.Commit(ctx, TreeCommit{Tree: m.Tree, Parent: onto, Others: c.Parents[1:], AuthorOf: c.SHA,
		Message: strings.TrimSpace(message), Sign: sign})
	return sha, m, err
}

// Commit makes a commit without a ref.
func (b *CommitBuilder) Commit(ctx context.Context, c TreeCommit) (string, error) {
	args := []string{"commit-tree", "-F", "-"}
	for _, p := range append([]string{c.Parent}, c.Others...) {
		if p != "" {
			args = append(args, "-p", p)
		}
	}
	if c.Sign {
		args = append(args, "-S")
	}
	dir := b.repo
	if b.anon {
		dir = ""
	}
	vars := b.git.Identity(ctx, dir, c.Sign)
	if c.AuthorOf != "" {
		out, err := b.run(ctx, "", nil, "rev-list", "--no-commit-header", "--max-count=1", "--date=raw",
			"--format=%an%x00%ae%x00%ad", c.AuthorOf, "--")
		f := strings.Split(out, "\x00")
		if err != nil || len(f) != 3 {
			return "", cmp.Or(err, error(errNoCommit))
		}
		vars = append(vars, "GIT_AUTHOR_NAME="+f[0], "GIT_AUTHOR_EMAIL="+f[1], "GIT_AUTHOR_DATE=@"+f[2])
	}
	return b.run(ctx, c.Message, vars, append(args, c.Tree)...)
}
