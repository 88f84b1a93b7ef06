package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// mark is a commit's trailer about the record before it.
type mark struct {
	size   int64
	sum    string
	commit string
}

// branch compares the commits of the branch with the record, and the record with the commits.
func (c *check) branch(ctx context.Context, common string) error {
	if c.commits == nil {
		return nil
	}
	var marks []mark
	seen := map[string]bool{}
	shared := c.shared()
	inherited := map[string][]gitx.Commit{}
	for i, commit := range c.commits {
		seen[commit.SHA] = true
		sig := held.SignatureOf(commit)
		m := Commit{SHA: commit.SHA, Kind: Other, Task: sig.Task, Subject: commit.Subject}
		if sig.Session == c.s.ID {
			m.Kind = c.kind(i, sig)
		} else if i < shared && sig.Session != "" {
			m.Kind = Inherited
			inherited[sig.Session] = append(inherited[sig.Session], commit)
		}
		c.Commits = append(c.Commits, m)
		switch {
		case m.Kind == Other:
			c.note("%s is by another author: %s", short(commit.SHA), commit.Subject)
		case m.Kind == Unknown, m.Kind == Inherited:
		case sig.Record != "":
			marks = c.marked(marks, commit, sig, c.at(commit.SHA))
		default:
			c.differ(c.at(commit.SHA), commit.SHA, "it has no Tilth-Record trailer")
		}
	}
	c.unnamed(seen)
	var err error
	c.AnchoredBytes, err = c.anchors(c.s.Path(session.RecordFile), c.Bytes, marks)
	c.Anchored = c.AnchoredBytes > 0
	for from, commits := range inherited {
		if err == nil {
			err = c.inherited(from, commits)
		}
	}
	if err != nil {
		return err
	}
	return c.tests(ctx, common)
}

// shared returns the number of commits that a fork may share with its original session.
func (c *check) shared() (n int) {
	for i, commit := range c.commits {
		if c.isShared(commit.SHA) {
			n = i + 1
		}
	}
	return n
}

// isShared reports whether a fork's record lists the commit as shared.
func (c *check) isShared(sha string) bool {
	return c.story.forkedFrom != "" &&
		(c.isSeed(sha) || slices.Contains(slices.Collect(maps.Values(c.story.shared)), sha))
}

// origin returns the history of another session of this root, or nil if it is not here.
func (c *check) origin(id string) (*history, error) {
	s, err := session.Store{Root: filepath.Dir(c.s.Dir)}.Find(id)
	if err != nil {
		return nil, nil // no such session
	}
	return readStory(s.Path(session.RecordFile))
}

// inherited compares the commits that a fork shares with the record of the original session, if it exists here.
func (c *check) inherited(from string, commits []gitx.Commit) error {
	theirs, err := c.origin(from)
	if err != nil {
		return err
	}
	if theirs == nil {
		c.note("%s inherited from %s, which has no record here", text.Plural(len(commits), "commit"), from)
		return nil
	}
	missing := func(commit gitx.Commit) bool {
		_, named := theirs.commits[commit.SHA]
		return !named && !strings.HasPrefix(commit.SHA, strings.ToLower(theirs.seed()))
	}
	ofTask := func(g gitx.Commit) bool { return held.SignatureOf(g).Task != "" }
	named := func(g gitx.Commit) bool { return ofTask(g) && !missing(g) }
	if slices.ContainsFunc(commits, ofTask) && !slices.ContainsFunc(commits, named) {
		c.note("%s inherited from %s, which was reset to its seed since", text.Plural(len(commits), "commit"), from)
		return nil
	}
	var marks []mark
	for _, commit := range commits {
		if missing(commit) {
			c.differ(-1, commit.SHA, "it is not in the record of session %s, which its trailer names", from)
		} else if sig := held.SignatureOf(commit); sig.Record != "" {
			marks = c.marked(marks, commit, sig, -1) // its hash gives the position in that record
		}
	}
	path := filepath.Join(filepath.Dir(c.s.Dir), from, session.RecordFile)
	_, err = c.anchors(path, theirs.end, marks)
	return err
}

