// Package replay does a session's work again: what the builtin worker's model answered, as its conversations have it,
// is carried out in a scratch repository, and each tree held against the one that was judged and committed. No model is
// asked, and nothing of the session or of the user's repository is written.
//
// A call that was blocked or did not finish is not made again, and hooks, setup commands and validators do not run.
// What a person changed without a commit is not known.
package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/prompt"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/tool"
)

// Options are what a replay needs beyond its session.
type Options struct {
	Git     *gitx.Git
	KeepEnv []string     // variables that commands keep although they look like keys
	Sandbox *sandbox.Box // of what the calls start; nil for none
	Prompts *prompt.Set  // of this build, to be held against what the model was told; nil for no such look
}

// Result is what came of a replay.
type Result struct {
	Calls, Commits int
	// Divergence is the first thing that is not as it was, "" for none.
	Divergence string
	Notes      []string // of prompts that this build words otherwise
}

// Run replays a session that is at rest.
func Run(ctx context.Context, o Options, s *session.Session) (*Result, error) {
	cp, common, err := lifecycle.AtRest(s)
	if err != nil {
		return nil, err
	}
	begin, err := record.ReadBeginning(s.Path(session.RecordFile))
	if err != nil {
		return nil, err
	}
	if begin.Seed == nil {
		return nil, &lifecycle.RefusedError{Why: "session " + s.ID + " has no seed on record: nothing to replay",
			Hint: "git tilth verify " + s.ID}
	}
	events, err := readEvents(s)
	if err != nil {
		return nil, err
	}
	res, file, err := play(ctx, o, s, cp, common, events, "")
	if err == nil && file != "" {
		// Once more, to see which call writes the file.
		res, _, err = play(ctx, o, s, cp, common, events, file)
	}
	return res, err
}

// diverged is the end of a replay: the first thing that is not as it was.
type diverged struct {
	what string
	file string // that is not what was committed, "" for something else
}

func (d *diverged) Error() string { return d.what }

func differs(format string, args ...any) error { return &diverged{what: fmt.Sprintf(format, args...)} }

// player is one replay.
type player struct {
	o       Options
	s       *session.Session
	common  string // of the session's repository
	wt      gitx.Worktree
	box     *tool.Box
	was     string               // where the worktree was when the calls were made
	outside func()               // removes what puts filters of the tree into the sandbox
	head    string               // the commit that the scratch worktree is at
	aside   map[string][2]string // what failed tasks left: the commit and the tree
	res     *Result

	talk  *talk // of the attempt at hand; nil for one of which there is none
	n     int   // calls of the attempt so far
	task  string
	other string // the first call that was answered otherwise than it was
	hand  string // the task that a person said is done

	watch, watched string // a file, and what it holds
	writer         string // the call that wrote it last
}

// play replays the events; file is the first one that is not what was committed.
func play(ctx context.Context, o Options, s *session.Session, cp *session.Checkpoint, common string, events []event,
	watch string) (res *Result, file string, err error) {
	dir, err := os.MkdirTemp("", "tilth-replay-")
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}()
	p := &player{o: o, s: s, common: common, was: lifecycle.WorkspaceOf(s, cp), res: &Result{}, watch: watch,
		aside: map[string][2]string{}}
	for _, e := range events {
		if err = p.event(ctx, dir, e); err != nil {
			break
		}
	}
	if p.box != nil {
		p.box.Close()
	}
	if p.outside != nil {
		p.outside()
	}
	d, ok := err.(*diverged)
	if !ok {
		return p.res, "", err
	}
	p.res.Divergence = d.what
	if d.file != "" && p.writer != "" {
		p.res.Divergence += "; " + p.writer + " wrote it last"
	}
	if p.other != "" {
		p.res.Divergence += "; the first other answer was that of " + p.other
	}
	return p.res, d.file, nil
}

// open lays the seed's tree out in a worktree of a scratch repository.
func (p *player) open(ctx context.Context, dir, base string) (err error) {
	repo, path := filepath.Join(dir, "repo"), filepath.Join(dir, session.WorkspaceDir)
	if err := gitx.Borrow(p.common, repo); err != nil {
		return err
	}
	if err := p.asInTheRepository(ctx, repo); err != nil {
		return err
	}
	if err := p.o.Git.AddWorktree(ctx, repo, path, p.s.Branch(), base, true); err != nil {
		return err
	}
	if p.wt, err = p.o.Git.Worktree(ctx, repo, path, p.s.Branch()); err != nil {
		return err
	}
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	p.head = base
	box := p.o.Sandbox.In(temp)
	p.box, err = tool.Open(path, tool.Options{
		Env:       append(agent.ToolEnv(p.o.Git.Environ(ctx, path), p.o.KeepEnv), p.s.Mark()),
		Protected: []string{p.s.Dir}, Sandbox: box.With(path),
	})
	if err != nil {
		return err
	}
	p.o.Git, p.outside, err = p.o.Git.Inside(ctx, p.wt, box)
	return err
}

