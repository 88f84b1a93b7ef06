package loop

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// gitlink is the mode of a submodule's commit in a tree.
const gitlink = "160000"

// checkFit checks submodules and files that were not staged. It returns the paths that cannot be committed, with the
// reasons: a file larger than maxSize bytes (0: no limit), an unreadable file, which the commit would lack, a
// submodule commit that the remote in the seed's .gitmodules lacks, a submodule with edited files, and a .gitmodules
// that git refuses. Without such paths it starts no process.
func checkFit(ctx context.Context, g *gitx.Git, wt gitx.Worktree, seed string, changes []gitx.FileChange,
	leftOut []string, maxSize int64) (unfit map[string]string, err error) {
	unfit = map[string]string{}
	for _, path := range leftOut {
		at := filepath.Join(wt.Path, path)
		fi, err := os.Lstat(at)
		switch {
		case err != nil || !fi.IsDir() && !fi.Mode().IsRegular():
		case !fi.IsDir() && maxSize > 0 && fi.Size() > maxSize:
			unfit[path] = tooLarge(fi.Size(), maxSize)
		default:
			f, err := os.Open(at)
			if errors.Is(err, fs.ErrPermission) {
				unfit[path] = "it cannot be read; make it readable, remove or ignore it"
			}
			f.Close()
		}
	}
	edited, err := g.EditedModules(ctx, wt.Path)
	if err != nil {
		return nil, err
	}
	for _, path := range edited {
		unfit[path] = "an edit inside a submodule cannot be committed here; undo it there"
	}
	published, cancel := context.WithTimeout(ctx, publishedTime)
	defer cancel()
	for _, c := range changes {
		if c.Path == ".gitmodules" && c.Status != "D" {
			why, err := modulesUnfit(ctx, g, wt, c.OID)
			if err != nil {
				return nil, err
			}
			if why != "" {
				unfit[c.Path] = why
			}
		}
		if c.Mode != gitlink || c.Status == "D" {
			continue
		}
		is, why, err := g.IsPublished(published, wt.Common, seed, c.Path, c.OID)
		if err != nil && (ctx.Err() != nil || published.Err() == nil) {
			return nil, err
		}
		if !is {
			unfit[c.Path] = "the submodule's remote does not have its commit " + c.OID + ": " + why +
				"; push it there, or undo this change"
		}
	}
	return unfit, nil
}

// modulesUnfit returns the fault of a .gitmodules, or "". A .gitmodules that crashes git, or that git rejects as an
// attack, breaks most commands in every checkout.
func modulesUnfit(ctx context.Context, g *gitx.Git, wt gitx.Worktree, blob string) (why string, err error) {
	settings, err := g.List(ctx, gitx.InRepo(wt.Common, "config", "-z", "--blob", blob, "--list"))
	if gitx.ExitCode(err) > 0 {
		return "git cannot read it: " + err.Error(), nil
	}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "\n")
		if strings.HasSuffix(key, ".update") && strings.HasPrefix(value, "!") {
			return "git refuses a submodule with a command as its update setting", nil
		}
	}
	return "", err
}

// publishedTime limits the search for submodule commits, because a remote may never answer.
const publishedTime = 2 * time.Minute
