package gitx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Location is the location of a repository. Paths are absolute, with symlinks resolved.
type Location struct {
	CommonDir string // shared by all worktrees of the repository
	GitDir    string // of this worktree; CommonDir in the main one
	TopLevel  string // of the work tree; "" when Bare
	Bare      bool
	Source    string // source in a session's checkpoint: TopLevel, or CommonDir if Bare
}

// Discover finds the repository of dir. environ is the environment of the user's shell, hook or alias; only here
// GIT_DIR and GIT_WORK_TREE count. The error is ErrNotFound or git's own.
func (g *Git) Discover(ctx context.Context, dir string, environ []string) (Location, error) {
	env := append(with(withoutKeys(environ), unattendedVars...), "LC_ALL=C")
	ask := func(what ...string) ([]string, error) {
		out, err := g.Read(ctx, Command{Dir: dir, Args: append([]string{"rev-parse"}, what...), env: env})
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), err
	}
	// --show-toplevel comes last, because in a bare repository or below .git git answers the others and then exits
	// with an error.
	questions := []string{"--is-bare-repository", "--git-common-dir", "--absolute-git-dir", "--show-toplevel"}
	answers, err := ask(questions...)
	var gitErr *commandError
	switch {
	case err == nil && len(answers) == 4:
	case errors.As(err, &gitErr) && len(answers) == 3:
		answers = append(answers, "")
	case errors.As(err, &gitErr) && strings.Contains(gitErr.Stderr, "not a git repository"):
		return Location{}, fmt.Errorf("%s: %w", dir, errNotRepo)
	case err == nil, errors.As(err, &gitErr) && len(answers) > 3:
		// A path has a newline, so each question gets its own command.
		answers = answers[:0]
		for _, q := range questions {
			a, err := ask(q)
			if err != nil && q != "--show-toplevel" {
				return Location{}, err
			}
			answers = append(answers, strings.Join(a, "\n"))
		}
	default:
		return Location{}, err
	}
	loc := Location{Bare: answers[0] == "true", CommonDir: absolute(dir, answers[1]), GitDir: absolute(dir, answers[2])}
	if !loc.Bare {
		loc.TopLevel = answers[3]
		loc.TopLevel = g.workTree(dir, loc)
		loc.Bare = loc.TopLevel == ""
	}
	loc.Source = cmp.Or(loc.TopLevel, loc.CommonDir)
	return loc, nil
}

// workTree finds the top level of a repository that is not bare. Below .git, git names none. In a hook that git
// started with GIT_DIR=. (post-receive), git names .git itself; the user means the work tree around it.
func (g *Git) workTree(dir string, loc Location) string {
	top := ""
	if loc.TopLevel != "" {
		top = absolute(dir, loc.TopLevel)
	}
	if top == "" || top == loc.GitDir {
		if filepath.Base(loc.GitDir) != ".git" {
			return ""
		}
		return filepath.Dir(loc.GitDir)
	}
	// A work tree named by GIT_WORK_TREE has no .git through which later reads could find its repository.
	if found, err := gitDirAt(top); err != nil || found != loc.GitDir {
		g.known.separate.set(top, loc.GitDir)
	}
	return top
}

// In returns a command in a directory of the user: a worktree, a directory in a worktree, or a repository.
func (g *Git) In(dir string, args ...string) Command {
	if gitDir, ok := g.known.separate.get(dir); ok {
		return Command{Dir: dir, Args: append([]string{"--git-dir=" + gitDir, "--work-tree=" + dir}, args...)}
	}
	// With an explicit git directory, safe.bareRepository=explicit works too.
	if checkGitDir(dir) == nil {
		return InRepo(dir, args...)
	}
	return Command{Dir: dir, Args: args}
}

// absolute makes p, which may be relative to dir, absolute. It resolves the symlinks of the existing part.
func absolute(dir, p string) string { return proc.RealPath(relativeTo(dir, p)) }

