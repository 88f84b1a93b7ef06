package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) showCommand() *cli.Command {
	return p.declare(traits{wish: "look closer", rare: true, looks: true}, &cli.Command{
		Name:      "show",
		Usage:     "show one session in detail",
		ArgsUsage: "[<session>]",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print a JSON object"}},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			r := w.detail(s)
			if err := p.ctx.Err(); err != nil {
				return err // a signal interrupted the reading
			}
			if common, err := commonOf(s); err == nil && ctx.Bool("json") {
				w.fillChanges(r.Tasks, s, common, take.Commits(p.ctx, w.Git, common, s))
			}
			return r.Show(p.stdout, p.terminal(ctx.Bool("json")))
		}),
	})
}

// detail collects the facts about a session. An unreadable part leaves its fields empty.
func (w *repoContext) detail(s *session.Session) *view.Report {
	r := view.NewReport(w.overview(s), s)
	check, err := s.Checkpoint()
	if err != nil {
		r.Resume = "cannot be resumed: " + err.Error()
		return r
	}
	r.Usage, r.Worktree.Path = check.Usage, held.WorkspaceOf(s, check)
	st, err := lifecycle.ReadState(w.p.ctx, w.Git, s, check)
	switch {
	case r.Busy != nil:
		r.Resume = "it is running"
	case err != nil:
		r.Resume = err.Error()
	default:
		r.Resume = lifecycle.MakePlan(st).String()
	}
	common, err := held.CommonOf(s, check)
	if err == nil && !r.Cleansed { // a session without a branch cannot go back
		r.Undo = lifecycle.UndoOf(w.p.ctx, w.Git, s)
		points, _ := lifecycle.Points(w.p.ctx, w.Git, s, common) // none for an unreadable record
		for _, p := range points {
			r.Points = append(r.Points, p.Name)
		}
	}
	w.fillWorktree(r, st)
	for _, t := range r.Tasks {
		if c := check.Conversation(t.ID); c != nil {
			dir := held.WorkspaceOf(s, check)
			if held.HasLane(s, t.ID) {
				dir = held.LanePath(s, t.ID)
			}
			r.Conversations = append(r.Conversations, w.conversation(t.ID, c, dir))
			for _, name := range slices.Sorted(maps.Keys(c.Others)) {
				r.Conversations = append(r.Conversations, w.conversation(t.ID, c.Others[name], dir))
			}
		} else if t.Status != session.TaskDone {
			r.Conversations = append(r.Conversations, w.builtinConversation(s, t)...)
		}
	}
	return r
}

// overview returns the row of the list of one session.
func (w *repoContext) overview(s *session.Session) session.Overview {
	return w.withElsewhere([]session.Overview{s.Overview()})[0]
}

func (w *repoContext) fillWorktree(r *view.Report, st lifecycle.State) {
	words, isWorktree := st.Standing()
	r.Worktree.State = cmp.Or(words, r.Worktree.State)
	r.Worktree.Head, r.Worktree.Commits = st.BranchTip, len(st.Commits)
	if len(st.Commits) > 0 {
		r.Worktree.Subject = st.Commits[0].Subject
	}
	if st.SeedKnown {
		r.OnBranch(commitsOfTasks(st.Commits, r.Summary))
	}
	if isWorktree {
		r.Worktree.Dirty, _ = w.Git.IsDirty(w.p.ctx, r.Worktree.Path)
		edited, _ := w.Git.EditedModules(w.p.ctx, r.Worktree.Path)
		r.Worktree.Dirty = r.Worktree.Dirty || len(edited) > 0
	}
}

// commitsOfTasks finds the commit of each task since the seed: the recorded one, or after a rebase the one with the
// task's trailer.
func commitsOfTasks(since []gitx.Commit, sum *session.Summary) map[string]string {
	found := map[string]string{}
	for _, c := range since {
		for id, t := range sum.Tasks {
			if c.SHA == t.Commit || held.SignatureOf(c).Task == id && found[id] == "" {
				found[id] = c.SHA
			}
		}
	}
	return found
}

// conversation reports whether a resume could continue a stored conversation in a directory now, and why not.
func (w *repoContext) conversation(task string, c *session.Conversation, dir string) view.Conversation {
	v := view.Conversation{Task: task, Agent: c.Agent, ID: c.ID, Model: c.Model, LastUsed: c.LastUsed,
		Attempts: len(c.Attempts), ResumeBy: c.ResumeBy, Uncounted: c.Uncounted}
	for _, a := range c.Attempts {
		v.Tokens += a.Tokens
		v.Cost += a.Cost
	}
	worker, model, why := w.workerOf(c.Agent)
	if v.Why = why; worker.Program == nil || why != "" {
		return v
	}
	env := agent.ScrubEnv(w.Git.Environ(w.p.ctx, dir))
	choice := worker.Program.Choose(agent.Search{Stored: c, Dir: dir, Env: env, Model: model})
	v.Resumable, v.Why = choice.Ref.Resume, choice.Why
	if n := len(c.Attempts); n > 0 && c.Attempts[n-1].How == string(agent.Refused) && worker.Program.Login != "" {
		v.Why = strings.TrimPrefix(v.Why+"; its login was refused: "+worker.Program.Login, "; ")
	}
	return v
}

// workerOf returns the worker with a name and its model, or the reason why that worker is not available.
func (w *repoContext) workerOf(name string) (worker equip.Choice, model, why string) {
	first, err := w.ChooseAgent(config.Worker)
	if err != nil {
		return first, "", "no worker is configured"
	}
	model = w.Config.Text("tilth.worker.model")
	for _, c := range append([]equip.Choice{first}, first.Others...) {
		if c.Name() == name {
			return c, cmp.Or(model, w.Config.Agents()[name]["model"]), ""
		}
		model = "" // the model belongs to the first agent
	}
	return first, "", "the worker is " + first.Name() + " now, the conversation belongs to " + name
}

// builtinConversation returns the builtin worker's conversation about a task, if any, and whether resume --continue
// can use it.
func (w *repoContext) builtinConversation(s *session.Session, t view.ReportTask) []view.Conversation {
	history, err := s.ReadTranscript(record.RoleWorker, t.ID)
	if err == nil && len(history) == 0 {
		return nil
	}
	v := view.Conversation{Task: t.ID, Agent: "builtin", ID: session.ConversationDir + "/" + t.ID + ".jsonl",
		Why: "only with resume --continue", Attempts: int(t.Attempts), Tokens: t.Tokens, Cost: t.Cost}
	if err == nil {
		err = agent.Continuable(history)
	}
	if err != nil {
		v.Why = err.Error()
	} else if _, _, why := w.workerOf(v.Agent); why != "" {
		v.Why = why
	} else {
		v.Resumable = true
	}
	return []view.Conversation{v}
}
