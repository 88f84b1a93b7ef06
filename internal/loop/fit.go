package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
)

// gitlink is the mode of a submodule's commit in a tree.
const gitlink = "160000"

// checkFit returns the staged or left out files that must not be committed, with the reasons by path: a file larger
// than maxSize bytes (0: no limit), an unreadable file, which the commit would lack, a submodule commit that is on none
// of its remote branches and tags, so that nobody else could check it out, a submodule with edited files, and a
// .gitmodules that git refuses. Without such a file it starts no process.
func checkFit(ctx context.Context, g *gitx.Git, wt gitx.Worktree, changes []gitx.FileChange, leftOut []string,
	maxSize int64) (unfit map[string]string, err error) {
	unfit = map[string]string{}
	tooLarge := func(path string, size int64) {
		unfit[path] = fmt.Sprintf("%d bytes are more than the %d of tilth.maxFileSize; remove or ignore it", size,
			maxSize)
	}
	for _, path := range leftOut {
		at := filepath.Join(wt.Path, path)
		fi, err := os.Lstat(at)
		switch {
		case err != nil || !fi.IsDir() && !fi.Mode().IsRegular():
		case !fi.IsDir() && maxSize > 0 && fi.Size() > maxSize:
			tooLarge(path, fi.Size())
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
	var large []string
	sizes := gitx.InRepo(wt.Common, "cat-file", "--batch-check=%(objectsize)")
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
		switch {
		case c.Mode == gitlink:
			is, err := isPublished(published, g, wt, filepath.Join(wt.Path, c.Path), c.OID)
			if err != nil && (ctx.Err() != nil || published.Err() == nil) {
				return nil, err
			}
			if !is {
				unfit[c.Path] = "the submodule's commit " + c.OID +
					" is on none of its remote branches; push it there, or undo this change"
			}
		case c.Status != "D" && maxSize > 0:
			// The worktree's file was staged, except for filters; then the object's size decides.
			if fi, err := os.Lstat(filepath.Join(wt.Path, c.Path)); err != nil || fi.Size() > maxSize {
				large, sizes.Stdin = append(large, c.Path), append(sizes.Stdin, c.OID+"\n"...)
			}
		}
	}
	if len(large) == 0 {
		return unfit, nil
	}
	out, err := g.Line(ctx, sizes)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(out, "\n") {
		size, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git cat-file: %q is not a size", line)
		}
		if size > maxSize {
			tooLarge(large[i], size)
		}
	}
	return unfit, nil
}

// modulesUnfit returns the fault of a .gitmodules, or "": a file that crashes git, or that git takes for an attack,
// breaks most commands in every checkout.
func modulesUnfit(ctx context.Context, g *gitx.Git, wt gitx.Worktree, blob string) (why string, err error) {
	settings, err := g.List(ctx, gitx.InRepo(wt.Common, "config", "-z", "--blob", blob, "--list"))
	if gitx.ExitCode(err) > 0 {
		return "git cannot read it: " + err.Error(), nil
	}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "\n")
		if strings.HasSuffix(key, ".update") && strings.HasPrefix(value, "!") {
			return "git refuses a submodule whose update is a command", nil
		}
	}
	return "", err
}

// publishedTime bounds the search for submodule commits, because a worker's repository could make it endless.
const publishedTime = 2 * time.Minute

// isPublished reports whether a commit is reachable from a remote branch or a tag of the repository at dir. That is the
// worker's, so that git looks at it behind the wall.
func isPublished(ctx context.Context, g *gitx.Git, wt gitx.Worktree, dir, commit string) (bool, error) {
	gitDir, err := gitx.CommonDirOf(dir)
	if err != nil {
		return false, nil
	}
	c := gitx.InRepo(gitDir, "rev-list", "--max-count=1", commit, "--not", "--remotes", "--tags", "--")
	c.Tree, c.Vars = dir, []string{"GIT_NO_LAZY_FETCH=1"}
	if g.Sandbox != nil {
		box, err := g.Sandbox()
		if err != nil {
			return false, err
		}
		c.Box = box.Reading(gitDir, wt.Common)
	}
	out, err := g.Read(ctx, c)
	if gitx.ExitCode(err) == 128 {
		return false, nil // the commit, or what a ref names, is not there
	}
	return err == nil && len(out) == 0, err
}
