package judge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// ownSettings override the user's global settings: an index that parseIndex can read, and no automatic actions.
const ownSettings = `[core]
	bare = false
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	sparseCheckout = false
	hooksPath = /dev/null
	logAllRefUpdates = false
	protectHFS = true
	protectNTFS = true
[index]
	version = 2
	sparse = false
	skipHash = false
[feature]
	manyFiles = false
[gc]
	auto = 0
`

// takenSettings are the settings of the user's repository that decide the content of checked-out files.
var takenSettings = []string{
	"core.autocrlf", "core.eol", "core.symlinks", "core.filemode", "core.ignorecase", "core.precomposeunicode",
	"core.longpaths", "extensions.objectformat",
}

// settings returns the configuration of a git directory that checks out and stages files as a repository with all of
// these entries does.
func settings(all []config.Entry) []byte {
	var b bytes.Buffer
	b.WriteString(ownSettings)
	version := "0"
	for _, c := range all {
		taken := strings.HasPrefix(c.Key, "filter.") || strings.HasPrefix(c.Key, "lfs.") && c.Key != "lfs.storage" ||
			slices.Contains(takenSettings, c.Key)
		if c.Scope == "command" || !taken {
			continue
		}
		if c.Key == "extensions.objectformat" {
			version = "1"
		}
		gitx.WriteSetting(&b, c.Key, c.Value)
	}
	gitx.WriteSetting(&b, "core.repositoryformatversion", version)
	return b.Bytes()
}

// writeRepo writes judge/.git with HEAD at commit. Of existing files only submodules that setup cloned stay.
func (p *Checkout) writeRepo(commit string) error {
	branch := "refs/heads/" + p.o.Branch
	common, err := p.linkRepo()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"HEAD": []byte("ref: " + branch + "\n"), branch: []byte(commit + "\n"), "config": p.settings,
		"objects/info/alternates": []byte(gitx.Alternates(common)), "packed-refs": p.tags,
		"attributes": p.attributes,
	}
	if len(p.o.Sparse.Patterns) > 0 {
		files["info/sparse-checkout"] = p.o.Sparse.Patterns
	}
	if p.index != nil {
		files["index"] = p.index
	}
	if shallow, err := os.ReadFile(filepath.Join(p.o.Common, "shallow")); err == nil {
		files["shallow"] = shallow
	}
	spared := ""
	if slices.ContainsFunc(p.entries, func(e entry) bool { return e.Mode == gitlink }) {
		spared = "modules"
	}
	dir := filepath.Join(p.Dir, ".git")
	return cmp.Or(writeDir(dir, files, spared), gitx.LinkForeign(p.o.Common, common, dir))
}

// linkRepo creates the session's link to the repository, and returns the path through which the checkout borrows
// objects.
func (p *Checkout) linkRepo() (string, error) {
	link := session.RepoLink(p.Dir)
	if link == "" {
		return p.o.Common, nil
	}
	to, _ := os.Readlink(link)
	if to == p.o.Common {
		return link, nil
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), proc.RemoveAll(link))
	if err == nil {
		err = os.Symlink(p.o.Common, link)
	}
	if to, _ = os.Readlink(link); to == p.o.Common { // another lane made it
		err = nil
	}
	return link, err
}

// writeDir makes the directory top have exactly these files, by path. It keeps an entry named spared.
func writeDir(top string, files map[string][]byte, spared string) error {
	if fi, err := os.Lstat(top); err == nil && !fi.IsDir() {
		if err := os.Remove(top); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(top, 0o700); err != nil {
		return err
	}
	if err := removeIn(top, func(name string) bool { return name != spared }); err != nil {
		return err
	}
	for name, data := range files {
		at := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// git runs a command in the checkout in the sandbox, with its git directory and with paths on standard input.
func (p *Checkout) git(ctx context.Context, paths []string, args ...string) error {
	dir := filepath.Join(p.Dir, ".git")
	// No other process uses this index, so a lock is the leftover of a killed git.
	if err := proc.RemoveAll(filepath.Join(dir, "index.lock")); err != nil {
		return err
	}
	c := gitx.Command{Dir: p.Dir, Tree: p.Dir, Args: append([]string{"--git-dir=" + dir, "--work-tree=" + p.Dir,
		"--literal-pathspecs"}, args...)}
	c.Vars = gitx.NoUserConfig
	if p.o.Git.Sandbox != nil {
		box, err := p.o.Git.Sandbox()
		if err != nil {
			return err
		}
		c.Box = box.Of(p.Dir).With(p.Dir).Reading(p.o.Common).In(dir)
	}
	if len(paths) > 0 {
		c.Stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	}
	_, err := p.o.Git.Mutate(ctx, c)
	return err
}

// checkOut makes git lay out tree, and reads the index that git wrote. With reset it replaces index and files; files
// that are not in the index stay.
//
// It passes only the new tree, because with two trees git looks up the object of each tracked file (2.39.5: 1.3 times
// as long with 20,000 files, twice with loose objects).
//
// The checkout's git directory has no remote, so missing objects of a partial clone are fetched before.
func (p *Checkout) checkOut(ctx context.Context, tree string, reset bool) (index []byte, entries []entry, err error) {
	repo := gitx.Worktree{Common: p.o.Common, AdminDir: p.o.Common}
	if err := p.o.Git.FetchMissing(ctx, repo, tree); err != nil {
		return nil, nil, err
	}
	if !reset {
		err = p.git(ctx, nil, "read-tree", "-m", "-u", tree)
	}
	if reset || err != nil && ctx.Err() == nil {
		// A changed file, or a file of a setup, is at the path of a file of the tree.
		err = p.git(ctx, nil, "read-tree", "--reset", "-u", tree)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the tree cannot be checked out for review: %w", err)
	}
	if index, err = os.ReadFile(filepath.Join(p.Dir, ".git", "index")); err != nil {
		return nil, nil, err
	}
	entries, err = gitx.ParseIndex(index, p.hashSize)
	return index, entries, err
}