// CommonDirOf returns the common directory of the repository whose worktree (main, linked or of a submodule) or git
// directory is path. It reads git's files and starts no process. The error is fs.ErrNotExist if the repository no
// longer exists, else it names the unreadable file. An unreadable or incomplete repository still exists, because it
// may have the entry of a worktree.
func CommonDirOf(path string) (common string, err error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not an absolute path: %w", path, fs.ErrNotExist)
	}
	if common, err = gitDirAt(path); err == nil {
		common, err = commonDir(common)
	}
	if err == nil || !isAbsent(err) && !errors.Is(err, errNotRepo) {
		return common, err
	}
	for _, name := range []string{".git", "objects", "refs"} {
		if !isAbsent(err) && !absent(filepath.Join(path, name)) {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: %w", fs.ErrNotExist, err)
}

// gitDirAt returns the git directory of the worktree at path, or path itself if it is a git directory, with symlinks
// resolved.
func gitDirAt(path string) (string, error) {
	dotGit := filepath.Join(path, ".git")
	fi, err := os.Stat(dotGit)
	switch {
	case err == nil && fi.Mode().IsRegular():
		gitDir, err := readGitFile(dotGit)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(gitDir)
	case err == nil && fi.IsDir():
		if err := checkGitDir(dotGit); err == nil {
			return filepath.EvalSymlinks(dotGit)
		} else if !errors.Is(err, errNotRepo) {
			return "", err
		}
	case err != nil && !isAbsent(err):
		return "", err
	}
	if err := checkGitDir(path); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// isAbsent reports whether an error means that the path does not exist. A path that cannot be examined is not absent.
func isAbsent(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// commonDir returns the directory that gitDir shares with the other worktrees.
func commonDir(gitDir string) (string, error) {
	b, err := readFile(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, os.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(relativeTo(gitDir, trimLine(b)))
}

// checkGitDir checks that a git directory has the required files. The admin directory of a linked worktree has a
// commondir instead of objects. The error is errNotRepo, or names the unreadable file.
func checkGitDir(dir string) error {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	for _, name := range []string{"objects", "commondir"} {
		if err != nil {
			break
		}
		if _, err = os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		} else if isAbsent(err) && name == "objects" {
			err = nil
		}
	}
	if isAbsent(err) {
		err = fmt.Errorf("%s: %w", dir, errNotRepo)
	}
	return err
}

// readGitFile returns the git directory that a .git file points to.
func readGitFile(dotGit string) (string, error) {
	b, err := readFile(dotGit)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(trimLine(b), "gitdir: ")
	if !ok || target == "" {
		return "", fmt.Errorf("%s: %w: it names no git directory", dotGit, errNotRepo)
	}
	return relativeTo(filepath.Dir(dotGit), target), nil
}

// trimLine removes the line end of a file with one line.
func trimLine(b []byte) string { return strings.TrimRight(string(b), "\r\n") }

// relativeTo resolves a path in one of git's files, which may be relative to the file's directory
// (worktree.useRelativePaths, since git 2.48).
func relativeTo(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// LinkedCommon returns the common directory that the .git file of the worktree at path names. registered reports
// whether that repository has an entry for path. It starts no process. The error is ErrNotFound if there is no linked
// worktree at path, os.ErrNotExist if the link's target no longer exists, else the cause.
func LinkedCommon(path string) (common string, registered bool, err error) {
	dotGit := filepath.Join(path, ".git")
	admin, err := readGitFile(dotGit)
	if err != nil {
		// A worktree without read permission counts as one without a link.
		return "", false, fmt.Errorf("%s: %w", path, errNotRepo)
	}
	if filepath.Base(filepath.Dir(admin)) != "worktrees" {
		return "", false, fmt.Errorf("%s: %w: not a linked worktree", path, errNotRepo)
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(admin)))
	if err != nil {
		return "", false, err
	}
	if err := checkGitDir(real); err != nil {
		return "", false, err
	}
	admin = filepath.Join(real, "worktrees", filepath.Base(admin))
	back, err := readFile(filepath.Join(admin, "gitdir"))
	return real, err == nil && sameFile(relativeTo(admin, trimLine(back)), dotGit), nil
}
