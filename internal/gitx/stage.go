package gitx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/project"
)

// stagePasses limits how often StageAll adds: once, and again if the first pass held back a target directory that is
// not Cargo's.
const stagePasses = 2

// StageAll stages all files that are neither ignored nor build products, and returns the tree's object id. Files that
// base (a commit) tracks stay tracked. leftOut lists the skipped paths that no ignore rule covers, relative to the
// worktree and sorted: build products, repositories in the worktree, unreadable files, and files larger than
// [Git.MaxFileSize].
func (g *Git) StageAll(ctx context.Context, wt Worktree, base string) (tree string, leftOut []string, err error) {
	if g.dry && !absent(wt.Path) { // else skipped commands would have created it
		return g.stagePreview(ctx, wt, base, "")
	}
	if g.in == nil {
		if err := g.ClearInProgress(ctx, wt); err != nil {
			return "", nil, err
		}
		if g.dry {
			for _, args := range [][]string{addAll, {"write-tree"}} {
				_, err = g.Mutate(ctx, g.InWorktree(wt, args...))
			}
			return "", nil, err
		}
		return g.stageIn(ctx, quarantine{wt: wt, objects: filepath.Join(wt.Common, "objects")}, base)
	}
	rules := productRules()
	for range stagePasses {
		var again []string
		leftOut, again, err = g.stageOnce(ctx, wt, base, rules)
		if err != nil {
			return "", nil, err
		}
		if len(again) == 0 {
			break
		}
		rules = productRulesBut(leftOut)
	}
	if tree, err = g.Mutate(ctx, g.InWorktree(wt, "write-tree")); err != nil {
		return "", nil, err
	}
	if g.strict {
		err = g.fsck(ctx, wt, tree)
	}
	return tree, leftOut, err
}

