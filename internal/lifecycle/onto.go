package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// A move to a new base is a rewind to it. Its event lists the commits to repeat (record.Step): commits of the user
// unchanged, and changes of tasks, which are judged again. The next runs repeat them (loop/steps.go). Each repeated
// commit removes its step from the record's state. The files on disk after each step of the move are those of a rewind
// (rewind.go). `git tilth undo` restores the commits.

// Onto is a new base for a session's commits.
type Onto struct {
	Base   string                   // the commit to begin at, "" for the present one
	Merge  bool                     // merge the base instead of repeating the commits on it
	Gone   map[string]bool          // tasks whose commits are on the base
	Insert map[string][]record.Step // steps after a commit of the session, before the next one
}

// PlanOnto plans the move. Over means that there is nothing to do. The errors are those of PlanToSeed.
func PlanOnto(ctx context.Context, h *held.Handle, o Onto) (p GoBack, err error) {
	if p, err = begun(ctx, h, func(*journal) bool { return false }); err != nil || p.Begun {
		return p, err
	}
	if p, err = newPlan(ctx, h); err != nil {
		return p, err
	}
	if dirty, err := h.Git.IsDirty(ctx, p.Worktree.Path); err != nil || dirty {
		hint := held.GitLine(p.Worktree.Path, "status")
		if len(toDo(p.tasks)) > 0 {
			hint = "git tilth resume " + h.S.ID
		}
		return p, cmp.Or(err, held.Refuse(hint, "session %s has uncommitted work in its worktree", h.S.ID))
	}
	state, err := h.S.State()
	if err != nil {
		return p, err
	}
	if !state.Ran {
		return p, held.Refuse("git tilth run", "session %s has not been run", h.S.ID)
	}
	m := &move{h: h, state: state, plan: &p, Onto: o, tasks: map[string]record.TaskState{}}
	m.onto = record.Onto{Base: state.Base, Seed: p.seed}
	m.Base = cmp.Or(o.Base, state.Base)
	if m.verdicts, err = acceptedTrees(h.S); err != nil {
		return p, err
	}
	commits, _, err := held.CommitsSince(ctx, h.Git, h.Common, p.From, p.seed)
	if err != nil {
		return p, err
	}
	slices.Reverse(commits)
	has, err := m.has(ctx, p.From, m.Base)
	switch {
	case err != nil:
		return p, err
	case !has && o.Merge:
		p.What, err = "merge "+text.Head(m.Base, 10), m.merge(ctx, p.From, commits)
	case !has:
		p.What, err = "bring the commits onto "+text.Head(m.Base, 10), m.rebase(ctx, commits)
	case len(o.Insert) == 0:
		p.Over = true
		return p, nil
	default:
		p.SHA = p.seed
		for len(commits) > 0 && len(o.Insert[p.SHA]) == 0 {
			p.SHA, commits = commits[0].SHA, commits[1:]
		}
		m.insert(p.SHA)
		err = m.repeat(ctx, commits)
	}
	if err != nil {
		return p, err
	}
	p.seed = state.Base
	p.journal.To, p.journal.Onto = "base", &m.onto
	p.journal.After = condition{Worktree: held.Snapshot{Tip: p.SHA},
		Conversations: conversations(h.Checkpoint), Tasks: m.tasks}
	for i, t := range p.tasks {
		if state, moved := m.tasks[t.ID]; moved {
			p.tasks[i].Status = state.Status
			if state.Status == session.TaskPending {
				p.drop = append(p.drop, t.ID)
				delete(p.journal.After.Conversations, t.ID)
			}
		}
	}
	p.Pending = toDo(p.tasks)
	return p, nil
}

// move is a PlanOnto in progress.
type move struct {
	Onto
	h        *held.Handle
	state    *record.State
	plan     *GoBack
	verdicts map[string]*record.EvaluatorVerdict // verdicts by tree
	onto     record.Onto
	tasks    map[string]record.TaskState
}

func (m *move) has(ctx context.Context, tip, commit string) (bool, error) {
	base, err := m.h.MergeBase(ctx, tip, commit)
	return base == commit, err
}

// rebase repeats the seed on the new base and lists the commits to repeat.
func (m *move) rebase(ctx context.Context, commits []gitx.Commit) error {
	m.onto.Base, m.onto.Seed = m.Base, m.Base
	if m.plan.seed != m.state.Base {
		seed, err := m.h.Git.Log(ctx, m.h.Common, m.plan.seed, "", 1)
		if err != nil {
			return err
		}
		mark, err := m.h.RecordMark()
		if err != nil {
			return err
		}
		sha, made, err := m.h.Git.Repeat(ctx, m.h.Common, seed[0], m.Base,
			seed[0].Subject+"\n\n"+held.WithRecord(seed[0].Body, mark), m.h.Sign)
		if err == nil && len(made.Conflicts) > 0 {
			err = held.Refuse("git tilth update --merge "+m.h.S.ID, "the acceptance tests of session %s conflict with "+
				"the base in %s", m.h.S.ID, strings.Join(made.Conflicts, ", "))
		}
		if err != nil {
			return err
		}
		m.onto.Seed = sha
	}
	m.plan.SHA = m.onto.Seed
	return m.repeat(ctx, commits)
}

