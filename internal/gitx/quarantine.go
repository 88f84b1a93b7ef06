package gitx

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// quarantine is a git directory for one operation on a worktree. Git, its filters, hooks and their children run in it,
// in the sandbox. It has copies of the index and the branch, the config as first read by this process, and the
// repository's objects as an alternate. After the operation this process copies the index and the new objects that
// match their ids. So a worker's code never writes to the user's repository.
type quarantine struct {
	*settings
	wt      Worktree
	dir     string
	box     *sandbox.Box
	index   os.FileInfo // copy of the index before git runs; nil for none
	objects string      // directory that gets the new objects; "" for none
	users   string      // the user's own ignore rules
	look    bool        // the index does not change
	private bool        // only the user may read the directory of objects
	shut    bool        // the worktree is read-only too
	tip     string      // commit of a branch that does not exist yet, or ""
}

// quarantined calls do with a Git that works on wt in quarantine. With keep it copies the new objects and the index
// back.
func (g *Git) quarantined(ctx context.Context, wt Worktree, keep bool, do func(in *Git) error) error {
	if g.in != nil {
		return do(g)
	}
	q := quarantine{wt: wt, look: !keep}
	if keep {
		q.objects = filepath.Join(wt.Common, "objects")
	}
	return g.quarantinedIn(ctx, &q, do)
}

func (g *Git) quarantinedIn(ctx context.Context, q *quarantine, do func(in *Git) error) error {
	if err := g.putBackLink(q.wt); err != nil {
		return err
	}
	remove, err := g.layOut(ctx, q)
	if err != nil {
		return err
	}
	defer remove()
	in := *g
	in.in = q
	if err := do(&in); err != nil {
		return err
	}
	return q.takeOver(ctx, g)
}

