package gitx

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// module is a submodule as a tree has it.
type module struct{ path, commit, name string }

// MissingModules lists the submodules of a commit of the repository at common that the repository does not hold, by
// their paths: those of submodules too.
func (g *Git) MissingModules(ctx context.Context, common, commit string) ([]string, error) {
	return g.eachModule(ctx, common, commit, "", func(string, module) error { return nil })
}

// CheckOutModules checks out the submodules of the checkout in dir. Each becomes a separate repository that borrows the
// objects of the submodule's repository in common. Submodules that common lacks are left out, and existing checkouts
// too, unless again returns true. The user's configuration does not change.
func (g *Git) CheckOutModules(ctx context.Context, common, dir string, again func(path string) bool) error {
	tree, err := g.Line(ctx, g.In(dir, "write-tree"))
	if err != nil {
		return err
	}
	_, err = g.eachModule(ctx, common, tree, "", func(from string, m module) error {
		at := filepath.Join(dir, filepath.FromSlash(m.path))
		there, err := os.ReadDir(at)
		if err == nil && len(there) > 0 {
			if !again(m.path) {
				return nil
			}
			err = proc.RemoveAll(at)
		}
		if err != nil && !isAbsent(err) {
			return err
		}
		return g.checkOutModule(ctx, from, dir, m)
	})
	return err
}

// FollowModules moves the submodules of a worktree to the commits in its index: laying out a tree does not move them,
// and staging would take the difference for a change.
func (g *Git) FollowModules(ctx context.Context, wt Worktree) error {
	if fi, err := os.Lstat(filepath.Join(wt.Path, ".gitmodules")); err != nil || !fi.Mode().IsRegular() || g.dry {
		return nil
	}
	moved, err := g.List(ctx, g.InWorktree(wt, "diff-files", "-z", "--name-only", "--ignore-submodules=dirty"))
	if err != nil || len(moved) == 0 {
		return err
	}
	return g.CheckOutModules(ctx, wt.Common, wt.Path, func(path string) bool { return slices.Contains(moved, path) })
}

// EditedModules lists the submodules of the work tree at dir, and theirs, whose files are not what their HEAD has. No
// commit of the work tree holds such a change. Ignored files and build products are none. Git compares the files in a
// directory of its own, because the configuration of a submodule may be the worker's.
func (g *Git) EditedModules(ctx context.Context, dir string) ([]string, error) {
	list := []string{"ls-files", "-z", "--stage"}
	c := g.In(dir, list...)
	if common, is, err := LinkedCommon(dir); err == nil && is {
		if wt, err := g.Worktree(ctx, common, dir, ""); err == nil {
			c = g.InWorktree(wt, list...)
		}
	}
	return g.editedBelow(ctx, dir, "", c)
}

// editedBelow is EditedModules of a work tree in which a command lists the index; below is its path.
func (g *Git) editedBelow(ctx context.Context, dir, below string, list Command) (edited []string, err error) {
	if fi, err := os.Lstat(filepath.Join(dir, ".gitmodules")); err != nil || !fi.Mode().IsRegular() {
		return nil, nil
	}
	entries, err := g.List(ctx, list)
	for _, f := range entries {
		head, name, _ := strings.Cut(f, "\t")
		at := filepath.Join(dir, filepath.FromSlash(name))
		if !strings.HasPrefix(head, "160000 ") || !isRepository(at) {
			continue
		}
		more, err := g.editedModule(ctx, at, path.Join(below, name))
		if err != nil {
			return nil, err
		}
		edited = append(edited, more...)
	}
	return edited, err
}

func (g *Git) editedModule(ctx context.Context, at, name string) (edited []string, err error) {
	gitDir, err := gitDirAt(at)
	if err != nil {
		return nil, nil // it is none
	}
	scratch, remove, err := proc.TempDir("tree")
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := Borrow(gitDir, scratch); err != nil {
		return nil, err
	}
	command := func(args ...string) Command {
		return Command{Dir: at, Tree: at, Args: append([]string{"--git-dir=" + scratch, "--work-tree=" + at}, args...)}
	}
	run := command
	if g.Sandbox != nil {
		box, err := g.Sandbox()
		if err != nil {
			return nil, err
		}
		box = box.With(scratch).Reading(append(ObjectDirs(gitDir), at, gitDir)...)
		run = func(args ...string) Command {
			c := command(args...)
			c.Box = box
			return c
		}
	}
	commit := run("rev-parse", "HEAD^{commit}")
	commit.Args[0] = "--git-dir=" + gitDir
	sha, err := g.Line(ctx, commit)
	if err != nil {
		return []string{name}, ctx.Err() // it has no commit that a tree could name
	}
	if err := writeIn(scratch, "HEAD", sha+"\n"); err != nil {
		return nil, err
	}
	if _, err := g.Read(ctx, run("read-tree", "HEAD")); err != nil {
		return nil, err
	}
	changes, err := g.List(ctx, run("status", "--porcelain=v1", "-z", "--untracked-files=normal",
		"--ignore-submodules=all", "--no-renames"))
	if err != nil {
		return nil, err
	}
	changes = slices.DeleteFunc(changes, func(f string) bool { // of another commit's submodules
		untracked, is := strings.CutPrefix(f, "?? ")
		return is && isRepository(filepath.Join(at, untracked))
	})
	if areChanges(at, changes) {
		edited = append(edited, name)
	}
	more, err := g.editedBelow(ctx, at, name, run("ls-files", "-z", "--stage"))
	return append(edited, more...), err
}

