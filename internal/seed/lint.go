package seed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// How much a finding should worry: an Error makes a task's outcome meaningless, a warning makes it doubtful, a hint is
// worth a look.
const (
	Error   = "error"
	warning = "warning"
	hint    = "hint"
)

// Finding is one weakness of a seed.
type Finding struct {
	Task     string `json:"task"`
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Task, f.Severity, f.Message, f.Rule)
}

// LintInput is a seed that has not been run.
type LintInput struct {
	Tasks    []session.Task
	Worktree string
	Files    []string // of the seed's commit
	// Run runs the acceptance tests of one task as they are now; nil leaves the finding "already-passes" out.
	Run func(ctx context.Context, task string) (validator.Report, error)
}

// Lint judges a seed without a model. Findings come in the order of the tasks.
// When ctx ends, it returns what it found by then.
func Lint(ctx context.Context, in LintInput) []Finding {
	l := &linter{in: in, places: map[string][]string{}}
	seen := map[string]bool{}
	for i, t := range in.Tasks {
		switch {
		case !session.ValidTaskID(t.ID):
			l.add(t.ID, "bad-id", Error, "%q is not T- and three or more digits", t.ID)
		case seen[t.ID]:
			l.add(t.ID, "duplicate-id", Error, "another task has this id too, so that the two cannot be told apart")
		}
		seen[t.ID] = true
		for _, v := range badNeeds(in.Tasks, i) {
			l.add(t.ID, "bad-need", Error, "%s", strings.TrimPrefix(v.Message, quoteShort(t.ID)+" "))
		}
		for _, v := range badTouches(t) {
			l.add(t.ID, "bad-touches", Error, "%s", strings.TrimPrefix(v.Message, quoteShort(t.ID)+" "))
		}
		l.task(ctx, t)
	}
	l.sharedPlaces()
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return session.IndexOf(in.Tasks, a.Task) - session.IndexOf(in.Tasks, b.Task)
	})
	return l.found
}

type linter struct {
	in     LintInput
	found  []Finding
	places map[string][]string // file → tasks that name it
}

func (l *linter) add(task, rule, severity, format string, args ...any) {
	l.found = append(l.found,
		Finding{Task: task, Rule: rule, Severity: severity, Message: fmt.Sprintf(format, args...)})
}

func (l *linter) task(ctx context.Context, t session.Task) {
	for i, c := range t.AcceptanceCriteria {
		if word, ok := vague(c); ok {
			l.add(t.ID, "vague-criterion", warning, "criterion %d says %q and nothing that a test can check: %s", i+1,
				word, quoteShort(c))
		}
	}
	l.duplicateCriteria(t)
	l.place(t)
	l.tests(ctx, t, validator.AcceptanceTests(l.in.Files, t.ID))
}

func (l *linter) duplicateCriteria(t session.Task) {
	seen := map[string]int{}
	for i, c := range t.AcceptanceCriteria {
		key := strings.ToLower(text.OneLine(c))
		if first, ok := seen[key]; ok {
			l.add(t.ID, "repeated-criterion", hint, "criterion %d repeats criterion %d", i+1, first)
			continue
		}
		seen[key] = i + 1
	}
}

// place wants a task to say where the work is.
func (l *linter) place(t session.Task) {
	text := t.Title + "\n" + t.Description + "\n" + strings.Join(t.AcceptanceCriteria, "\n")
	paths := pathsIn(text)
	for _, p := range paths {
		l.places[p] = append(l.places[p], t.ID)
	}
	if len(paths) == 0 && !namesSymbol(text) {
		l.add(t.ID, "no-place", warning,
			"it names no file and no symbol, so that the worker has to guess where the work is")
	}
}

func (l *linter) tests(ctx context.Context, t session.Task, files []string) {
	tests, judged, assertions := 0, 0, 0
	for _, f := range files {
		if project.IsData(f) {
			continue
		}
		tests++
		text, ok := l.read(f)
		if !ok {
			l.add(t.ID, "unreadable-test", Error, "the test %s cannot be read", f)
			continue
		}
		n, known := countAssertions(f, text)
		if !known {
			continue
		}
		judged++
		assertions += n
		if n == 0 {
			l.add(t.ID, "no-assertion", Error, "the test %s asserts nothing", f)
		}
	}
	switch {
	case tests == 0:
		l.add(t.ID, "no-test", warning, "it has no acceptance test; name one by its task, like test_%s_x.py",
			strings.ToLower(strings.Replace(t.ID, "-", "", 1)))
		return
	case judged == tests && assertions > 0 && assertions < len(t.AcceptanceCriteria):
		l.add(t.ID, "few-assertions", hint, "it has %d criteria and %s: some criterion is not checked",
			len(t.AcceptanceCriteria), text.Plural(assertions, "assertion"))
	}
	l.run(ctx, t)
}

// run looks for tests that pass before any work: they prove nothing.
func (l *linter) run(ctx context.Context, t session.Task) {
	if l.in.Run == nil || ctx.Err() != nil {
		return
	}
	r, err := l.in.Run(ctx, t.ID)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.add(t.ID, "not-run", hint, "its tests could not be run: %s", quoteShort(text.OneLine(err.Error())))
	case !r.Ran():
		l.add(t.ID, "not-run", hint, "its tests were not run: %s", cmp.Or(r.Note, "nothing knows how"))
	case r.Passed:
		l.add(t.ID, "already-passes", Error, "its tests pass before any work: they prove nothing")
	}
}

// read takes a test's text from the worktree, and never from outside it.
func (l *linter) read(p string) (string, bool) {
	data, err := jsonl.ReadIn(l.in.Worktree, p, maxFileBytes)
	return string(data), err == nil
}

// sharedPlaces names files that several tasks touch: each of them has to be
// done on top of the others' work, so that their order matters.
func (l *linter) sharedPlaces() {
	for _, p := range slices.Sorted(maps.Keys(l.places)) {
		if tasks := l.places[p]; len(tasks) > 1 {
			last := tasks[len(tasks)-1]
			l.add(last, "shared-file", hint, "it names %s, as %s does: check their order", p,
				strings.Join(tasks[:len(tasks)-1], ", "))
		}
	}
}
