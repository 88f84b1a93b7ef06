// Package verify compares the parts of a session: the commits of its branch, the record, the ledgers, the task list and
// the seed's tests. It only reads, and trusts nothing that a worker can write: a commit is the harness's if the record
// names it, and the record is unchanged up to the hash in such a commit. Nothing proves the record after the last such
// commit; Result.AnchoredBytes is the proven length.
package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Result is the result of verifying a session.
type Result struct {
	SessionID string `json:"session_id"`
	// Anchored reports whether any commit holds the record.
	Anchored      bool         `json:"anchored"`
	Bytes         int64        `json:"bytes"`          // of the record
	AnchoredBytes int64        `json:"anchored_bytes"` // those that the last commit vouches for
	Commits       []Commit     `json:"commits"`        // oldest first
	Differences   []Difference `json:"differences"`    // in the order of the record
	Notes         []string     `json:"notes"`          // what is no difference and worth a line
}

// Commit is one commit of the branch.
type Commit struct {
	SHA     string `json:"sha"`
	Kind    Kind   `json:"kind"`
	Task    string `json:"task,omitempty"`
	Subject string `json:"subject"`
	Line    int    `json:"line,omitempty"` // of the record, where it is named
}

// Kind is the author of a commit: the harness in one of its roles, or somebody else.
type Kind string

// The kinds of commits.
const (
	Seed        Kind = "seed"
	Task        Kind = "task"
	Placeholder Kind = "placeholder"
	Inherited   Kind = "inherited" // of the session that this one was forked from
	Other       Kind = "other"     // someone else's
	Unknown     Kind = "unknown"   // it says that it is the session's, and the record does not
)

// Difference is one thing that does not agree with another.
type Difference struct {
	File   string `json:"file,omitempty"` // of the session's directory
	Line   int    `json:"line,omitempty"`
	Commit string `json:"commit,omitempty"`
	What   string `json:"what"`

	off int64 // in the record, from which Line is counted; -1 for none
}

// String is the difference as one line.
func (d Difference) String() string {
	where := d.File
	if d.Line > 0 {
		where += fmt.Sprintf(":%d", d.Line)
	}
	if d.Commit != "" {
		where = strings.TrimPrefix(where+", commit "+short(d.Commit), ", ")
	}
	if where == "" {
		return text.VisibleLine(d.What)
	}
	return text.VisibleLine(where + ": " + d.What)
}

// check is one pass over a session.
type check struct {
	Result
	git     *gitx.Git
	s       *session.Session
	cp      *session.Checkpoint
	story   *history
	commits []gitx.Commit // since the base, oldest first
}

// Session verifies a session that is at rest.
func Session(ctx context.Context, g *gitx.Git, s *session.Session) (*Result, error) {
	c := &check{git: g, s: s, Result: Result{
		SessionID: s.ID, Commits: []Commit{}, Differences: []Difference{}, Notes: []string{},
	}}
	var common string
	var err error
	if c.cp, common, err = held.AtRest(s); err != nil {
		return nil, err
	}
	if c.cp, err = s.StoredCheckpoint(); err != nil {
		return nil, err
	}
	if err := c.read(ctx, common); err != nil {
		return nil, err
	}
	if err := c.branch(ctx, common); err != nil {
		return nil, err
	}
	if c.story.seed() != "" {
		if err := c.ledgers(c.tasks()); err != nil {
			return nil, err
		}
	}
	return &c.Result, c.number()
}

// read reads the record, and the commits of the branch from where it begins.
func (c *check) read(ctx context.Context, common string) (err error) {
	if c.story, err = readStory(c.s.Path(session.RecordFile)); err != nil {
		return err
	}
	c.Bytes = c.story.end
	if c.story.skipped > 0 {
		c.note("%s of the record skipped: no events", text.Plural(c.story.skipped, "line"))
	}
	tip, there, err := c.git.BranchTip(ctx, common, c.s.Branch())
	if err != nil {
		return err
	}
	if c.story.seed() == "" {
		return c.unseeded(ctx, common, tip)
	}
	if !there {
		c.differ(-1, "", "the branch %s is gone", c.s.Branch())
		return nil
	}
	base, err := c.git.RevParse(ctx, common, c.story.Base+"^{commit}")
	if err != nil {
		c.differ(-1, "", "the commit at which the branch begins is not in the repository, or not on record")
		return nil
	}
	if c.commits, err = c.git.Log(ctx, common, tip, base, 0); err != nil {
		return err
	}
	slices.Reverse(c.commits)
	return nil
}

// unseeded checks a record without a seed.
func (c *check) unseeded(ctx context.Context, common, tip string) error {
	worked, err := held.Worked(ctx, c.git, c.s, c.cp, common, tip)
	switch {
	case err != nil:
		return err
	case worked:
		c.differIn(session.RecordFile, 0, held.WorkedUnseeded)
	default:
		c.note("its seed is not on record: it was never finished")
	}
	return nil
}

// differ takes note of a difference; off is where the record has it, -1 for nowhere.
func (c *check) differ(off int64, commit, what string, args ...any) {
	d := Difference{Commit: commit, What: fmt.Sprintf(what, args...), off: off}
	if off >= 0 {
		d.File = session.RecordFile
	}
	c.Differences = append(c.Differences, d)
}

// differIn takes note of a difference in another file of the session.
func (c *check) differIn(file string, line int, what string, args ...any) {
	c.Differences = append(c.Differences, Difference{File: file, Line: line, What: fmt.Sprintf(what, args...), off: -1})
}

func (c *check) note(what string, args ...any) {
	c.Notes = append(c.Notes, text.VisibleLine(fmt.Sprintf(what, args...)))
}

// number turns offsets in the record into lines, with one pass over it, and sorts the differences by them.
func (c *check) number() error {
	lines := map[int64][]*int{}
	for i, d := range c.Differences {
		if d.off >= 0 {
			lines[d.off] = append(lines[d.off], &c.Differences[i].Line)
		}
	}
	for i, m := range c.Commits {
		if said, ok := c.story.commits[m.SHA]; ok {
			lines[said.off] = append(lines[said.off], &c.Commits[i].Line)
		}
	}
	if err := countLines(c.s.Path(session.RecordFile), lines); err != nil {
		return err
	}
	slices.SortStableFunc(c.Differences, func(a, b Difference) int {
		return cmp.Compare(uint64(a.off), uint64(b.off)) // what is nowhere in the record, at -1, comes last
	})
	return nil
}

// countLines fills in the number of the line that begins at each offset.
func countLines(path string, lines map[int64][]*int) error {
	f, err := jsonl.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there are no lines
	}
	if err != nil {
		return err
	}
	defer f.Close()
	n, from := lineCount(1), int64(0)
	for _, at := range slices.Sorted(maps.Keys(lines)) {
		if _, err := io.Copy(&n, io.NewSectionReader(f, from, at-from)); err != nil {
			return err
		}
		for _, line := range lines[at] {
			*line = int(n)
		}
		from = at
	}
	return nil
}

// lineCount counts the lines that are written to it.
type lineCount int

func (n *lineCount) Write(p []byte) (int, error) {
	*n += lineCount(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

func short(sha string) string { return text.Head(sha, 10) }
