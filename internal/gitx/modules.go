package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// module is a submodule of a tree.
type module struct{ path, commit, name, url string }

// MissingModules lists the paths of a commit's submodules, also nested ones, that the repository at common lacks.
func (g *Git) MissingModules(ctx context.Context, common, commit string) ([]string, error) {
	return g.eachModule(ctx, common, commit, "", func(string, module) error { return nil })
}

// CheckOutModules checks out the submodules of the checkout in dir. Each becomes a separate repository that borrows
// the objects of the submodule's repository in common. If that repository lacks a commit that is not the one in the
// commit seed, git fetches it from the URL in the seed's .gitmodules. It skips other submodules that common lacks, and
// existing checkouts unless again returns true. The user's config does not change.
func (g *Git) CheckOutModules(ctx context.Context, common, seed, dir string, again func(path string) bool) error {
	tree, err := g.Line(ctx, g.In(dir, "write-tree"))
	if err != nil {
		return err
	}
	checkOut := func(from string, m module) error {
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
	}
	missing, err := g.eachModule(ctx, common, tree, "", checkOut)
	if err != nil || len(missing) == 0 || seed == "" {
		return err
	}
	was, err := g.modulesOf(ctx, common, seed)
	if err != nil {
		return err
	}
	now, err := g.modulesOf(ctx, common, tree)
	for _, m := range now {
		if err == nil && slices.Contains(missing, m.path) && !slices.Contains(was, m) {
			if m.url, err = g.moduleURL(ctx, common, seed, m.path); err == nil && m.url != "" {
				err = checkOut("", m)
			}
		}
	}
	return err
}

// FollowModules checks out the commits in a worktree's index in its submodules. A checkout of the tree does not do
// that, and staging would see a difference.
func (g *Git) FollowModules(ctx context.Context, wt Worktree) error {
	if fi, err := os.Lstat(filepath.Join(wt.Path, ".gitmodules")); err != nil || !fi.Mode().IsRegular() || g.dry {
		return nil
	}
	moved, err := g.List(ctx, g.InWorktree(wt, "diff-files", "-z", "--name-only", "--ignore-submodules=dirty"))
	if err != nil || len(moved) == 0 {
		return err
	}
	again := func(path string) bool { return slices.Contains(moved, path) }
	return g.CheckOutModules(ctx, wt.Common, "", wt.Path, again)
}

// EditedModules lists the submodules of the work tree at dir, also nested ones, with files that differ from their
// HEAD. A commit of the work tree cannot contain such a change. Ignored files and build products do not count. Git
// compares the files through a temporary git directory, because the worker may have written the submodule's config.
func (g *Git) EditedModules(ctx context.Context, dir string) ([]string, error) {
	return g.editedBelow(ctx, dir, "", g.inCheckout(ctx, dir, "ls-files", "-z", "--stage"))
}

// inCheckout returns a command in a worktree of the user's or a session's.
func (g *Git) inCheckout(ctx context.Context, dir string, args ...string) Command {
	if common, is, err := LinkedCommon(dir); err == nil && is {
		if wt, err := g.Worktree(ctx, common, dir, ""); err == nil {
			return g.InWorktree(wt, args...)
		}
	}
	c := g.In(dir, args...)
	c.Tree = dir
	return c
}

// editedBelow is EditedModules of a work tree. A command lists the index; below is the work tree's path.
func (g *Git) editedBelow(ctx context.Context, dir, below string, list Command) (edited []string, err error) {
	if fi, err := os.Lstat(filepath.Join(dir, ".gitmodules")); err != nil || !fi.Mode().IsRegular() {
		return nil, nil
	}
	entries, err := g.List(ctx, list)
	for _, name := range gitlinks(entries) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if !isRepository(at) {
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
		return nil, nil // not a submodule
	}
	scratch, remove, err := proc.TempDir()
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
		return []string{name}, ctx.Err() // it has no commit for a tree
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
	changes = slices.DeleteFunc(changes, func(f string) bool { // changes in another commit's submodules
		untracked, is := strings.CutPrefix(f, "?? ")
		return is && isRepository(filepath.Join(at, untracked))
	})
	if areChanges(at, changes) {
		edited = append(edited, name)
	}
	more, err := g.editedBelow(ctx, at, name, run("ls-files", "-z", "--stage"))
	return append(edited, more...), err
}

