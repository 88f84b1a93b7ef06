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

// maxLinks is how many symlinks a path may lead through.
const maxLinks = 40

// clean turns a path from the model into a slash-separated path relative to the worktree. An absolute path is accepted
// if it is in the worktree.
func (b *BuiltinTools) clean(name string) (string, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return "", errors.New("the path is empty")
	case strings.ContainsRune(name, 0):
		return "", errors.New("the path holds a NUL byte")
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

// inside makes an absolute path relative to the worktree, under either name of it.
func (b *BuiltinTools) inside(name string) (string, bool) {
	for _, top := range []string{b.dir, b.real} {
		if rel, err := filepath.Rel(top, name); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

var errGitsOwn = &blocked{"git's own files must not be read or written; use git commands"}

// hasGit reports whether a component is git's own name, which file systems that ignore case know under others.
func hasGit(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool {
		return strings.EqualFold(strings.TrimRight(part, ". "), ".git")
	})
}

// resolve cleans a path and follows its symlinks, so that writes go to the target of a link and git's own files are
// recognised under any name. Missing parts stay as they are. os.Root protects against links that change afterwards.
func (b *BuiltinTools) resolve(name string) (string, error) {
	rel, err := b.clean(name)
	if err != nil {
		return "", err
	}
	done, rest := ".", strings.Split(rel, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		info, err := b.root.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many symbolic links", text.Clip(name, 200))
		}
		target, err := b.root.Readlink(next)
		if err != nil {
			return "", describePath(name, err)
		}
		if filepath.IsAbs(target) {
			return "", &blocked{fmt.Sprintf("%s is a symbolic link out of the worktree", text.Clip(next, 200))}
		}
		// The link's `..` may leave the directory but not the worktree, and the path before it is already resolved, so
		// joining is exact.
		joined := path.Join(done, filepath.ToSlash(target), path.Join(rest...))
		if joined == ".." || strings.HasPrefix(joined, "../") {
			return "", &blocked{fmt.Sprintf("%s is a symbolic link out of the worktree", text.Clip(next, 200))}
		}
		done, rest = ".", strings.Split(joined, "/")
	}
	if hasGit(done) {
		return "", errGitsOwn
	}
	return done, nil
}

// isGitFile reports whether an opened file is the worktree's .git, under any name.
func (b *BuiltinTools) isGitFile(info os.FileInfo) bool {
	own, err := b.root.Lstat(".git")
	return err == nil && os.SameFile(own, info)
}

// checkPath refuses paths that policy does not allow.
func checkPath(b *BuiltinTools, in *arguments) (err error) {
	in.rel, err = b.resolve(in.text["path"])
	return err
}

// cause strips the operation and path that the os package puts before an error:
// here the tool and the model's own path say it better.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		return linkErr.Err
	}
	return err
}

// describePath is the error about a path, in the model's words.
func describePath(name string, err error) error {
	inner := cause(err)
	if strings.Contains(inner.Error(), "escapes from parent") {
		return &blocked{text.Clip(name, 200) + " leads out of the worktree"}
	}
	return fmt.Errorf("%s: %w", text.Clip(name, 200), inner)
}
