package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// Size limits for parts of a prompt, and for a prompt in the record, in characters.
const (
	promptCap     = 16_000
	contextCap    = 24_000 // all project context files together
	planCap       = 12_000
	seedCap       = 16_000
	testsCap      = 32_000
	ledgerCap     = 12_000
	validatorCap  = 32_000
	diffCap       = 200_000
	asideCap      = 64_000
	maxText       = 8 << 20 // bytes of a file to read for a prompt
	ledgerEntries = 5
	progressLines = 20
)

// contextFiles are the files with a project's rules and context, most important first.
var contextFiles = []string{"AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", "CONTRIBUTING.md", "README.md"}

// taskContext has the parts of a prompt. All come from disk, and none from an earlier conversation.
type taskContext struct {
	Task     session.Task
	Context  string
	Progress string
	Plan     string
	Seed     string
	Ledger   string
	Tests    []string // paths of the task's acceptance tests
	Known    []string // checks that failed before any work, with their tests
	Later    []string // tests of later tasks, which the judged checkout leaves out
	Partial  bool     // the working tree has work of an earlier attempt
	Aside    string   // patch of an earlier attempt's work that no longer applies
	Refused  string   // the commit hook's objection to that work
	Conflict string   // unresolved conflict with other tasks' work

	channels map[string]record.Channel
	fence    fence
	redact   *record.Redactor
	project  string // Context before redaction
}

// loadContext reads the parts of the prompts and makes a manifest of each.
func (a *attempt) loadContext(ctx context.Context, wt gitx.Worktree) (taskContext, error) {
	c := a.run.newTaskContext(a.task)
	state, err := a.run.S.State()
	if err != nil {
		return c, err
	}
	tasks := a.run.taskList()
	lines := held.ProgressLines(state, tasks)
	c.Progress = c.channel("progress", progressText(lines[max(len(lines)-progressLines, 0):]), planCap)
	c.Plan = c.channel("plan", planText(tasks, a.task.ID), planCap)
	c.Seed = c.channel("seed", a.seedContext(), seedCap)
	entries, err := a.run.S.ReadLedger(a.task.ID, ledgerEntries)
	if err != nil {
		return c, err
	}
	c.Ledger = c.ledger(entries)
	if c.project, err = a.run.projectAt(ctx, a.judged); err != nil {
		return c, err
	}
	c.Context = c.others("project", c.project, contextCap)
	seed := a.run.seed
	c.Tests = validator.AcceptanceTests(seed.files, a.task.ID)
	a.run.mu.Lock()
	c.Known = validator.Known(a.run.Checkpoint.KnownFailures).Names()
	a.run.mu.Unlock()
	for _, t := range tasks {
		if t.Status != session.TaskDone && t.ID != a.task.ID {
			c.Later = append(c.Later, validator.AcceptanceTests(seed.files, t.ID)...)
		}
	}
	aside, err := held.EarlierWork(ctx, a.run.Handle, a.task.ID, asideCap)
	if err != nil {
		return c, err
	}
	c.Aside = c.others("aside", aside, asideCap)
	if c.Partial = a.restored; !c.Partial {
		if c.Partial, err = a.run.Git.IsDirty(ctx, wt.Path); err != nil {
			return c, err
		}
	}
	if r := a.left.refused; r != nil && r.Verdict.TaskID == a.task.ID {
		c.Refused = c.others("commit_hook", r.Output, validatorCap)
	}
	c.Conflict = a.conflictLeft(ctx, wt)
	return c, nil
}

func (r *run) newTaskContext(t session.Task) taskContext {
	return taskContext{Task: t, redact: r.Redact, channels: map[string]record.Channel{}, fence: newFence()}
}

// others adds fenced text of the worker, a tool, a test or the repository.
func (c *taskContext) others(name, text string, limit int) string {
	return c.fence.wrap(name, c.channel(name, text, limit))
}

// channel shortens one part and notes it for memory_load.
func (c *taskContext) channel(name, text string, limit int) string {
	c.channels[name] = record.NewChannel(text, limit)
	if c.channels[name].Truncated {
		text = c.redact.String(text) // like forRecord, because the record has the prompt
	}
	return clip(text, limit)
}

// ProjectContext concatenates the project's context files in a directory. It follows no link out of the directory.
func ProjectContext(dir string) string {
	return projectContext(func(name string) ([]byte, bool) {
		data, err := jsonl.ReadIn(dir, name, maxText)
		return data, err == nil
	})
}

