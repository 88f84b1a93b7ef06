package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
)

// remoteConfig follows the user's settings in a scratch repository that uses a remote. Git prunes, checks out and
// sends nothing else, runs no hook, checks fetched objects, and hides no ref.
const remoteConfig = `[core]
	bare = true
	hooksPath = /dev/null
	sharedRepository = 0600
	logAllRefUpdates = false
[fetch]
	fsckObjects = true
	recurseSubmodules = false
	prune = false
	writeCommitGraph = false
[push]
	recurseSubmodules = no
	followTags = false
	gpgSign = false
[uploadpack]
	hideRefs = !refs/tilth
[gc]
	auto = 0
`

// scratchRepo is a bare repository that borrows the user's objects: writing, fetching and pushing there leaves no trace
// in the user's repository.
//
// In a dry run a temporary one replaces it. remove deletes everything fetched and written there; nothing else changes.
type scratchRepo struct {
	git    *gitx.Git // for commands in the scratch repository
	out    *gitx.Git // for commands with the remote
	common string    // common directory of the repository that lends its objects
	dir    string
	place  string // its path; in a dry run that is not dir
	remove func()
	remote string // the remote: a name, a URL or a path
	at     string // a remote's relative path starts here
}

// nobody is the author of commits with sessions and claims.
const nobody = "git-tilth <git-tilth@localhost> 0 +0000"

// openScratch opens the scratch repository in dir, or creates it over the one at common. It uses the remotes of that
// repository.
func openScratch(g *gitx.Git, common, dir string) (s *scratchRepo, err error) {
	s = &scratchRepo{git: g, out: g, common: common, dir: dir, place: dir, remove: func() {}}
	if g.IsDryRun() {
		err = s.dryRunCopy()
	} else {
		err = gitx.Borrow(common, dir)
	}
	if err == nil {
		err = s.configure()
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// dryRunCopy creates a temporary repository with everything in the one at place.
func (s *scratchRepo) dryRunCopy() (err error) {
	dir, remove, err := proc.TempDir()
	if err != nil {
		return err
	}
	s.dir, s.remove, s.git = dir, remove, s.out.DryRunCopy(dir, s.place)
	var more []string
	refs := filepath.Join(s.place, "refs")
	if _, err := os.Stat(refs); err == nil {
		more = append(more, s.place)
		if err := os.CopyFS(filepath.Join(dir, "refs"), os.DirFS(refs)); err != nil {
			return err
		}
	}
	return gitx.Borrow(s.common, dir, more...)
}

// configure writes the settings.
func (s *scratchRepo) configure() error {
	own, err := os.ReadFile(filepath.Join(s.dir, "config"))
	if err != nil {
		return err
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s.common)
	config := fmt.Sprintf("[include]\n\tpath = \"%s/config\"\n\tpath = \"%[1]s/config.worktree\"\n", quoted)
	config += string(own) + remoteConfig
	return os.WriteFile(filepath.Join(s.dir, "config"), []byte(config), 0o600)
}

// clearLocks removes locks and half written refs of killed git processes in the scratch repository. Its index may be
// that of a worktree at path.
func (s *scratchRepo) clearLocks(ctx context.Context, path string) error {
	var names []string
	_ = filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "objects" {
			return filepath.SkipDir
		}
		if strings.Contains(filepath.Base(name), jsonl.TempMark) {
			return os.Remove(name)
		}
		if rel, relErr := filepath.Rel(s.dir, name); strings.HasSuffix(name, ".lock") && relErr == nil {
			names = append(names, rel)
		}
		return nil
	})
	return s.git.ClearLocks(ctx, s.dir, path, s.dir, names...)
}

// write writes an object and returns its id. kind is tree or commit.
func (s *scratchRepo) write(ctx context.Context, kind string, content []byte) (id string, err error) {
	c := s.command("hash-object", "-t", kind, "-w", "--stdin")
	c.Stdin = content
	out, err := s.git.Read(ctx, c) // not listed in a dry run
	return strings.TrimSpace(string(out)), err
}

// writeCommit writes a commit without author and time, so that equal states are equal commits.
func (s *scratchRepo) writeCommit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	text := "tree " + tree + "\n"
	for _, p := range parents {
		text += "parent " + p + "\n"
	}
	return s.write(ctx, "commit", fmt.Appendf(nil, "%sauthor %s\ncommitter %s\n\n%s\n", text, nobody, nobody, message))
}

func (s *scratchRepo) ref(name string) string { return held.Ref(s.dir, name) }

func (s *scratchRepo) setRef(name, id string) error { return held.SetRef(s.dir, name, id) }

// last returns the newest session commit that was written here or came from the remote, "" for none.
func (s *scratchRepo) last(id string) string { return cmp.Or(s.ref(writtenRef), s.ref(sessionRef(id))) }

// RemoteError is a fetch or a push that failed.
type RemoteError struct{ error }

// Unwrap is git's own error.
func (e *RemoteError) Unwrap() error { return e.error }