// fsck checks the new objects of a tree, like a server with receive.fsckObjects and fsck --strict. It checks only the
// quarantine's own objects, because faults of older objects are not the change's.
func (g *Git) fsck(ctx context.Context, wt Worktree, tree string) error {
	_, err := g.Read(ctx, g.InWorktree(wt, "fsck", "--strict", "--no-full", "--no-dangling", "--no-reflogs",
		"--no-progress", tree))
	failed, is := errors.AsType[*commandError](err)
	if !is || failed.ExitCode <= 0 {
		return err
	}
	var faults []string
	for line := range strings.Lines(failed.Stderr) {
		// error in <type> <id>: <message>. Other lines are about the repository, such as a missing object.
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "error" || words[1] != "in" {
			continue
		}
		id := strings.TrimSuffix(words[3], ":")
		if len(id) > 2 && !absent(g.in.file(filepath.Join("objects", id[:2], id[2:]))) {
			faults = append(faults, line)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	failed.Stderr = strings.TrimSpace(strings.Join(faults, ""))
	return failed
}

// stageIn is StageAll in a quarantine.
func (g *Git) stageIn(ctx context.Context, q quarantine, base string) (tree string, leftOut []string, err error) {
	err = g.orAsTheyLie(ctx, func(g *Git) error {
		q := q // a copy for each try
		return g.quarantinedIn(ctx, &q, func(in *Git) (err error) {
			tree, leftOut, err = in.StageAll(ctx, q.wt, base)
			return err
		})
	})
	return tree, leftOut, err
}

// Strict returns a Git that fails if it cannot stage or check out a worktree's files as .gitattributes says: a
// required filter fails, or a file does not have the named encoding. Without Strict such files are staged without
// conversion, because sessions and resumes must not depend on a worker's files.
func (g *Git) Strict() *Git {
	copied := *g
	copied.strict = true
	return &copied
}

// orAsTheyLie calls a function. If git fails on the files of a worktree, it calls the function again without any
// conversion.
func (g *Git) orAsTheyLie(ctx context.Context, do func(g *Git) error) error {
	err := do(g)
	if _, is := SaidOfTree(err); is && !g.strict && !g.raw && ctx.Err() == nil {
		raw := *g
		raw.raw = true
		return do(&raw)
	}
	return err
}

// addAll adds all files. An unreadable file, or a repository without a commit, must not prevent the others.
var addAll = []string{"add", "--all", "--sparse", "--ignore-errors"}

// stageOnce adds files under the given rules and removes build products and repositories from the index. again lists
// paths that the rules left out wrongly.
func (g *Git) stageOnce(ctx context.Context, wt Worktree, base, rules string) (leftOut, again []string, err error) {
	nested, err := g.nestedRepositories(ctx, wt)
	if err != nil {
		return nil, nil, err
	}
	restore, err := g.in.addRules(rules)
	if err != nil {
		return nil, nil, err
	}
	large, addErr := g.add(ctx, wt, g.InWorktree(wt, addAll...), nested)
	if err := restore(); err != nil || addErr != nil && ExitCode(addErr) != 1 {
		return nil, nil, cmp.Or(addErr, err)
	}
	if len(nested) > 0 {
		c := g.InWorktree(wt, "update-index", "--add", "--remove", "-z", "--stdin")
		if _, err := g.Mutate(ctx, c.with(nested)); err != nil {
			return nil, nil, err
		}
	}
	found, err := g.survey(ctx, wt)
	if err != nil {
		return nil, nil, err
	}
	if len(found.assumed)+len(found.skipped) > 0 {
		if err := g.showHidden(ctx, wt, found); err != nil {
			return nil, nil, err
		}
		return g.stageOnce(ctx, wt, base, rules)
	}
	taken, err := g.takeOut(ctx, wt, base, found.suspects)
	if err != nil {
		return nil, nil, err
	}
	// Files that could not be added are still untracked, and are reported. Without such files a tracked file could not
	// be read, and its old content must not pass as new.
	if addErr != nil && len(found.refused) == 0 {
		return nil, nil, addErr
	}
	leftOut = slices.Concat(found.products, found.refused, found.closed, taken, large)
	slices.Sort(leftOut)
	return slices.Compact(leftOut), found.heldBack, nil
}

// nestedRepositories returns the submodules in the index that are repositories in the worktree. git add would run git
// status in each with the submodule's config, which may name a worker's filters, so only the commit is staged. The
// index's bytes show whether it has a submodule, without a process.
func (g *Git) nestedRepositories(ctx context.Context, wt Worktree) ([]string, error) {
	index, err := readFile(g.in.file("index"))
	if err != nil || !bytes.Contains(index, gitlinkMode) && !bytes.Contains(index, splitIndex) {
		return nil, nil // git reports the broken index
	}
	list, err := g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--stage"))
	nested := slices.DeleteFunc(gitlinks(list), func(path string) bool {
		return !isRepository(filepath.Join(wt.Path, path))
	})
	return slices.Compact(nested), err
}

// gitlinkMode is a submodule's mode in an index file. splitIndex marks an index with entries in another file.
var gitlinkMode, splitIndex = []byte{0, 0, 0xe0, 0}, []byte("link")

// addRules adds ignore rules before the user's own, in core.excludesFile. These rules have the lowest rank, so a
// .gitignore may override them. They also keep git out of node_modules.
func (q *quarantine) addRules(rules string) (restore func() error, err error) {
	err = replaceFile(q.file("excludes"), rules+q.users)
	return func() error { return replaceFile(q.file("excludes"), q.users) }, err
}

// survey is the state of index and worktree after an add.
type survey struct {
	products []string // untracked build products
	refused  []string // other untracked files that git could not add
	closed   []string // directories that git cannot read, or that are nested too deep
	heldBack []string // untracked because of the product rules, but not products
	suspects []suspect
	assumed  []string // tracked, marked assume-unchanged
	skipped  []string // existing tracked files, marked skip-worktree
}

// suspect is an index entry that may stay only if base has it.
type suspect struct {
	path string
	root string // its product, or the repository's path
}

// survey lists the untracked paths under the user's rules only, and the index entries that are build products or
// repositories.
func (g *Git) survey(ctx context.Context, wt Worktree) (survey, error) {
	var s survey
	var said []byte
	list := g.InWorktree(wt, "ls-files", "-z", "-v", "--stage", "--cached", "--others", "--exclude-standard",
		"--directory", "--no-empty-directory")
	list.said = &said
	out, err := g.Read(ctx, list)
	if err != nil {
		return s, err
	}
	s.closed = unopened(said)
	// Entries are "? path", with a slash at the end of a directory without tracked files, and "H <mode> <oid> <stage>
	// TAB path".
	for _, f := range fields(out) {
		if path, ok := strings.CutPrefix(f, "? "); ok {
			s.sortUntracked(wt.Path, path)
			continue
		}
		head, path, _ := strings.Cut(f, "\t")
		if head != "" && unicode.IsLower(rune(head[0])) {
			s.assumed = append(s.assumed, path)
			head = strings.ToUpper(head[:1]) + head[1:]
		}
		// In a sparse worktree, missing files have this mark.
		if strings.HasPrefix(head, "S ") && !absent(filepath.Join(wt.Path, path)) {
			s.skipped = append(s.skipped, path)
		}
		if root := ProductRoot(wt.Path, path); root != "" {
			s.suspects = append(s.suspects, suspect{path, root})
		} else if strings.HasPrefix(head, "H 160000 ") {
			s.suspects = append(s.suspects, suspect{path, path})
		}
	}
	return s, nil
}

// unopened returns the directories that git could not open and skipped, each shortened for printing.
func unopened(said []byte) (dirs []string) {
	for line := range strings.Lines(string(said)) {
		name, ok := strings.CutPrefix(line, "warning: could not open directory '")
		if !ok {
			continue
		}
		if end := strings.LastIndex(name, "': "); end >= 0 { // a name with a newline has no end mark
			name = name[:end]
		}
		name = strings.TrimRight(name, "/\n")
		if len(name) > maxShown {
			name = strings.ToValidUTF8(name[:maxShown], "") + "..."
		}
		dirs = append(dirs, name)
	}
	return dirs
}

// maxShown limits a printed path that is too long for any command, in bytes.
const maxShown = 200

// showHidden removes the marks from index entries by which a worker hides changes of their files from git.
func (g *Git) showHidden(ctx context.Context, wt Worktree, found survey) error {
	for flag, paths := range map[string][]string{
		"--no-assume-unchanged": found.assumed, "--no-skip-worktree": found.skipped,
	} {
		if len(paths) == 0 {
			continue
		}
		c := g.InWorktree(wt, "update-index", "-z", flag, "--stdin")
		if _, err := g.Mutate(ctx, c.with(paths)); err != nil {
			return err
		}
	}
	return nil
}

// sortUntracked classifies one untracked path. In a directory it searches for the cause.
func (s *survey) sortUntracked(top, path string) {
	clean := strings.TrimSuffix(path, "/")
	if root := ProductRoot(top, path); root != "" {
		s.products = append(s.products, root)
		return
	}
	if clean == path || isRepository(filepath.Join(top, clean)) {
		s.refused = append(s.refused, clean)
		return
	}
	if slices.Contains(project.Built, filepath.Base(clean)) {
		s.heldBack = append(s.heldBack, clean)
		return
	}
	entries, err := os.ReadDir(filepath.Join(top, clean))
	if err != nil {
		s.refused = append(s.refused, clean)
	}
	for _, e := range entries {
		name := path + e.Name()
		if e.IsDir() {
			name += "/"
		}
		s.sortUntracked(top, name)
	}
}

// isRepository reports whether dir is the top of a repository or worktree.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// maxNamed is the largest number of paths on a command line.
const maxNamed = 500

// takeOut removes the suspects that base does not track from the index, and returns their build products or
// repositories. It keeps submodules in .gitmodules.
func (g *Git) takeOut(ctx context.Context, wt Worktree, base string, suspects []suspect) ([]string, error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	tracked, err := g.trackedIn(ctx, wt, base, suspects)
	if err != nil {
		return nil, err
	}
	var out, roots []string
	for _, s := range suspects {
		if !tracked[s.path] {
			out = append(out, s.path)
			roots = append(roots, s.root)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	c := g.InWorktree(wt, "update-index", "-z", "--force-remove", "--stdin")
	_, err = g.Mutate(ctx, c.with(out))
	return roots, err
}

// trackedIn returns base's files below the suspects' roots, and the submodules that .gitmodules in the index declares.
func (g *Git) trackedIn(ctx context.Context, wt Worktree, base string, suspects []suspect) (map[string]bool, error) {
	var roots []string
	for _, s := range suspects {
		if len(roots) == 0 || roots[len(roots)-1] != s.root {
			roots = append(roots, s.root)
		}
	}
	if len(roots) > maxNamed {
		roots = nil // the whole tree
	}
	tracked := map[string]bool{}
	if base != "" {
		args := append([]string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", "--full-tree", base, "--"},
			roots...)
		list, err := g.List(ctx, g.InWorktree(wt, args...))
		if err != nil {
			return nil, err
		}
		for _, path := range list {
			tracked[path] = true
		}
	}
	gitlinks := slices.ContainsFunc(suspects, func(s suspect) bool { return s.root == s.path && !tracked[s.path] })
	if !gitlinks {
		return tracked, nil
	}
	declared, err := g.declared(ctx, g.InWorktree(wt), ":.gitmodules")
	if err != nil {
		return nil, err
	}
	for path := range declared {
		tracked[path] = true
	}
	return tracked, nil
}