// asInTheRepository gives the scratch repository what decides of the session's own how files are staged.
func (p *player) asInTheRepository(ctx context.Context, repo string) error {
	settings, err := judge.Settings(ctx, p.o.Git, p.common)
	if err == nil {
		err = os.WriteFile(filepath.Join(repo, "config"), settings, 0o600)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(repo, "info"), 0o700)
	}
	for _, rules := range []string{"info/exclude", "info/attributes"} {
		data, e := jsonl.ReadFile(filepath.Join(p.common, rules))
		if err == nil && e == nil {
			err = os.WriteFile(filepath.Join(repo, rules), data, 0o600)
		}
	}
	return err
}

func (p *player) event(ctx context.Context, dir string, e event) error {
	switch ev := e.ev.(type) {
	case *record.SessionStart:
		if ev.WorkerAgent != "" && ev.WorkerAgent != "builtin" {
			return p.refuse(ev.WorkerAgent)
		}
	case *record.AgentSession:
		if ev.Role == "" {
			return p.refuse(ev.Agent)
		}
	case *record.ContextReset:
		if p.box == nil {
			if err := p.open(ctx, dir, ev.Base); err != nil {
				return err
			}
		}
		return p.begin(ctx, ev)
	case *record.ModelCall:
		return p.answered(ev)
	case *record.ToolCall:
		return p.call(ctx, e, ev)
	case *record.ValidatorRun:
		return p.tick(ev)
	case *record.EvaluatorVerdict:
		if ev.By == record.ByPerson {
			p.hand = ev.TaskID
		}
	case *record.Commit:
		return p.committed(ctx, ev)
	}
	return nil
}

func (p *player) refuse(agent string) error {
	return &lifecycle.RefusedError{Why: "the worker was the agent program " + agent +
		": only the builtin worker's sessions can be replayed", Hint: "git tilth verify " + p.s.ID}
}

// begin brings the worktree to where an attempt began. Work of an earlier one at the task stays in it, that of another
// task was set aside, since it was skipped or removed.
func (p *player) begin(ctx context.Context, e *record.ContextReset) (err error) {
	if p.task != "" && p.task != e.TaskID {
		if err := p.setAside(ctx, p.task); err != nil {
			return err
		}
	}
	p.task, p.n, p.other, p.hand = e.TaskID, 0, "", ""
	if e.Base != p.head {
		tree, err := p.stage(ctx)
		if err != nil {
			return err
		}
		if err := p.o.Git.CatchUp(ctx, p.wt, p.head, e.Base, tree); err != nil {
			return err
		}
		if err := p.moveTo(ctx, e.Base); err != nil {
			return err
		}
	}
	if err := p.bringBack(ctx, e.TaskID); err != nil {
		return err
	}
	p.talk, err = readTalk(p.s, e.TaskID, e.TraceID)
	if err == nil && p.o.Prompts != nil {
		err = p.prompted(e.TaskID)
	}
	return err
}

// setAside takes the work of a task that failed out of the worktree, for its next attempt.
func (p *player) setAside(ctx context.Context, task string) error {
	tree, err := p.stage(ctx)
	if err != nil {
		return err
	}
	p.aside[task] = [2]string{p.head, tree}
	return p.o.Git.Reset(ctx, p.wt, p.head, true)
}

func (p *player) bringBack(ctx context.Context, task string) error {
	work, ok := p.aside[task]
	if !ok {
		return nil
	}
	delete(p.aside, task)
	now, err := p.stage(ctx)
	if err != nil {
		return err
	}
	tree, fits, err := p.o.Git.ApplyChange(ctx, p.wt, work[0], work[1], now)
	if err != nil || !fits {
		return err
	}
	return p.o.Git.ReadTree(ctx, p.wt, tree, true)
}

// moveTo makes a commit the one that the branch is at. What the worker made of HEAD and the branch is forgotten.
func (p *player) moveTo(ctx context.Context, commit string) error {
	if err := p.o.Git.AttachHead(ctx, p.wt, p.s.Branch()); err != nil {
		return err
	}
	p.head = commit
	return p.o.Git.Reset(ctx, p.wt, commit, false)
}