// gitlinks returns the paths of the submodules among the entries of ls-files --stage.
func gitlinks(entries []string) (paths []string) {
	for _, e := range entries {
		if head, path, _ := strings.Cut(e, "\t"); strings.HasPrefix(head, "160000 ") {
			paths = append(paths, path)
		}
	}
	return paths
}

// eachModule calls a function for each submodule in the repository at common, with its git directory, and returns the
// others.
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

// modulesOf lists the submodules of a tree. The name is "" if .gitmodules does not list the submodule.
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
	// Without a readable file they have no names.
	declared, _ := g.declared(ctx, InRepo(common), tree+":.gitmodules")
	for i, m := range found {
		found[i].name = declared[m.path].name
	}
	return found, nil
}

// declared returns the submodules in a .gitmodules file, by path, with names and URLs. list is a git command without
// arguments in the file's repository, and blob is the file's name for git.
func (g *Git) declared(ctx context.Context, list Command, blob string) (map[string]module, error) {
	list.Args = append(list.Args, "config", "-z", "--blob", blob, "--get-regexp", `^submodule\..*\.(path|url)$`)
	lines, err := g.List(ctx, list)
	if ExitCode(err) > 0 {
		return nil, nil // no such file, or it declares nothing
	}
	names, urls := map[string]string{}, map[string]string{}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "\n")
		key = strings.TrimPrefix(key, "submodule.")
		if name, is := strings.CutSuffix(key, ".path"); is {
			names[path.Clean(value)] = name
		} else {
			urls[strings.TrimSuffix(key, ".url")] = value
		}
	}
	modules := map[string]module{}
	for at, name := range names {
		modules[at] = module{path: at, name: name, url: urls[name]}
	}
	return modules, err
}

// checkOutModule checks out a submodule in the checkout in dir. Its git directory is below the checkout's if that is a
// directory, else in the submodule.
func (g *Git) checkOutModule(ctx context.Context, from, dir string, m module) error {
	at := filepath.Join(dir, filepath.FromSlash(m.path))
	gitDir := filepath.Join(at, ".git")
	if fi, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && fi.IsDir() {
		gitDir = filepath.Join(dir, ".git", "modules", filepath.FromSlash(m.path))
		if err := errors.Join(proc.RemoveAll(gitDir), writeIn(at, ".git", "gitdir: "+gitDir+"\n")); err != nil {
			return err
		}
	}
	fill := g.borrowModule
	if from == "" {
		fill = g.fetchModule
	}
	if err := errors.Join(os.MkdirAll(at, 0o755), fill(ctx, from, gitDir, m)); err != nil {
		return err
	}
	if err := writeIn(gitDir, "HEAD", m.commit+"\n"); err != nil {
		return err
	}
	c := Command{Dir: at, Tree: at, Vars: NoUserConfig,
		Args: []string{"--git-dir=" + gitDir, "--work-tree=" + at, "read-tree", "-u", "--reset", m.commit}}
	if g.Sandbox != nil {
		box, err := g.Sandbox()
		if err != nil {
			return err
		}
		if c.Box = box.With(at, gitDir); from != "" {
			c.Box = c.Box.Reading(from)
		}
	}
	_, err := g.Mutate(ctx, c)
	return err
}

// borrowModule creates the git directory of a submodule that borrows the objects of another one.
func (g *Git) borrowModule(ctx context.Context, from, gitDir string, _ module) error {
	refs, err := g.PackedRefs(ctx, from, "refs/remotes", "refs/tags")
	if err != nil {
		return err
	}
	config, err := g.moduleConfig(ctx, from)
	if err != nil {
		return err
	}
	return errors.Join(Borrow(from, gitDir), writeIn(gitDir, "packed-refs", string(refs)),
		writeIn(gitDir, "config", config))
}