// ObjectDirs returns the directories of a repository's objects: its own and those that it borrows from.
func ObjectDirs(common string) []string {
	dirs := []string{filepath.Join(common, "objects")}
	for i := 0; i < len(dirs) && len(dirs) < 16; i++ {
		borrowed, _ := readFile(filepath.Join(dirs[i], "info/alternates"))
		for line := range strings.Lines(string(borrowed)) {
			dir := strings.TrimSuffix(line, "\n")
			if dir != "" && !filepath.IsAbs(dir) {
				dir = filepath.Join(dirs[i], dir)
			}
			if dir != "" && !strings.HasPrefix(line, "#") && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// quarantineName is the prefix of quarantine directories among a repository's objects. Git treats them like its own
// temporary directories, and gc prunes them.
const quarantineName = "tmp_objdir-tilth-"

// ClearQuarantines removes the quarantine directories that killed processes left in a repository.
func (g *Git) ClearQuarantines(common string) {
	if !g.dry {
		proc.ClearTempIn(filepath.Join(common, "objects"), quarantineName)
	}
}

// layOut creates the git directory. If its objects will be copied, it is on their file system.
func (g *Git) layOut(ctx context.Context, q *quarantine) (remove func(), err error) {
	if q.settings, err = g.settingsOf(ctx, q.wt); err != nil {
		return nil, err
	}
	if q.objects != "" {
		g.ClearQuarantines(q.wt.Common)
		q.dir, remove, err = proc.TempDirIn(q.objects, quarantineName)
	} else {
		q.dir, remove, err = proc.TempDir()
	}
	if err != nil {
		return nil, err
	}
	q.dir = resolveParents(q.dir)
	if err = g.fill(ctx, q); err == nil && g.Sandbox != nil {
		q.box, err = g.Sandbox()
	}
	if err != nil {
		remove()
		return nil, err
	}
	q.box = q.box.Of(q.wt.Path).With(q.dir).Reading(ObjectDirs(q.wt.Common)...).Reading(q.wt.Common, q.wt.Path)
	q.box = q.box.In(filepath.Join(q.dir, "tmp"))
	if q.wt.Path != "" {
		q.box = q.box.Showing(filepath.Join(q.wt.Path, ".git"), q.file(linkName))
	}
	if !q.shut {
		q.box = q.box.With(q.wt.Path)
	}
	return remove, nil
}

// boxOf returns the sandbox of a command. If only git and Git LFS run in it, they may set the times of existing
// objects. Hooks and other filters may be files of the tree, and could then change the modes of these objects.
func (q *quarantine) boxOf(c Command) *sandbox.Box {
	filters := slices.ContainsFunc(q.entries, func(e config.Entry) bool {
		return strings.HasPrefix(e.Key, "filter.") && !strings.HasSuffix(e.Key, ".required") &&
			!strings.HasPrefix(e.Value, "git-lfs ")
	})
	if q.objects == "" || c.Hooks || filters {
		return q.box
	}
	return q.box.Touching(ObjectDirs(q.wt.Common)...)
}

// linkName is a file that leads to the quarantine, like a worktree's .git, for programs that drop GIT_DIR before they
// run git, such as lint-staged.
const linkName = "worktree-git"

// fill writes the files of the git directory.
func (g *Git) fill(ctx context.Context, q *quarantine) error {
	if err := Borrow(q.wt.Common, q.dir); err != nil {
		return err
	}
	excludes, _ := readFile(q.excludes) // as in git, an unreadable file is ignored
	q.users = string(excludes)
	attributes, _ := readFile(q.attributes)
	err := errors.Join(os.Mkdir(filepath.Join(q.dir, "tmp"), 0o700), writeIn(q.dir, "config", q.local),
		writeIn(q.dir, linkName, "gitdir: "+q.dir+"\n"),
		writeIn(q.dir, "global", q.global), writeIn(q.dir, "excludes", q.users),
		writeIn(q.dir, "attributes", string(attributes)), g.copyRefs(ctx, q))
	for name, from := range map[string]string{
		"info/exclude": q.wt.Common, "info/attributes": q.wt.Common, "info/sparse-checkout": q.wt.AdminDir,
	} {
		content, rerr := readFile(filepath.Join(from, name))
		if err == nil && rerr == nil {
			err = writeIn(q.dir, name, string(content))
		}
	}
	if g.raw && err == nil {
		err = writeIn(q.dir, "info/attributes", "* -text -filter -ident -working-tree-encoding\n")
	}
	shared, _ := filepath.Glob(filepath.Join(q.wt.AdminDir, "sharedindex.*"))
	for _, name := range shared {
		content, rerr := readFile(name)
		if err == nil && rerr == nil {
			err = writeIn(q.dir, filepath.Base(name), string(content))
		}
	}
	if _, cerr := CopyIndex(q.wt, q.file("index")); cerr != nil && !errors.Is(cerr, fs.ErrNotExist) {
		return errors.Join(err, cerr)
	}
	q.index, _ = os.Lstat(q.file("index"))
	return errors.Join(err, LinkForeign(q.wt.Common, q.wt.Common, q.dir))
}

// file returns the path of a file in the quarantine. After git has run, its content is not trusted.
func (q *quarantine) file(name string) string { return filepath.Join(q.dir, name) }

// copyRefs copies HEAD and its branch to the quarantine. Hooks get all refs, see refs.
func (g *Git) copyRefs(ctx context.Context, q *quarantine) error {
	branch := cmp.Or(q.wt.Branch, q.wt.Head)
	if branch == "" {
		head, err := readFile(filepath.Join(q.wt.AdminDir, "HEAD"))
		return errors.Join(err, writeIn(q.dir, "HEAD", string(head)))
	}
	tip, ok, err := g.BranchTip(ctx, q.wt.Common, branch)
	if !ok {
		tip = q.tip
	}
	if err == nil && tip != "" {
		err = writeIn(q.dir, "refs/heads/"+branch, tip+"\n")
	}
	return errors.Join(err, writeIn(q.dir, "HEAD", "ref: refs/heads/"+branch+"\n"))
}

// refs copies all refs of the repository to the quarantine, except the user's stashes.
func (g *Git) refs(ctx context.Context, q *quarantine) error {
	out, err := g.PackedRefs(ctx, q.wt.Common)
	var packed strings.Builder
	for line := range strings.Lines(string(out)) {
		if !strings.HasSuffix(line, " refs/stash\n") {
			packed.WriteString(line)
		}
	}
	return errors.Join(err, writeIn(q.dir, "packed-refs", packed.String()))
}

// environ returns the variables that point git to the quarantine and its config.
func (q *quarantine) environ(before string, hooks bool) []string {
	own := []string{"core.excludesFile=" + q.file("excludes"), "core.attributesFile=" + q.file("attributes"),
		"core.splitIndex=false", "core.protectHFS=true", "core.protectNTFS=true"}
	if q.private {
		own = append(own, "core.sharedRepository=0600")
	}
	if hooks {
		own = append(own, "core.hooksPath="+q.hooks(q.wt))
	}
	env := append(slices.Clone(NoUserConfig), "GIT_DIR="+q.dir, "GIT_CONFIG_GLOBAL="+q.file("global"),
		configParameters(before, own))
	if q.wt.Path == "" {
		return env
	}
	return append(env, "GIT_WORK_TREE="+q.wt.Path)
}

// NoUserConfig makes git read only the config of its git directory, and fetch nothing.
var NoUserConfig = []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1"}

// FetchMissing fetches the missing objects of trees and commits into a partial clone. Git itself would fetch one after
// another, and in the sandbox without the user's credentials. After missing trees it fetches their contents, unless an
// option of git rev-list before the objects excludes them. HEAD is the one of the worktree's entry.
func (g *Git) FetchMissing(ctx context.Context, wt Worktree, of ...string) error {
	s, err := g.settingsAt(ctx, wt.Common, InRepo(wt.Common))
	if err != nil || s.promisor == "" || g.dry {
		return err
	}
	for asked := ""; ; {
		list := []string{"rev-list", "--objects", "--no-walk", "--missing=print"}
		out, err := g.Read(ctx, g.InEntry(wt, append(list, of...)...))
		if err != nil {
			return err
		}
		fetch := InRepo(wt.Common, "-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags",
			"--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin", s.promisor)
		for line := range strings.Lines(string(out)) {
			if id, missing := strings.CutPrefix(line, "?"); missing {
				fetch.Stdin = append(fetch.Stdin, id...)
			}
		}
		if string(fetch.Stdin) == asked {
			return nil
		}
		asked, fetch.Keys = string(fetch.Stdin), true
		if _, err = g.Mutate(ctx, fetch); err != nil {
			return err
		}
	}
}

// ForUser returns the environment of a git command that the user could type, with the user's settings, pager, hooks
// and credential dialogs, on the repository at common.
func (g *Git) ForUser(common string) []string {
	env := without(g.env.raw, func(name string) bool { return slices.Contains(localVars, name) })
	return append(env, "GIT_DIR="+common)
}

// Attach runs a git command in such an environment, on the user's terminal. git prints its own errors.
func Attach(dir string, env []string, box *sandbox.Box, args []string, in, out, errOut *os.File) error {
	return proc.Attach(dir, append([]string{"git"}, args...), env, box, in, out, errOut)
}

// ForDiff is ForUser for a diff in the sandbox, because textconv may run a worker's program. It shows objects of the
// repository at common and of the directory objects, if given.
func (g *Git) ForDiff(ctx context.Context, common, objects string) (env []string, box *sandbox.Box, remove func(),
	err error) {
	q := quarantine{wt: Worktree{Common: common, AdminDir: common}}
	if remove, err = g.layOut(ctx, &q); err != nil {
		return nil, nil, nil, err
	}
	if err := g.refs(ctx, &q); err != nil {
		remove()
		return nil, nil, nil, err
	}
	env = append(g.ForUser(common), q.environ(proc.Getenv(g.env.raw, "GIT_CONFIG_PARAMETERS"), false)...)
	if objects != "" {
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objects)
	}
	return env, q.box.Reading(objects), remove, nil
}
