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

// Result is the result of verifying a session.
type Result struct {
	SessionID string `json:"session_id"`
	// Anchored reports whether any commit covers the record.
	Anchored      bool         `json:"anchored"`
	Bytes         int64        `json:"bytes"`          // size of the record
	AnchoredBytes int64        `json:"anchored_bytes"` // bytes covered by the last commit
	Commits       []Commit     `json:"commits"`        // oldest first
	Differences   []Difference `json:"differences"`    // in the order of the record
	Notes         []string     `json:"notes"`          // remarks that are not differences
}

// Commit is one commit of the branch.
type Commit struct {
	SHA     string `json:"sha"`
	Kind    Kind   `json:"kind"`
	Task    string `json:"task,omitempty"`
	Subject string `json:"subject"`
	Line    int    `json:"line,omitempty"` // line of the record, if known
}

// Kind is the author of a commit: git-tilth in one of its roles, or another author.
type Kind string

// The kinds of commits.
const (
	Seed        Kind = "seed"
	Task        Kind = "task"
	Placeholder Kind = "placeholder"
	Inherited   Kind = "inherited" // from the session that was forked
	Other       Kind = "other"     // another author's
	Unknown     Kind = "unknown"   // claims to be the session's, but the record does not have it
)

// Difference is one thing that does not agree with another.
type Difference struct {
	File   string `json:"file,omitempty"` // file in the session's directory
	Line   int    `json:"line,omitempty"`
	Commit string `json:"commit,omitempty"`
	What   string `json:"what"`

	off int64 // offset in the record, from which Line is counted; -1 for none
}

// String returns the difference as one line.
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
	commits []gitx.Commit // commits since the base, oldest first
}

// Session verifies a session that is not running.
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

// read reads the record, and the branch's commits from the record's base.
func (c *check) read(ctx context.Context, common string) (err error) {
	if c.story, err = readStory(c.s.Path(session.RecordFile)); err != nil {
		return err
	}
	c.Bytes = c.story.end
	if c.story.skipped > 0 {
		c.note("skipped %s of the record: not events", text.Plural(c.story.skipped, "line"))
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
		c.differ(-1, "", "the base commit of the branch is not in the repository, or not in the record")
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
		c.note("the record has no seed: its preparation was not finished")
	}
	return nil
}

// differ adds a difference; off is its offset in the record, or -1.
func (c *check) differ(off int64, commit, what string, args ...any) {
	d := Difference{Commit: commit, What: fmt.Sprintf(what, args...), off: off}
	if off >= 0 {
		d.File = session.RecordFile
	}
	c.Differences = append(c.Differences, d)
}

// differIn adds a difference in another file of the session.
func (c *check) differIn(file string, line int, what string, args ...any) {
	c.Differences = append(c.Differences, Difference{File: file, Line: line, What: fmt.Sprintf(what, args...), off: -1})
}

func (c *check) note(what string, args ...any) {
	c.Notes = append(c.Notes, text.VisibleLine(fmt.Sprintf(what, args...)))
}

// number converts offsets in the record to lines, in one pass, and sorts the differences by them.
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
		return cmp.Compare(uint64(a.off), uint64(b.off)) // -1, not in the record, sorts last
	})
	return nil
}