// eachModule does something for each submodule that the repository at common has, with its git directory there, and
// names the others.
func (g *Git) eachModule(ctx context.Context, common, tree, below string, do func(from string, m module) error) (
	missing []string, err error,
) {
	found, err := g.modulesOf(ctx, common, tree)
	for _, m := range found {
		from := filepath.Join(common, "modules", filepath.FromSlash(m.name))
		m.path = path.Join(below, m.path)
		has := m.name != "" && filepath.IsLocal(filepath.FromSlash(m.name))
		if has {
			_, err := g.Read(ctx, InRepo(from, "cat-file", "-e", m.commit+"^{commit}"))
			has = err == nil
		}
		if !has {
			missing = append(missing, m.path)
			continue
		}
		if err := do(from, m); err != nil {
			return nil, err
		}
		more, err := g.eachModule(ctx, from, m.commit, m.path, do)
		if err != nil {
			return nil, err
		}
		missing = append(missing, more...)
	}
	return missing, errors.Join(err, ctx.Err())
}

// modulesOf lists the submodules of a tree. One that .gitmodules does not name has no name.
func (g *Git) modulesOf(ctx context.Context, common, tree string) (found []module, err error) {
	list, err := g.List(ctx, InRepo(common, "ls-tree", "-r", "-z", "--full-tree", tree))
	for _, line := range list {
		head, at, _ := strings.Cut(line, "\t")
		if f := strings.Fields(head); len(f) == 3 && f[1] == "commit" {
			found = append(found, module{path: at, commit: f[2]})
		}
	}
	if err != nil || found == nil {
		return nil, err
	}
	// Without the file, or where git cannot read it, they have no names.
	names, _ := g.List(ctx, InRepo(common, "config", "-z", "--blob", tree+":.gitmodules", "--get-regexp",
		`^submodule\..*\.path$`))
	for _, line := range names {
		key, at, _ := strings.Cut(line, "\n")
		for i := range found {
			if found[i].path == path.Clean(at) {
				found[i].name = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
			}
		}
	}
	return found, nil
}

// checkOutModule makes a repository of a submodule in the checkout in dir. Its git directory lies below that of the
// checkout, where this is a directory, else in the submodule.
func (g *Git) checkOutModule(ctx context.Context, from, dir string, m module) error {
	at := filepath.Join(dir, filepath.FromSlash(m.path))
	gitDir := filepath.Join(at, ".git")
	if fi, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && fi.IsDir() {
		gitDir = filepath.Join(dir, ".git", "modules", filepath.FromSlash(m.path))
		if err := errors.Join(proc.RemoveAll(gitDir), writeIn(at, ".git", "gitdir: "+gitDir+"\n")); err != nil {
			return err
		}
	}
	refs, err := g.Read(ctx, InRepo(from, "for-each-ref", "--format=%(objectname) %(refname)", "refs/remotes",
		"refs/tags"))
	if err != nil {
		return err
	}
	origin, err := g.Line(ctx, InRepo(from, "config", "remote.origin.url"))
	if err != nil {
		return err
	}
	err = errors.Join(os.MkdirAll(at, 0o755), Borrow(from, gitDir), writeIn(gitDir, "HEAD", m.commit+"\n"),
		writeIn(gitDir, "packed-refs", string(refs)))
	if err == nil && origin != "" {
		var config strings.Builder
		WriteSetting(&config, "remote.origin.url", origin)
		WriteSetting(&config, "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
		err = appendTo(filepath.Join(gitDir, "config"), config.String())
	}
	if err != nil {
		return err
	}
	c := Command{Dir: at, Tree: at, Vars: NoUserConfig,
		Args: []string{"--git-dir=" + gitDir, "--work-tree=" + at, "read-tree", "-u", "--reset", m.commit}}
	if g.Sandbox != nil {
		box, err := g.Sandbox()
		if err != nil {
			return err
		}
		c.Box = box.With(at, gitDir).Reading(from)
	}
	_, err = g.Mutate(ctx, c)
	return err
}