// at returns the offset at which the record names a commit, or -1.
func (c *check) at(sha string) int64 {
	if s, ok := c.story.commits[sha]; ok {
		return s.off
	}
	if c.isSeed(sha) {
		return c.story.SeedAt
	}
	return -1
}

func (c *check) isSeed(sha string) bool {
	return c.story.seed() != "" && strings.HasPrefix(sha, strings.ToLower(c.story.seed()))
}

// kind returns the kind of the ith commit, which has the session's trailers, by the record. A dead process may have
// made the session's last commit without recording it, and others may have committed on top.
func (c *check) kind(i int, sig held.Signature) Kind {
	commit := c.commits[i]
	if c.isSeed(commit.SHA) {
		return Seed
	}
	s, named := c.story.commits[commit.SHA]
	tip := i == len(c.commits)-1
	last := !slices.ContainsFunc(c.commits[i+1:], func(g gitx.Commit) bool {
		return held.SignatureOf(g).Session == c.s.ID
	})
	switch {
	case named && s.task != sig.Task:
		c.differ(s.off, commit.SHA, "its trailer names %q, and the record %q", sig.Task, s.task)
	case named && s.placeholder != (sig.Failed != ""):
		c.differ(s.off, commit.SHA, "the commit and the record disagree on whether the task failed")
	case named && s.placeholder:
		return Placeholder
	case named:
		c.judged(s, commit)
	case sig.Task == "" && c.story.seed() == "" && len(c.commits) == 1:
		return Seed
	case tip && sig.Failed != "" && c.story.Tasks[sig.Task].Status == record.Failed:
		return Placeholder
	case last && c.isUncommitted(commit, sig, tip):
		return Task
	default:
		c.differ(-1, commit.SHA, "it has the session's trailers, but is not in the record%s", c.instead(sig.Task))
		return Unknown
	}
	return Task
}

// isUncommitted reports whether a commit has the tree that was accepted at the end of the last attempt at its task.
// In this case the branch is ahead of the record.
func (c *check) isUncommitted(commit gitx.Commit, sig held.Signature, tip bool) bool {
	v := c.story.Tasks[sig.Task].Attempt.Verdict
	if v == nil || !v.Accepted() || sig.Failed != "" || !slices.Equal(commit.Parents, []string{v.Base}) {
		return false
	}
	switch {
	case commit.Tree == v.Tree:
		c.note("%s of %s is ahead of the record: git tilth resume records it", short(commit.SHA), sig.Task)
	case tip:
		c.note("the tree of %s is not the accepted one: a commit hook changed it, or it is forged; "+
			"git tilth resume undoes the commit", short(commit.SHA))
	}
	return tip || commit.Tree == v.Tree
}

// instead names the commit that the record has for a task.
func (c *check) instead(task string) string {
	if sha := c.story.live(task); sha != "" {
		return fmt.Sprintf(", which names %s for %s", short(sha), task)
	}
	return ""
}

// judged compares a task's commit with the verdict on its tree.
func (c *check) judged(s said, commit gitx.Commit) {
	fits := func(v *record.EvaluatorVerdict) bool { return v.Tree == commit.Tree }
	stands := func(v *record.EvaluatorVerdict) bool {
		return fits(v) && slices.Equal(commit.Parents, []string{v.Base})
	}
	switch verdicts := c.story.accepted[s.task]; {
	case !slices.ContainsFunc(verdicts, fits):
		c.differ(s.off, commit.SHA, "no accepting verdict for %s names its tree %s", s.task, short(commit.Tree))
	case !slices.ContainsFunc(verdicts, stands):
		c.differ(s.off, commit.SHA, "its parent is not the commit on which %s was judged", s.task)
	}
}

// marked adds the mark of a commit. at is the commit's offset in the record, -1 for another session's record.
func (c *check) marked(marks []mark, commit gitx.Commit, sig held.Signature, at int64) []mark {
	m := mark{commit: commit.SHA}
	n, err := fmt.Sscanf(sig.Record, "%d %64s", &m.size, &m.sum)
	switch {
	case err != nil || n != 2 || sig.Record != fmt.Sprintf("%d %s", m.size, m.sum):
		c.differ(at, commit.SHA, "its trailer Tilth-Record is not a length and a hash")
		return marks
	case at >= 0 && m.size > at:
		c.differ(at, commit.SHA, "the record before it is shorter than its trailer says")
		return marks
	case len(marks) > 0 && m.size <= marks[len(marks)-1].size:
		c.differ(at, commit.SHA, "its trailer says that the record had not grown since the previous commit")
	}
	return append(marks, m)
}