// fetchModule creates the git directory of a submodule with a commit of its remote. Some servers do not send a commit
// without a ref; then git fetches all branches and tags.
func (g *Git) fetchModule(ctx context.Context, _, gitDir string, m module) error {
	if err := errors.Join(emptyGitDir("", gitDir), os.MkdirAll(filepath.Join(gitDir, "objects"), 0o700)); err != nil {
		return err
	}
	fetch := func(args ...string) error {
		_, err := g.Mutate(ctx, Command{Dir: gitDir, Keys: true, Args: append([]string{"--git-dir=" + gitDir, "fetch",
			"--quiet", "--no-auto-maintenance"}, args...)})
		return err
	}
	if fetch("--depth=1", "--", m.url, m.commit) == nil {
		return nil
	}
	return fetch("--", m.url, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
}

// IsPublished reports whether a submodule's remote has a commit. The remote is the URL in .gitmodules of the commit
// seed. why is the reason if the remote lacks the commit or does not answer. Refs and objects of a repository in the
// work tree do not count, because a worker can write them.
func (g *Git) IsPublished(ctx context.Context, common, seed, at, commit string) (is bool, why string, err error) {
	url, err := g.moduleURL(ctx, common, seed, at)
	if err != nil || url == "" {
		return false, "the .gitmodules of the seed has no URL for it", err
	}
	talk := func(dir string, args ...string) Command {
		return Command{Dir: dir, Args: args, Keys: true}
	}
	tips, err := g.Read(ctx, talk(common, "ls-remote", "--quiet", "--", url))
	if err != nil {
		return false, "its remote cannot be read: " + err.Error(), ctx.Err()
	}
	if strings.Contains("\n"+string(tips), "\n"+commit+"\t") {
		return true, "", nil
	}
	// The commit may be below a tip. A fetch without trees into an empty repository shows that.
	scratch, remove, err := proc.TempDir()
	if err != nil {
		return false, "", err
	}
	defer remove()
	err = errors.Join(emptyGitDir(common, scratch), os.Mkdir(filepath.Join(scratch, "objects"), 0o700))
	if err != nil {
		return false, "", err
	}
	if _, err := g.Read(ctx, talk(scratch, "--git-dir="+scratch, "fetch", "--quiet", "--filter=tree:0",
		"--no-auto-maintenance", "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")); err != nil {
		return false, "its remote cannot be fetched: " + err.Error(), ctx.Err()
	}
	above := InRepo(scratch, "rev-list", "--max-count=1", commit, "--not", "--all", "--")
	above.Vars = []string{"GIT_NO_LAZY_FETCH=1"}
	out, err := g.Read(ctx, above)
	if ExitCode(err) == 128 {
		err, out = nil, []byte(commit)
	}
	return err == nil && len(out) == 0, fmt.Sprintf("no branch or tag of %s has it", url), err
}

// moduleURL returns the URL of the submodule at a path in a commit's .gitmodules, or "". A relative URL starts at the
// remote of the repository, or at the repository if it has no remote.
func (g *Git) moduleURL(ctx context.Context, common, commit, at string) (url string, err error) {
	declared, err := g.declared(ctx, InRepo(common), commit+":.gitmodules")
	url = declared[at].url
	if !strings.HasPrefix(url, "./") && !strings.HasPrefix(url, "../") {
		return url, err
	}
	base, _ := g.Line(ctx, InRepo(common, "config", "remote.origin.url"))
	if base == "" {
		if base = common; filepath.Base(common) == ".git" {
			base = filepath.Dir(common)
		}
	}
	for up := true; up; {
		url = strings.TrimPrefix(url, "./")
		if url, up = strings.CutPrefix(url, "../"); up {
			base = base[:max(0, strings.LastIndexAny(strings.TrimSuffix(base, "/"), "/:"))]
		}
	}
	return base + "/" + url, err
}
