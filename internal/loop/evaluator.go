package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/record"
)

// verdictTries is the number of answers that an evaluator may give without a verdict. The first such answer is
// returned to it with the error.
const verdictTries = 2

// evaluate asks for a verdict on a tree. It asks an evaluator without a readable answer once more in a new
// conversation, and then the next evaluator of the list.
func (a *attempt) evaluate(ctx context.Context, c *Case, j *judged) (v *Verdict, err error) {
	system, user, err := a.evaluatorPrompt(ctx, c, j)
	if err != nil {
		return nil, err
	}
	all := a.run.o.Evaluator.all()
	role := a.first(record.RoleEvaluator, all)
	for again := false; ; {
		if v, err = a.reviewBy(ctx, role, j, system, user); err == nil {
			return v, nil
		}
		stop, _ := errors.AsType[Stop](err)
		if !again && (stop.Reason == record.ReviewerFailed || stop.Reason == record.ContextOverflow) {
			again = true
			continue
		}
		if role, err = a.nextAgent(ctx, all, role, record.RoleEvaluator, err); err != nil {
			return nil, err
		}
		again = false
	}
}

// reviewBy asks one evaluator for a verdict in a new conversation. If the answers are not verdicts, the evaluator
// fails, not the change.
func (a *attempt) reviewBy(ctx context.Context, r Role, j *judged, system, user string) (v *Verdict, err error) {
	w, err := a.openReviewer(ctx, r, j, system, user)
	if err != nil {
		return nil, err
	}
	defer w.shut()
	var problem error
	for try := 1; try <= verdictTries; try++ {
		if err := a.run.checkLease(ctx); err != nil {
			return nil, err
		}
		said, err := w.Turn(ctx)
		if err != nil {
			return nil, err
		}
		if v, problem = w.verdict(said); problem == nil {
			return v, nil
		}
		var raw any = a.run.forRecord(said.Text, promptCap)
		if len(said.RawCalls) > 0 {
			raw = a.run.rawCalls(said.RawCalls)
		}
		unread := record.EvaluatorParseError{Error: problem.Error(), RawToolCalls: record.JSON(raw), Attempt: try}
		if err := a.emit(&unread); err != nil {
			return nil, err
		}
		if try < verdictTries {
			if err := w.correct(problem); err != nil {
				return nil, err
			}
		}
	}
	return nil, unable{Stop{Reason: record.ReviewerFailed,
		Detail: fmt.Sprintf("%s gave no readable verdict %d times: %s", r.who(), verdictTries, problem)}}
}

// evaluatorPrompt assembles the evaluator's prompt and records it.
func (a *attempt) evaluatorPrompt(ctx context.Context, c *Case, j *judged) (system, user string, err error) {
	diff := j.diff()
	entries, err := a.run.S.ReadLedger(a.task.ID, ledgerEntries)
	if err != nil {
		return "", "", err
	}
	parts := a.run.newTaskContext(a.task)
	data := map[string]any{
		"Task":       a.task,
		"Context":    parts.others("project", a.context.project, contextCap),
		"Seed":       parts.channel("seed", a.seedContext(), seedCap),
		"Ledger":     parts.ledger(entries),
		"Case":       parts.others("case", c.Text(), promptCap),
		"Tests":      parts.others("tests", j.tests, testsCap),
		"OldTests":   quoted(j.oldTests),
		"OnlyWith":   quoted(j.onlyWith),
		"Hidden":     quoted(j.hidden),
		"Validators": parts.others("validators", j.report.Text(), validatorCap),
		"Diff":       parts.others("diff", diff, diffCap+filesCap),
	}
	away, err := a.linesRemoved(ctx, j)
	if err != nil {
		return "", "", err
	}
	for _, part := range []struct {
		in, channel, text string
		limit             int
	}{
		{"TakenAway", "taken_away", away, testsCap},
		{"TestsChanged", "tests_changed", j.testsPatch, testsCap},
		{"ConfigChanged", "configuration", j.configPatch, testsCap},
		{"UnderSeed", "without_it", j.underSeed, validatorCap},
		{"Doubts", "doubts", strings.Join(j.doubts, "\n"), testsCap},
		{"Files", "files", j.allFiles(), filesCap},
	} {
		if data[part.in] = ""; part.text != "" {
			data[part.in] = parts.others(part.channel, part.text, part.limit)
		}
	}
	if system, err = a.run.o.Prompts.Render("evaluator", nil); err != nil {
		return "", "", err
	}
	if user, err = a.run.o.Prompts.Render("evaluator_task", data); err != nil {
		return "", "", err
	}
	return system, user, a.recordPrompt(record.RoleEvaluator, system, user, parts.channels)
}

// plainPath matches paths that need no fence.
var plainPath = pattern.New(`^[\w./@-]*$`)

// quoted joins paths with commas. It quotes names that could be mistaken for a part of the prompt.
func quoted(paths []string) []string {
	out := slices.Clone(paths)
	for i, p := range out {
		if !plainPath().MatchString(p) {
			out[i] = strconv.Quote(p)
		}
	}
	return out
}

// filesCap limits the list of changed files next to a shortened diff, in characters.
const filesCap = 400_000

// diff returns the change as a patch, shortened for a prompt, with a note.
func (j *judged) diff() string {
	if len(j.files) == 0 {
		return "The change is empty: the tree is the same as when the task began."
	}
	diff := strings.ToValidUTF8(string(j.patch), "\uFFFD")
	if !j.cut {
		return diff
	}
	// The patches are in the order of the files; the last one is incomplete. A file that becomes a link has two
	// patches.
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

// allFiles lists all changed files with their sizes and marks those that the diff does not show. It returns "" if the
// diff shows all.
func (j *judged) allFiles() string {
	if j.unseen == nil {
		return ""
	}
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
			b.WriteString(" (not shown, or only in part)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