// unnamed finds commits that the record names and the branch lacks.
func (c *check) unnamed(seen map[string]bool) {
	for _, off := range c.story.twice {
		c.differ(off, "", "the record names this commit twice")
	}
	if seed := c.story.seed(); seed != "" && !slices.ContainsFunc(c.commits, func(g gitx.Commit) bool {
		return c.isSeed(g.SHA)
	}) && seed != c.story.Base {
		c.differ(c.story.SeedAt, seed, "the seed's commit is not on the branch")
	}
	for task := range c.story.Tasks {
		if sha := c.story.live(task); sha != "" && !seen[sha] {
			c.differ(c.at(sha), sha, "the commit of %s is not on the branch", task)
		}
	}
}

// anchors compares a record of size bytes with the hashes, and returns the length that they confirm. It stops at the
// first wrong one.
func (c *check) anchors(path string, size int64, marks []mark) (anchored int64, err error) {
	f, err := jsonl.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := sha256.New()
	for _, m := range marks {
		if m.size > size {
			c.differ(anchored, m.commit, "the record has %d bytes, but had %d when the commit was made", size, m.size)
			return anchored, nil
		}
		if _, err := io.Copy(h, io.NewSectionReader(f, anchored, m.size-anchored)); err != nil {
			return anchored, err
		}
		if m.size < anchored || hex.EncodeToString(h.Sum(nil)) != m.sum {
			c.differ(anchored, m.commit, "the record was changed from this line on after the commit was made")
			return anchored, nil
		}
		anchored = m.size
	}
	return anchored, nil
}

// changedFiles lists by commit the paths that differ from its first parent.
func changedFiles(ctx context.Context, g *gitx.Git, common string, commits []gitx.Commit) (map[string][]string, error) {
	read := gitx.Command{Dir: common, Objects: true, Args: []string{
		"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--root", "--no-abbrev", "-O/dev/null",
	}}
	all := []string{"--filter=blob:none"}
	for _, c := range commits {
		ids := append([]string{c.SHA}, c.Parents[:min(1, len(c.Parents))]...)
		read.Stdin, all = append(read.Stdin, strings.Join(ids, " ")+"\n"...), append(all, ids...)
	}
	if err := g.FetchMissing(ctx, gitx.Worktree{Common: common, AdminDir: common}, all...); err != nil {
		return nil, err
	}
	// <commit> NUL, then for each of its files :100644 100644 <oid> <oid> M NUL path NUL
	f, err := g.List(ctx, read)
	changed := map[string][]string{}
	commit := ""
	for ; len(f) > 0; f = f[1:] {
		if !strings.HasPrefix(f[0], ":") {
			commit = f[0]
			continue
		}
		if f = f[1:]; len(f) == 0 {
			break
		}
		changed[commit] = append(changed[commit], f[0])
	}
	return changed, err
}

// tests finds the commits that change the seed's acceptance tests. A task with an accepted change may; that is a note.
func (c *check) tests(ctx context.Context, common string) error {
	changed, err := changedFiles(ctx, c.git, common, c.commits)
	if err != nil {
		return err
	}
	seed := slices.IndexFunc(c.commits, func(g gitx.Commit) bool { return c.isSeed(g.SHA) })
	if seed < 0 {
		return nil
	}
	ofSeed := map[string]bool{}
	for _, file := range changed[c.commits[seed].SHA] {
		ofSeed[file] = true
	}
	for _, m := range c.Commits[seed+1:] {
		for _, file := range changed[m.SHA] {
			switch {
			case !ofSeed[file]:
			case m.Kind == Task || m.Kind == Placeholder || m.Kind == Inherited:
				c.note("%s (%s of %s) changes the seed's test %s", short(m.SHA), m.Kind, m.Task, file)
			default:
				c.differ(c.at(m.SHA), m.SHA, "it changes the seed's test %s, and no accepted task does", file)
			}
		}
	}
	return nil
}
