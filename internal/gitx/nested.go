package gitx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Repositories returns the repositories among the paths that StageAll left out.
func Repositories(wt Worktree, leftOut []string) []string {
	return slices.DeleteFunc(slices.Clone(leftOut), func(path string) bool {
		return ProductRoot(wt.Path, path+"/") != "" || !isRepository(filepath.Join(wt.Path, path))
	})
}

// cleanModules cleans the submodules in the index of gitDir, also nested ones. Only the worktree's direct submodules
// have a trusted source, because the others' objects are the worker's.
func (g *Git) cleanModules(ctx context.Context, gitDir, common, top string) error {
	list := InRepo(gitDir, "ls-files", "-z", "--stage")
	list.Tree = top
	entries, err := g.List(ctx, list)
	if err != nil {
		return ctx.Err() // git cannot read that index and enters no submodule
	}
	modules, sources := gitlinks(entries), map[string]string{}
	if filepath.Dir(filepath.Dir(gitDir)) == common && len(modules) > 0 {
		found, _ := g.modulesOf(ctx, gitDir, "HEAD")
		for _, m := range found {
			if name := filepath.FromSlash(m.name); name != "" && filepath.IsLocal(name) {
				sources[m.path] = filepath.Join(common, "modules", name)
			}
		}
	}
	for _, name := range modules {
		at := filepath.Join(top, filepath.FromSlash(name))
		own := filepath.Join(at, ".git")
		fi, err := os.Lstat(own)
		if err != nil {
			continue
		}
		if !fi.IsDir() {
			if to, err := gitDirAt(at); err != nil || !strings.HasPrefix(to, common+"/") {
				err = os.Remove(own)
				if err != nil {
					return err
				}
			}
			continue
		}
		if err := g.cleanModule(ctx, own, sources[name]); err != nil {
			return err
		}
		if err := g.cleanModules(ctx, own, common, at); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// cleanModule rewrites a submodule's config and removes its hooks. source is the submodule's repository in the user's
// repository, or "".
func (g *Git) cleanModule(ctx context.Context, gitDir, source string) error {
	config, err := g.moduleConfig(ctx, source)
	if err != nil {
		return err
	}
	for _, name := range []string{"hooks", "config.worktree", "commondir", "worktrees"} {
		err = errors.Join(err, proc.RemoveAll(filepath.Join(gitDir, name)))
	}
	if err != nil {
		return err
	}
	at := filepath.Join(gitDir, "config")
	if fi, err := os.Lstat(at); err == nil && fi.Mode().IsRegular() {
		if was, err := readFile(at); err == nil && string(was) == config {
			return nil
		}
	}
	return errors.Join(proc.RemoveAll(at), replaceFile(at, config))
}

// moduleConfig returns the config of a submodule in a checkout.
func (g *Git) moduleConfig(ctx context.Context, source string) (string, error) {
	var config strings.Builder
	config.WriteString(leastConfig(source))
	if source == "" {
		return config.String(), nil
	}
	origin, err := g.Line(ctx, InRepo(source, "config", "remote.origin.url"))
	if origin != "" {
		WriteSetting(&config, "remote.origin.url", origin)
		WriteSetting(&config, "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	}
	if ExitCode(err) == 1 {
		err = nil
	}
	return config.String(), err
}