// countLines fills in the number of the line that begins at each offset.
func countLines(path string, lines map[int64][]*int) error {
	f, err := jsonl.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no lines
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

// said is a commit in the record.
type said struct {
	off         int64 // offset of the event
	task        string
	placeholder bool
}

// history is the content of the record, read once from its beginning: its State, and the facts that the commits are
// compared with.
type history struct {
	record.State
	end      int64 // size of the record
	skipped  int   // lines that are not events
	commits  map[string]said
	twice    []int64                               // offsets of events that name a commit again
	accepted map[string][]*record.EvaluatorVerdict // verdicts by task
	marked   bool                                  // the last event marks a task: prd.json may not have it yet
	// A fork begins with tasks that another session did.
	forkedFrom string
	shared     map[string]string // their commits
}

func readStory(path string) (*history, error) {
	st := &history{commits: map[string]said{}, accepted: map[string][]*record.EvaluatorVerdict{},
		shared: map[string]string{}}
	var err error
	st.end, st.skipped, err = record.Scan(path, 0, func(l record.Line) error {
		st.see(l)
		return nil
	})
	return st, err
}

// seed returns the seed's commit, "" where none is on record.
func (st *history) seed() string {
	if st.Seed == nil {
		return ""
	}
	return st.Seed.SHA
}

// live returns the commit of a finished task, else "".
func (st *history) live(task string) string {
	if st.StatusOf(task) != session.TaskDone {
		return ""
	}
	return st.Tasks[task].Commit
}

// cut reports whether the record ends in the middle of work or of a mark, which prd.json may not have yet.
func (st *history) cut() bool {
	return st.marked || st.Stop == nil || record.ReasonOf(st.Stop.Reason).Cuts
}

// see applies one event. It does not decode the many events that do not concern a task's end.
func (st *history) see(l record.Line) {
	switch l.Type {
	case "session_start", "seed_committed", "session_resume", "context_reset", "evaluator_verdict", "ledger_appended",
		"task_failed", "commit", "task_marked", "stop", "session_rewound", "session_undone":
	default:
		return
	}
	st.marked = l.Type == "task_marked"
	e := l.Event()
	st.Apply(l, e)
	switch e := e.(type) {
	case *record.SessionStart:
		if e.Phase == "fork" {
			st.forkedFrom = e.ForkedFrom
			for task, was := range e.Tasks {
				st.shared[task] = was.Commit
			}
		}
	case *record.EvaluatorVerdict:
		if e.Accepted() {
			st.accepted[e.TaskID] = append(slices.Clip(st.accepted[e.TaskID]), e)
		}
	case *record.Commit:
		if _, again := st.commits[e.SHA]; e.Aside != "" {
		} else if again {
			st.twice = append(st.twice, l.Off)
		} else {
			st.commits[e.SHA] = said{l.Off, e.TaskID, e.Placeholder}
		}
	}
}

// tasks compares prd.json with the record. After a crash, prd.json may lack the last change of a status, because it is
// written after the record.
func (c *check) tasks() []session.Task {
	tasks, err := c.s.StoredTasks()
	if err != nil {
		c.differIn(session.TasksFile, 0, "%s", err)
		return nil
	}
	for _, t := range tasks {
		said := c.story.StatusOf(t.ID)
		late := c.story.cut() && (t.Status == session.TaskPending || t.Status == session.TaskFailed)
		if t.Status != said && !late {
			c.differIn(session.TasksFile, 0, "%s is %s, but %s in the record", t.ID, t.Status, said)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(c.story.Tasks)) {
		if c.story.live(task) != "" && session.IndexOf(tasks, task) < 0 {
			c.differIn(session.TasksFile, 0, "%s is missing, but its commit is in the record", task)
		}
	}
	return tasks
}

// ledgers compares the ledgers of the plan's tasks with the record. The last entry may be missing after a crash. A
// fork's ledger may have entries from another session's record.
func (c *check) ledgers(plan []session.Task) error {
	for _, t := range plan {
		of := c.story.Tasks[t.ID]
		if of.Shared {
			continue
		}
		said, err := c.s.RecordedLedger(of.Ledger)
		if err != nil {
			return err
		}
		entries, err := c.s.ReadLedger(t.ID, 0)
		if err != nil {
			return err
		}
		c.ledger(filepath.Join(session.LedgerDir, t.ID+".jsonl"), said, entries, of.Attempt.Unledgered)
	}
	return nil
}

// ledger compares the entries of a ledger with the record. With mayMiss the ledger may lack the last one.
func (c *check) ledger(file string, said, entries []session.LedgerEntry, mayMiss bool) {
	for i, e := range entries {
		switch {
		case i >= len(said):
			c.differIn(file, i+1, "the record has no such entry")
		case said[i].Says() != e.Says():
			c.differIn(file, i+1, "it differs from the record")
		}
	}
	if missing := len(said) - len(entries); missing > 1 || missing == 1 && !mayMiss {
		c.differIn(file, len(entries)+1, "the record has %d entries, this ledger %d", len(said), len(entries))
	}
}