// push updates refs of the remote, all or none, and only if the refs in leases have the given values. A dry run asks
// the remote whether the push would succeed.
func (s *scratchRepo) push(ctx context.Context, leases, specs []string) error {
	var args []string
	if !strings.ContainsAny(s.remote, "=:/") { // a name: a mirror accepts no refs by name
		args = append(args, "-c", "remote."+s.remote+".mirror=false")
	}
	args = append(args, "push", "--quiet", "--atomic", "--no-verify", "--no-follow-tags")
	for _, lease := range leases {
		args = append(args, "--force-with-lease="+lease)
	}
	_, err := s.out.Mutate(ctx, s.talk(s.place, args, specs))
	if s.out.IsDryRun() && err == nil {
		_, err = s.git.Read(ctx, s.talk(s.dir, append(args, "--dry-run"), specs))
	}
	return remoteError(err)
}

// fetch fetches refs of the remote into the scratch repository. The user's repository may have pruned rewound commits:
// then it fetches all objects again.
func (s *scratchRepo) fetch(ctx context.Context, specs ...string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap="}
	_, err := s.git.Mutate(ctx, s.talk(s.dir, args, specs))
	if err != nil && ctx.Err() == nil && s.dropPruned(ctx) {
		args = append([]string{"-c", "fetch.negotiationAlgorithm=noop"}, args...)
		_, err = s.git.Mutate(ctx, s.talk(s.dir, args, specs))
	}
	return remoteError(err)
}

// remoteRef returns the current value of a remote ref, "" for none.
func (s *scratchRepo) remoteRef(ctx context.Context, name string) (string, error) {
	out, err := s.git.Read(ctx, s.talk(s.dir, []string{"ls-remote", "--quiet"}, []string{name}))
	for line := range strings.Lines(string(out)) {
		if id, at, _ := strings.Cut(strings.TrimSpace(line), "\t"); at == name {
			return id, nil
		}
	}
	return "", remoteError(err)
}

// dropPruned removes refs to missing commits, and reports whether there was one.
func (s *scratchRepo) dropPruned(ctx context.Context) (dropped bool) {
	refs, err := s.git.Refs(ctx, s.dir)
	if err != nil {
		return false
	}
	for name, id := range refs {
		if _, err := s.git.Read(ctx, s.command("cat-file", "-e", id)); gitx.ExitCode(err) > 0 {
			dropped = s.setRef(name, "") == nil || dropped
		}
	}
	return dropped
}

// talk returns a git command, in a git directory, with the remote and its refs.
func (s *scratchRepo) talk(dir string, args, specs []string) gitx.Command {
	c := gitx.InRepo(dir, slices.Concat(args, []string{"--", s.remote}, specs)...)
	c.Dir, c.Keys = s.at, true
	return c
}

func remoteError(err error) error {
	if err != nil {
		return &RemoteError{err}
	}
	return nil
}

func (s *scratchRepo) command(args ...string) gitx.Command { return gitx.InRepo(s.dir, args...) }

// messages returns the messages of the commits that the refs below prefix name, by ref.
func (s *scratchRepo) messages(ctx context.Context, prefix string) (map[string]string, error) {
	out, err := s.git.Read(ctx, s.command("for-each-ref", "--format=%(refname)%00%(contents)%00%00", prefix))
	found := map[string]string{}
	for part := range strings.SplitSeq(string(out), "\x00\x00\n") {
		if name, message, is := strings.Cut(part, "\x00"); is {
			found[name] = message
		}
	}
	return found, err
}

// state reads the message of a session commit.
func (s *scratchRepo) state(ctx context.Context, commit string) (st state, err error) {
	raw, err := s.git.Read(ctx, s.command("cat-file", "commit", commit))
	if err != nil {
		return st, err
	}
	_, message, _ := bytes.Cut(raw, []byte("\n\n"))
	return st, json.Unmarshal(message, &st)
}

// entry is a file of a tree.
type entry struct {
	Path, ID string
	Size     int64
}

// entries lists the files of a commit. Anything but a regular file is an error.
func (s *scratchRepo) entries(ctx context.Context, commit string, paths ...string) ([]entry, error) {
	out, err := s.git.Read(ctx, s.command(append([]string{"ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--"},
		paths...)...))
	if err != nil {
		return nil, err
	}
	var entries []entry
	for f := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, path, _ := strings.Cut(f, "\t")
		words := strings.Fields(meta)
		if len(words) != 4 || words[0] != "100644" || words[1] != "blob" {
			return nil, fmt.Errorf("%q is not a regular file", path)
		}
		size, err := strconv.ParseInt(words[3], 10, 64)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{path, words[2], size})
	}
	return entries, nil
}

// contents reads files that entries has listed, one behind the other.
func (s *scratchRepo) contents(ctx context.Context, entries []entry) (all []byte, err error) {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	files, err := s.git.FilesAt(ctx, s.dir, "", ids)
	for _, e := range entries {
		content, there := files[e.ID]
		if !there || int64(len(content)) != e.Size {
			return nil, errors.Join(err, fmt.Errorf("the object %s cannot be read", e.ID))
		}
		all = append(all, content...)
	}
	return all, err
}

// reaches reports whether a commit reaches another one.
func (s *scratchRepo) reaches(ctx context.Context, from, to string) bool {
	_, err := s.git.Read(ctx, s.command("merge-base", "--is-ancestor", to, from))
	return err == nil
}

// adopt copies a commit of the scratch repository, with all that it reaches, into the user's.
func (s *scratchRepo) adopt(ctx context.Context, ref string) error {
	return s.out.CopyObjects(ctx, s.place, s.common, ref)
}