func projectContext(read func(name string) ([]byte, bool)) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, name := range contextFiles {
		data, ok := read(name)
		// A CLAUDE.md that is a copy of AGENTS.md or a link to it adds nothing.
		if !ok || !utf8.Valid(data) || seen[string(data)] || b.Len() > contextCap {
			continue
		}
		seen[string(data)] = true
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", name, strings.TrimSpace(string(data)))
	}
	return strings.TrimSpace(b.String())
}

// projectAt returns the project's context files in a commit. It does not read ignored or uncommitted files.
func (r *run) projectAt(ctx context.Context, commit string) (string, error) {
	files, err := r.Git.FilesAt(ctx, r.Common, commit, contextFiles)
	if err != nil {
		return "", err
	}
	return projectContext(func(name string) ([]byte, bool) {
		data, ok := files[name]
		return data, ok
	}), nil
}

// progressText lists the finished tasks. It leaves out failed ones, because their reasons name caps, which a worker
// must not see.
func progressText(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if id, rest, _ := strings.Cut(l, "\t"); strings.HasPrefix(rest, "done\t") {
			b.WriteString(id + "  " + strings.TrimPrefix(rest, "done\t") + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}

func planText(tasks []session.Task, current string) string {
	var b strings.Builder
	for _, t := range tasks {
		state := "later"
		switch {
		case t.ID == current:
			state = "this one"
		case t.Status == "done":
			state = "done"
		}
		fmt.Fprintf(&b, "- %s %s (%s)\n", t.ID, t.PromptTitle(), state)
	}
	return strings.TrimSpace(b.String())
}

// seedContext returns the interview's notes for the worker.
func (a *attempt) seedContext() string {
	meta, err := a.run.S.SeedMeta()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimSpace(meta.TLDR) + "\n" + list("Scope", meta.ScopeNotes) +
		list("Open questions", meta.OpenQuestions) + list("Blockers", meta.Blockers))
}

// ledgerText returns the earlier verdicts for both prompts.
func ledgerText(entries []session.LedgerEntry) string {
	var b strings.Builder
	reviews := 0
	for _, e := range entries {
		if e.Note != "" {
			continue
		}
		reviews++
		fmt.Fprintf(&b, "### Review %d\n\nChange: %s\n%s\n\n", reviews, e.DiffSummary, verdictText(e.Verdict))
	}
	return strings.TrimSpace(b.String())
}

// ledger returns a task's ledger for both prompts: the user's notes, which are instructions, and the earlier verdicts.
func (c *taskContext) ledger(entries []session.LedgerEntry) string {
	var notes strings.Builder
	for _, e := range entries {
		if e.Note != "" {
			notes.WriteString("The user, who asked for this task to be redone, says: " + e.Note + "\n\n")
		}
	}
	reviews := c.others("ledger", ledgerText(entries), ledgerCap)
	if notes.Len() == 0 {
		return reviews
	}
	return strings.TrimSpace(c.channel("note", notes.String(), ledgerCap) + "\n" + reviews)
}

// lastVerdict returns the newest verdict, for a conversation that knows the older ones.
func lastVerdict(entries []session.LedgerEntry) string {
	if len(entries) == 0 || entries[len(entries)-1].Note != "" {
		return ""
	}
	return verdictText(entries[len(entries)-1].Verdict)
}

func verdictText(raw json.RawMessage) string {
	if v, err := parseVerdict(string(raw)); err == nil {
		return v.Text()
	}
	return string(raw)
}

// testTexts returns the acceptance tests with their contents, for the evaluator.
func testTexts(dir string, paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		data, err := jsonl.ReadIn(dir, filepath.Clean(p), maxText)
		if err != nil {
			fmt.Fprintf(&b, "## %s\n\n(cannot be read: it was deleted or replaced)\n\n", p)
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", p, strings.ToValidUTF8(string(data), "\uFFFD"))
	}
	return strings.TrimSpace(b.String())
}

// recordPrompt records a prompt: memory_load lists its parts, prompt_assembled has its text.
func (a *attempt) recordPrompt(role, system, user string, channels map[string]record.Channel) error {
	if channels != nil {
		load := record.MemoryLoad{Role: role, Channels: channels, UserPromptChars: utf8.RuneCountInString(user)}
		if err := a.emit(&load); err != nil {
			return err
		}
	}
	return a.emit(record.NewPrompt(role, system, user))
}

// forRecord shortens a text for the record. It redacts secrets first, because redaction does not find half a secret.
func (r *run) forRecord(s string, n int) string { return clip(r.Redact.String(s), n) }

// clip shortens a text to n characters and notes how many are missing.
func clip(s string, n int) string {
	head := text.Head(s, n)
	if len(head) == len(s) {
		return s
	}
	return fmt.Sprintf("%s\n[... %d more characters]", head, utf8.RuneCountInString(s[len(head):]))
}