// repeat lists commits as steps.
func (m *move) repeat(ctx context.Context, commits []gitx.Commit) error {
	for _, c := range commits {
		sig := held.SignatureOf(c)
		if sig.Failed != "" && sig.Session == m.h.S.ID {
			return held.Refuse("git tilth resume "+m.h.S.ID, "%s has not been finished", sig.Task)
		}
		switch task := m.taskOf(c.SHA); {
		case task != "" && m.Gone[task]:
			m.tasks[task] = record.TaskState{Status: session.TaskDone}
		case task != "":
			m.carry(task, c.Parents[0], c)
			m.tasks[task] = record.TaskState{Status: session.TaskPending}
		default:
			merged := false // a merge of a commit that the base has
			if len(c.Parents) > 1 {
				var err error
				if merged, err = m.has(ctx, m.Base, c.Parents[1]); err != nil {
					return err
				}
			}
			if !merged {
				m.onto.Steps = append(m.onto.Steps, record.Step{Commit: c.SHA})
			}
		}
		m.insert(c.SHA)
	}
	return nil
}

func (m *move) insert(after string) {
	m.onto.Steps = append(m.onto.Steps, m.Insert[after]...)
}

// taskOf returns the finished task of a commit by the record, or "".
func (m *move) taskOf(sha string) string {
	for id, t := range m.state.Tasks {
		if t.Status == record.Done && t.Commit == sha {
			return id
		}
	}
	return ""
}

// carry adds the step that repeats a task's change from base.
func (m *move) carry(task, base string, c gitx.Commit) {
	v := record.EvaluatorVerdict{Case: record.JSON(map[string]any{"summary": c.Subject})}
	if was := m.verdicts[c.Tree]; was != nil {
		v = *was
	}
	v.Base, v.Tree = base, c.Tree
	m.onto.Steps = append(m.onto.Steps, record.Step{Task: task, Verdict: &v})
}

// merge makes the merge commit. Conflicting files get the base's version, and the last task that changed one becomes
// pending again. Without a conflict, the last task becomes pending, so that its validators check the merge.
func (m *move) merge(ctx context.Context, tip string, commits []gitx.Commit) error {
	b, remove, err := gitx.NewCommitBuilder(m.h.Git, m.h.Common)
	if err != nil {
		return err
	}
	defer remove()
	made, err := b.Merge(ctx, tip, m.Base)
	if err == nil && len(made.Conflicts) > 0 {
		made.Tree, err = b.WithFilesOf(ctx, made, m.Base)
	}
	if err != nil {
		return err
	}
	owner := -1
	for i, c := range commits {
		if m.taskOf(c.SHA) == "" {
			continue
		}
		files, err := m.h.Git.Paths(ctx, m.plan.Worktree, c.Parents[0], c.SHA)
		if err != nil {
			return err
		}
		conflicts := func(f string) bool { return slices.Contains(files, f) }
		if len(made.Conflicts) == 0 || slices.ContainsFunc(made.Conflicts, conflicts) {
			owner = i
		}
	}
	if owner < 0 && len(made.Conflicts) > 0 {
		return held.Refuse(held.GitLine(m.plan.Worktree.Path, "merge", m.Base), "your commits conflict with the "+
			"base in %s", strings.Join(made.Conflicts, ", "))
	}
	m.plan.SHA, err = b.Commit(ctx, gitx.TreeCommit{Tree: made.Tree, Parent: tip, Others: []string{m.Base},
		Sign: m.h.Sign, Message: "Merge " + text.Head(m.Base, 10) + " into " + m.h.S.Branch()})
	if err != nil || owner < 0 {
		return err
	}
	base, err := m.h.MergeBase(ctx, tip, m.Base)
	if err != nil {
		return err
	}
	whole := commits[owner]
	whole.Tree, err = m.h.Git.RevParse(ctx, m.h.Common, tip+"^{tree}")
	task := m.taskOf(whole.SHA)
	m.verdicts[whole.Tree] = cmp.Or(m.verdicts[commits[owner].Tree], m.verdicts[whole.Tree])
	m.carry(task, base, whole)
	m.tasks[task] = record.TaskState{Status: session.TaskPending, Commit: whole.SHA}
	return err
}

// acceptedTrees returns the accepting verdicts of a record, by tree.
func acceptedTrees(s *session.Session) (map[string]*record.EvaluatorVerdict, error) {
	trees := map[string]*record.EvaluatorVerdict{}
	_, _, err := record.Scan(s.Path(session.RecordFile), 0, func(l record.Line) error {
		if l.Type != "evaluator_verdict" {
			return nil
		}
		if v, is := l.Event().(*record.EvaluatorVerdict); is && v.Accepted() {
			trees[v.Tree] = v
		}
		return nil
	})
	return trees, err
}
