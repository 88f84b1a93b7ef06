package loop

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// workspace serves attempts, one after another. It is a worktree, its judged checkout, and the sandbox of both.
type workspace struct {
	run    *run
	lane   string // task of the lane; "" for the session's worktree
	number int    // number of the lane
	holds  bool   // this lane may commit
	// askAlone waits until no other lane runs.
	askAlone   func(context.Context) error
	path       string          // path of the worktree
	judging    string          // path of the judged checkout
	private    string          // for an agent program's own files
	place      *judge.Checkout // nil before the first task
	onSeed     *judge.Checkout // has the seed's dependencies; nil before a change has others
	judgement  string          // directory of the layers for validation and review, or ""
	before     *judge.Checkout // checkout of an earlier attempt, or nil
	box        *sandbox.Box    // Options.Sandbox with a directory for temporary files
	removeTemp func()          // removes that directory
	hooked     gitx.Worktree   // worktree in which the repository's hooks run
	hooks      []string        // names of the repository's hooks
	notified   map[string]bool // build products that the record has named
	nested     []string        // repositories without their .git, not yet reported to the worker
}

// sessionWorkspace returns the session's own worktree.
func (r *run) sessionWorkspace() *workspace {
	return &workspace{run: r, path: r.Path(), judging: r.S.Path(session.JudgeDir), private: r.S.Path(session.AgentDir),
		removeTemp: func() {}, notified: map[string]bool{}}
}

// enclose creates a directory for the temporary files of all commands of this workspace. After a kill, proc clears it.
func (g *workspace) enclose() error {
	if g.run.o.Sandbox == nil {
		return nil
	}
	temp, remove, err := proc.TempDir()
	if err != nil {
		return err
	}
	g.box, g.removeTemp = g.run.o.Sandbox.In(temp), remove
	return nil
}

// clearLayers removes the layers that a killed run left behind.
func (r *run) clearLayers() error {
	left, _ := filepath.Glob(filepath.Join(text.GlobQuote(r.S.Path(session.CachesDir)), agent.TurnDir+"*"))
	for _, turn := range left {
		if err := proc.RemoveAll(turn); err != nil {
			return err
		}
	}
	return nil
}

// judgingBox returns the sandbox of validators and evaluators. Its caches have the writes of accepted judgements.
func (g *workspace) judgingBox(dir string) *sandbox.Box {
	box := g.box.Of(dir).With()
	if box != nil {
		box.Above = g.judgement
	}
	return box
}

// beginJudgement creates a layer for the cache writes of a judgement.
func (g *workspace) beginJudgement() (err error) {
	box := g.judgingBox(g.judging)
	if g.judgement != "" {
		return proc.RemoveAll(g.overPlace(""))
	}
	if box == nil || box.Layers == "" {
		return nil
	}
	in := filepath.Dir(box.Layers)
	if err = os.MkdirAll(in, 0o700); err == nil {
		g.judgement, err = os.MkdirTemp(in, agent.TurnDir+"judge-")
	}
	return err
}

// overPlace returns the layer over the judged checkout, for files that validators write. It is next to the layers of
// the caches.
func (g *workspace) overPlace(name string) string { return filepath.Join(g.judgement, "place", name) }

// maxAccepted is the number of stacked layers of accepted changes. Beyond it the oldest layer is deleted, and tools
// fetch again.
const maxAccepted = 8

// endJudgement keeps the builds and cache writes of an accepted judgement for later judgements, and discards those of
// a rejected one. The next judgement reuses empty layers.
func (g *workspace) endJudgement(accepted bool) error {
	for _, place := range []*judge.Checkout{g.place, g.onSeed} {
		if accepted || place == nil {
			continue
		}
		if err := place.DropBuilds(); err != nil {
			return err
		}
	}
	if g.judgement == "" {
		return nil
	}
	if err := proc.RemoveAll(g.overPlace("")); err != nil {
		return err
	}
	layers := text.GlobQuote(g.judgement)
	written, _ := filepath.Glob(layers + "/*/" + sandbox.Written("") + "/*")
	if len(written) == 0 {
		return nil
	}
	if !accepted {
		return g.dropJudgement()
	}
	mounts, _ := filepath.Glob(layers + "/*/mount")
	for _, mount := range mounts {
		_ = os.Remove(mount) // this also unmounts it
	}
	of := g.judgingBox(g.judging).Layers
	before, _ := filepath.Glob(filepath.Join(text.GlobQuote(of), sandbox.Accepted+"*"))
	err := os.MkdirAll(of, 0o700)
	if err == nil {
		err = os.Rename(g.judgement, filepath.Join(of, fmt.Sprintf("%s%020d", sandbox.Accepted, time.Now().UnixNano())))
	}
	g.judgement = ""
	if err == nil && len(before) >= maxAccepted {
		err = proc.RemoveAll(before[0])
	}
	return err
}

// dropJudgement discards the judgement's cache writes.
func (g *workspace) dropJudgement() error {
	was := g.judgement
	if g.judgement = ""; was == "" {
		return nil
	}
	return proc.RemoveAll(was)
}

// leave makes the judged checkout accessible to the user.
func (g *workspace) leave() {
	_ = g.dropJudgement() // after an error, the next run drops it
	if g.place != nil {
		g.place.Open()
	}
	g.dropSeedPlace()
}

// dropSeedPlace removes the checkout with the seed's dependencies.
func (g *workspace) dropSeedPlace() {
	if g.onSeed != nil {
		g.onSeed.Open()
		_ = proc.RemoveAll(g.onSeed.Dir) // after an error, it is deleted with the lanes
		g.onSeed = nil
	}
}

