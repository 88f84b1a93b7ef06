package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/urgency"
)

// verdictTries is how often an evaluator may answer with something that is no verdict: the error is fed back
// once, a second one counts as a rejection.
const verdictTries = 2

// evaluatorConn asks an evaluator and feeds back what was wrong with its answer.
type evaluatorConn interface {
	// ask returns the verdict's JSON as the evaluator wrote it, "" if there was none, and its raw calls for the record.
	ask(ctx context.Context) (args string, raw any, err error)
	// correct tells the evaluator what was wrong.
	correct(text string) error
	close() error
}

// evaluate asks the evaluator, in a context of its own, for a verdict on a tree.
func (a *attempt) evaluate(ctx context.Context, c *Case, j *judged) (v *Verdict, err error) {
	system, user, err := a.evaluatorPrompt(ctx, c, j)
	if err != nil {
		return nil, err
	}
	conn, err := a.o.Evaluator.judge(ctx, a, j, system, user)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	if a.o.Evaluator.Program != nil && !a.box.Holds() {
		// Without a sandbox, read-only is a promise of the program, kept by its own means. What it changed all the
		// same must not be taken for the worker's.
		defer func() {
			if restoring := a.restore(urgency.UntilSecond(ctx), j.wt, j.tree); restoring != nil && err == nil {
				v, err = nil, restoring
			}
		}()
	}
	var problem error
	for try := 1; try <= verdictTries; try++ {
		if err := a.checkLease(ctx); err != nil {
			return nil, err
		}
		args, raw, err := conn.ask(ctx)
		if err != nil {
			return nil, err
		}
		if args == "" {
			problem = fmt.Errorf("submit_verdict was not called")
		} else if v, problem = parseVerdict(args); problem == nil {
			return v, nil
		}
		unread := record.EvaluatorParseError{Error: problem.Error(), RawToolCalls: record.JSON(raw), Attempt: try}
		if err := a.emit(&unread); err != nil {
			return nil, err
		}
		if try < verdictTries {
			if err := conn.correct("The verdict could not be read: " + problem.Error() +
				". Call submit_verdict again."); err != nil {
				return nil, err
			}
		}
	}
	category, concern := "half_finished", "The reviewer gave no readable verdict: "+problem.Error()+"."
	return &Verdict{Verdict: Reject, Category: &category, Concern: &concern, ParseFailed: true}, nil
}

// restore puts the worktree back to the tree that was judged, if it is another one now.
func (a *attempt) restore(ctx context.Context, wt gitx.Worktree, tree string) error {
	if differs, err := a.Git.DiffersFromIndex(ctx, wt); err != nil || !differs {
		return err
	}
	now, _, err := a.stage(ctx, wt)
	if err != nil || now == tree {
		return err
	}
	if err := a.Git.ReadTree(ctx, wt, tree, true); err != nil {
		return err
	}
	return a.emit(&record.LogRepaired{What: "the evaluator changed files",
		Done: "put back to the tree that was judged"})
}

// evaluatorPrompt assembles what the evaluator is told, and records it.
func (a *attempt) evaluatorPrompt(ctx context.Context, c *Case, j *judged) (system, user string, err error) {
	diff := j.diff()
	entries, err := a.readLedger()
	if err != nil {
		return "", "", err
	}
	parts := newTaskContext(a.task)
	data := map[string]any{
		"Task":         a.task,
		"Context":      parts.others("project", a.context.project, contextCap),
		"Ledger":       parts.ledger(entries),
		"Case":         parts.others("case", c.Text(), promptCap),
		"Tests":        parts.others("tests", j.tests, testsCap),
		"TestsChanged": "", "HooksChanged": "",
		"Validators": parts.others("validators", j.report.Text(), validatorCap),
		"Borrowed":   quoted(j.borrowed),
		"Files":      "",
		"Ticked":     j.ticked,
		"Diff":       parts.others("diff", diff, diffCap+filesCap),
	}
	hooks, err := a.hooksPatch(ctx, j)
	if err != nil {
		return "", "", err
	}
	if hooks != "" {
		data["HooksChanged"] = parts.others("hooks_changed", hooks, testsCap)
	}
	if j.testsPatch != "" {
		data["TestsChanged"] = parts.others("tests_changed", j.testsPatch, testsCap)
	}
	if j.unseen != nil {
		data["Files"] = parts.others("files", changedFiles(j), filesCap)
	}
	if system, err = a.o.Prompts.Render("evaluator", nil); err != nil {
		return "", "", err
	}
	if user, err = a.o.Prompts.Render("evaluator_task", data); err != nil {
		return "", "", err
	}
	return system, user, a.recordPrompt(record.RoleEvaluator, system, user, parts.channels)
}

// plainPath matches paths that can stand outside of a fence.
var plainPath = regexp.MustCompile(`^[\w./@-]*$`)

