package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// unbundle brings the objects of a bundle into the repository. Nothing refers to them yet: whoever needs them moves a
// ref there at once.
func unbundle(ctx context.Context, g *gitx.Git, common, path string) error {
	if !g.IsDryRun() && gitx.Absent(path) {
		return errors.New(text.VisibleLine(path) + " is missing")
	}
	_, err := g.Mutate(ctx, gitx.InRepo(common, "bundle", "unbundle", path))
	return err
}

// bundleHead is the first commit that a bundle has, "" for none. Its objects may not be there yet.
func bundleHead(ctx context.Context, g *gitx.Git, common, path string) (sha string, err error) {
	if !isFile(path) {
		return "", errors.New("it is not a file")
	}
	out, err := g.Read(ctx, gitx.InRepo(common, "bundle", "list-heads", path))
	sha, _, _ = strings.Cut(string(out), " ")
	return sha, err
}

// isFile reports whether path is a file that git can read: at a pipe it would wait for ever.
func isFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

// WriteBundles writes a session's stashed work into bundles in dir, for a push. It returns their paths by name.
func WriteBundles(ctx context.Context, g *gitx.Git, s *session.Session, dir string) (map[string]string, error) {
	refs, err := os.ReadDir(s.Path(session.AsideDir))
	if err != nil || len(refs) == 0 {
		return nil, nil // none was ever made
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	bundles := map[string]string{}
	for _, e := range refs {
		name := e.Name() + ".bundle"
		ref := "refs/aside/" + e.Name()
		bundles[name] = filepath.Join(dir, name)
		c := gitx.InRepo(s.Path(session.KeptGitDir), "-c", "pack.threads=1", "bundle", "create", "--quiet",
			bundles[name], ref, "^"+ref+"^")
		if _, err := g.Mutate(ctx, c); err != nil {
			return nil, err
		}
	}
	return bundles, nil
}