// stage names the tree of what lies in the worktree, as the harness does.
func (p *player) stage(ctx context.Context) (tree string, err error) {
	if err := p.moveTo(ctx, p.head); err != nil {
		return "", err
	}
	tree, _, err = p.o.Git.StageAll(ctx, p.wt, p.head)
	return tree, err
}

// compare holds the worktree against a tree of the session's.
func (p *player) compare(ctx context.Context, want, what string) error {
	tree, err := p.stage(ctx)
	if err != nil || tree == want {
		return err
	}
	files, _, _, err := p.o.Git.Changes(ctx, p.wt.Common, want, tree, 0)
	if err != nil || len(files) == 0 {
		return differs("%s cannot be compared: %v", what, err)
	}
	first := slices.MinFunc(files, func(a, b gitx.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return &diverged{file: first.Path, what: fmt.Sprintf("%s differs in %s, first in %s", what,
		text.Plural(len(files), "file"), first.Path)}
}

// tick does what the harness did to the checklist when a case was handed in.
func (p *player) tick(ev *record.ValidatorRun) error {
	meta, err := p.s.SeedMeta()
	if err != nil || p.box == nil || !filepath.IsLocal(meta.Checklist) || ev.Judge == "worktree" && !ev.Passed {
		return nil
	}
	tasks, err := p.s.Tasks()
	if i := slices.IndexFunc(tasks, func(t session.Task) bool { return t.ID == ev.TaskID }); i >= 0 {
		_, err = seed.Tick(p.wt.Path, meta.Checklist, tasks[i])
	}
	return err
}

func (p *player) committed(ctx context.Context, e *record.Commit) error {
	switch {
	case p.box == nil:
		return nil
	case e.Aside != "":
		p.task = ""
		return p.setAside(ctx, e.TaskID)
	}
	tree, err := p.o.Git.RevParse(ctx, p.common, e.SHA+"^{tree}")
	switch {
	case err != nil && e.Placeholder && ctx.Err() == nil:
		return nil // a resume took it off the branch: git prunes it in time, and it goes to no other machine
	case err != nil:
		return differs("the commit %s of %s is not in the repository", e.SHA, e.TaskID)
	}
	if p.hand == e.TaskID {
		// A person's edits are in no conversation.
		p.res.Notes = append(p.res.Notes, e.TaskID+" is done by a person's word: its commit is taken as it is")
		if _, err := p.stage(ctx); err != nil {
			return err
		}
		if err := p.o.Git.Reset(ctx, p.wt, e.SHA, true); err != nil {
			return err
		}
		return p.moveTo(ctx, e.SHA)
	}
	if err := p.compare(ctx, tree, "the commit of "+e.TaskID); err != nil || e.Placeholder {
		return err
	}
	p.res.Commits++
	p.task = ""
	return p.moveTo(ctx, e.SHA)
}

// call makes a tool call again, after it was found in the conversation as the record has it.
func (p *player) call(ctx context.Context, e event, ev *record.ToolCall) error {
	if ev.Phase != "" || p.talk == nil {
		return nil
	}
	p.n++
	name := fmt.Sprintf("call %d of %s (%s)", p.n, p.task, ev.Tool)
	q := p.talk.queue
	if len(q) == 0 || q[0].name != ev.Tool || !sameArgs(q[0].args, ev.Args) {
		return differs("%s is on record, and the conversation does not have it there", name)
	}
	c := q[0]
	p.talk.queue = q[1:]
	if e.result != nil && c.answered && !shows(e.result.Preview, c.answer) {
		return differs("%s was answered otherwise by the conversation than by the record", name)
	}
	if e.result == nil || ev.Tool == finalTool {
		return nil // it was blocked or did not finish
	}
	p.res.Calls++
	res := p.box.Call(ctx, c.name, strings.ReplaceAll(c.args, p.was, p.wt.Path))
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.answered && strings.ReplaceAll(res.Output, p.wt.Path, p.was) != c.answer && p.other == "" {
		p.other = name
	}
	p.look(name)
	return nil
}

// look notes whether a call wrote the file that is watched.
func (p *player) look(name string) {
	if p.watch == "" {
		return
	}
	path := filepath.Join(p.wt.Path, p.watch)
	now := "none"
	if to, err := os.Readlink(path); err == nil {
		now = "link " + to
	} else if data, err := os.ReadFile(path); err == nil {
		now = "file " + string(data)
	}
	if fi, err := os.Lstat(path); err == nil {
		now += fi.Mode().String()
	}
	if now != p.watched && p.watched != "" || p.watched == "" && now != "none" {
		p.writer = name
	}
	p.watched = now
}