// quoted is a list of paths in which no name of a directory reads like a part of the prompt.
func quoted(paths []string) []string {
	out := slices.Clone(paths)
	for i, p := range out {
		if !plainPath.MatchString(p) {
			out[i] = strconv.Quote(p)
		}
	}
	return out
}

// hooksPatch is how a change alters the repository's own hooks, where those lie in the tree. "" for not at all.
func (a *attempt) hooksPatch(ctx context.Context, j *judged) (string, error) {
	dir, _, err := a.Git.Hooks(ctx, j.wt)
	if err != nil || dir == "" {
		return "", err
	}
	below := func(p string) bool { return strings.HasPrefix(p, dir+"/") }
	if !slices.ContainsFunc(j.files, func(c gitx.FileChange) bool { return below(c.Path) || below(c.OldPath) }) {
		return "", nil
	}
	patch, _, err := a.Git.Diff(ctx, a.Common, a.judged, j.tree, testsCap, dir)
	return strings.ToValidUTF8(string(patch), "\uFFFD"), err
}

// filesCap bounds the list of changed files that goes with a diff which is too long, in characters.
const filesCap = 400_000

// diff is the change as a patch, as much of it as a prompt holds. What it does not show is noted.
func (j *judged) diff() string {
	if len(j.files) == 0 {
		return "The change is empty: the tree is the one at which the task began."
	}
	diff := strings.ToValidUTF8(string(j.patch), "\uFFFD")
	if !j.cut {
		return diff
	}
	// The patches stand in the order of the files; the last one that was begun is not whole. A file that becomes a link
	// has two.
	begun := strings.Count("\n"+diff, "\ndiff --git ")
	j.unseen = []string{}
	for _, f := range j.files {
		if begun--; f.Status == "T" {
			begun--
		}
		if begun <= 0 {
			j.unseen = append(j.unseen, f.Path)
		}
	}
	return diff + "\n[the rest of the diff is too long to be shown]\n"
}

// changedFiles lists all changed files with their sizes, those that the diff does not show marked.
func changedFiles(j *judged) string {
	var b strings.Builder
	for _, f := range j.files {
		size := fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
		if f.Binary {
			size = "binary"
		}
		fmt.Fprintf(&b, "%s %s %s", f.Status, f.Path, size)
		if f.OldPath != "" {
			fmt.Fprintf(&b, ", was %s", f.OldPath)
		}
		if slices.Contains(j.unseen, f.Path) {
			b.WriteString(" (not shown, or not whole)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// modelJudge is an evaluator at a model endpoint.
type modelJudge struct {
	worker *agent.Builtin
	shut   func() error // closes the transcript
}

func (a *attempt) modelJudge(who Role, system, user string) (evaluatorConn, error) {
	of := record.Scope{TaskID: a.task.ID, TraceID: a.trace, Iter: a.iter}
	add, shut, err := a.S.OpenTranscript(record.RoleEvaluator, of, a.Now(), a.Redact)
	if err != nil {
		return nil, err
	}
	j := &modelJudge{shut: shut}
	j.worker = &agent.Builtin{
		Ask:        a.caller(record.RoleEvaluator, who).ask,
		Tools:      verdictTools,
		Final:      "submit_verdict",
		Box:        noTools{},
		Emit:       func(record.Event) error { return nil },
		Transcript: add,
	}
	return j, j.worker.Start(system, user)
}

func (j *modelJudge) ask(ctx context.Context) (string, any, error) {
	t, err := j.worker.Turn(ctx)
	if err != nil {
		return "", nil, err
	}
	// Some models write the verdict into their text although they have the tool.
	if args := verdictIn(t.Text); t.Case == "" && args != "" {
		return args, t.Text, nil
	}
	if len(t.RawCalls) == 0 {
		return t.Case, clip(t.Text, promptCap), nil
	}
	return t.Case, rawCalls(t.RawCalls), nil
}

// verdictIn finds the verdict in an evaluator's text, the last one where it says the same twice. Of two that contradict
// each other one may be the worker's, quoted: there is none then.
func verdictIn(text string) string {
	args, said, last := "", "", ""
	for _, object := range agent.JSONObjects(text) {
		last = string(object)
		var v struct{ Verdict *string }
		if json.Unmarshal(object, &v) != nil || v.Verdict == nil {
			continue
		}
		if said != "" && said != *v.Verdict {
			return ""
		}
		args, said = last, *v.Verdict
	}
	return cmp.Or(args, last) // the error of one that is no verdict says what it lacks
}

func (j *modelJudge) correct(text string) error { return j.worker.Answer(text) }
func (j *modelJudge) close() error              { return j.shut() }

func rawCalls(calls []model.ToolCall) []map[string]string {
	out := []map[string]string{}
	for _, c := range calls {
		out = append(out, map[string]string{"id": c.ID, "name": c.Name, "arguments": clip(c.Arguments, promptCap)})
	}
	return out
}