// workBox returns the worker's sandbox, in which the worktree is writable.
func (g *workspace) workBox(ctx context.Context, wt gitx.Worktree) *sandbox.Box {
	box := g.box.Of(wt.Path).With(wt.Path).Reading(wt.Common)
	return box.At(g.run.Place(ctx, wt.Path)).Interpreters(wt.Path)
}

// judgingPlace returns the environment of validators.
func (a *attempt) judgingPlace(ctx context.Context, j *judged) validator.ExecEnv {
	box := a.at.judgingBox(j.dir).Reading(j.wt.Common)
	if box != nil && box.Above != "" && j.place != nil && j.place == a.at.onSeed {
		box.Above = a.at.overPlace("caches") // writes above the caches of another setup are not part of the judgement
	}
	if j.layer == "" {
		box = box.With(j.dir)
	} else {
		box = box.Over(j.dir, j.layer)
	}
	place := a.run.Place(ctx, j.dir)
	place.Starts = true
	box = box.At(place).Interpreters(j.dir)
	return validator.ExecEnv{Dir: j.dir, Env: a.toolEnv(ctx, j.dir), Begins: func(name string) {
		if a.run.o.Validating != nil {
			a.run.o.Validating(a.task.ID, name)
		}
	},
		Without: j.without, Dropped: agent.Dropped(a.run.Environ, a.run.o.KeepEnv), Clean: a.run.Redact.String,
		Box: box}
}

// judgeOptions returns the options of the workspace's judged checkouts.
func (g *workspace) judgeOptions(ctx context.Context) judge.Options {
	r := g.run
	var sparse gitx.Sparse
	if source, err := lifecycle.Checkout(r.Handle); err == nil {
		sparse = r.Git.SparseOf(ctx, source)
	}
	return judge.Options{Git: r.Git, Common: r.Common, Branch: r.S.Branch(), Sparse: sparse,
		Setup: func(ctx context.Context, dir string) error { return r.RunSetup(ctx, dir, g.laneEnv()...) },
		Repaired: func(what, done string) error {
			return r.Record.Append(&record.LogRepaired{What: what, Done: done})
		},
	}
}

// openPlace creates the judged checkout before the worker starts.
func (g *workspace) openPlace(ctx context.Context) (err error) {
	if g.place != nil {
		return nil
	}
	r, o := g.run, g.judgeOptions(ctx)
	o.Setup = func(ctx context.Context, dir string) error {
		err := r.RunSetup(ctx, dir, g.laneEnv()...)
		return cmp.Or(err, g.dropJudgement()) // its layers are above those that setup writes
	}
	if c := r.o.Checked; c != nil && c.place != nil {
		g.before, c.place = c.place, nil
	}
	if g.before != nil {
		g.place, err = g.before.Move(ctx, g.judging, o)
		return err
	}
	g.place, err = judge.New(ctx, g.judging, o)
	return err
}

// setUpAgain runs setup in a worktree if a file that pins dependencies changed. A failure does not end the run: setup
// in the judged checkout decides, and the worker sees its failure.
func (g *workspace) setUpAgain(ctx context.Context, dir string, changed []string) {
	there := func(file string) bool { return held.Exists(filepath.Join(dir, file)) }
	if !slices.ContainsFunc(changed, func(f string) bool { return project.IsLock(f) || project.IsUnlocked(f, there) }) {
		return
	}
	if err := g.run.RunSetup(ctx, dir, g.laneEnv()...); err != nil && ctx.Err() == nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		g.run.Say("a lock file changed, and setup fails in the worktree: " + strings.TrimSuffix(first, ":"))
	}
}

// shutPlace closes the judged checkout while the worker works.
func (g *workspace) shutPlace(err *error) {
	for _, place := range []*judge.Checkout{g.place, g.onSeed} {
		if place != nil {
			*err = cmp.Or(*err, place.Close())
		}
	}
}

// hookHints returns two commands for a hook that refuses a task's commit. subject sets a form of subject that the
// commit-msg hook accepts; it is "" if the subject is not the cause or if no usual form passes. edit opens the hook;
// it is "" if the hook has no file.
func (g *workspace) hookHints(ctx context.Context, t session.Task, summary string) (subject, edit string) {
	wt, err := g.run.Worktree(ctx)
	if err != nil {
		return "", ""
	}
	name := "pre-commit"
	refused, passes, err := lifecycle.TrySubjects(ctx, g.run.Handle, wt, "", t, summary)
	if err == nil && passes != "" {
		subject = lifecycle.SubjectSetting(passes)
	}
	if err == nil && refused != nil {
		name = "commit-msg"
	}
	file, err := g.run.Git.HookFile(ctx, wt, name)
	if _, absent := os.Stat(file); err == nil && absent == nil {
		edit = "${EDITOR:-vi} " + text.ShellQuote(file)
	}
	return subject, edit
}

// worktree returns the workspace's worktree after a check.
func (g *workspace) worktree(ctx context.Context) (gitx.Worktree, error) {
	if g.lane != "" {
		return held.LaneWorktree(ctx, g.run.Handle, g.lane)
	}
	return g.run.Worktree(ctx)
}

// environ returns the variables that mark the commands of a run.
func (g *workspace) environ() []string { return append(g.laneEnv(), g.run.S.Mark()) }

// laneEnv returns the variable that has the lane's number.
func (g *workspace) laneEnv() []string {
	if g.lane == "" {
		return nil
	}
	return []string{fmt.Sprint(session.LaneVar, "=", g.number)}
}
