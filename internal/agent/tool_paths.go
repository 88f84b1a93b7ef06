package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// clean turns a path from the model into a slash-separated path relative to the worktree. It accepts an absolute path
// in the worktree.
func (b *BuiltinTools) clean(name string) (string, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return "", errors.New("the path is empty")
	case strings.ContainsRune(name, 0):
		return "", errors.New("the path contains a NUL byte")
	}
	rel := filepath.ToSlash(name)
	if filepath.IsAbs(name) {
		var ok bool
		if rel, ok = b.inside(name); !ok {
			return "", &blocked{text.Clip(name, 200) + " is outside the worktree; give a path relative to it"}
		}
	}
	rel = path.Clean(rel)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", &blocked{text.Clip(name, 200) + " leads out of the worktree"}
	}
	if hasGit(rel) {
		return "", errGitsOwn
	}
	return rel, nil
}

// inside makes an absolute path relative to the worktree, by either name of the worktree.
func (b *BuiltinTools) inside(name string) (string, bool) {
	for _, top := range []string{b.dir, b.real} {
		if rel, err := filepath.Rel(top, name); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

var errGitsOwn = &blocked{"git's own files must not be read or written; use git commands"}

// hasGit reports whether a component is .git, also in other case.
func hasGit(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool {
		return strings.EqualFold(strings.TrimRight(part, ". "), ".git")
	})
}

// isGitFile reports whether an opened file is the worktree's .git, under any name.
func (b *BuiltinTools) isGitFile(info os.FileInfo) bool {
	own, err := b.root.Lstat(".git")
	return err == nil && os.SameFile(own, info)
}

// checkPath refuses paths that the policy does not allow.
func checkPath(b *BuiltinTools, in *arguments) (err error) {
	if in.rel, err = b.clean(in.text["path"]); err != nil {
		return err
	}
	return b.permit(in.rel)
}

// permit refuses a path that leads, through links, out of the worktree or to git's own file. os.Root protects against
// links that change afterwards.
func (b *BuiltinTools) permit(rel string) error {
	info, err := b.root.Stat(rel)
	if err != nil {
		if refused, is := errors.AsType[*blocked](describePath(rel, err)); is {
			return refused
		}
		return nil
	}
	if b.isGitFile(info) {
		return errGitsOwn
	}
	return nil
}

// cause removes the operation and path that package os puts before an error, because the tool and the model's path are
// clearer.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		return linkErr.Err
	}
	return err
}

// describePath returns the error about a path, worded for the model.
func describePath(name string, err error) error {
	inner := cause(err)
	if strings.Contains(inner.Error(), "escapes from parent") {
		return &blocked{text.Clip(name, 200) + " leads out of the worktree"}
	}
	return fmt.Errorf("%s: %w", text.Clip(name, 200), inner)
}
