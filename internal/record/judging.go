package record

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// ValidatorRun is the result of the validators for a change.
type ValidatorRun struct {
	Scope
	Passed  bool              `json:"passed"`
	Results []ValidatorResult `json:"results"`
	Note    string            `json:"note,omitempty"` // why there are no results
	// Flaky are tests that failed, and passed when they ran again alone.
	Flaky []string `json:"flaky,omitempty"`
	// Dependencies are the lock files and the directories of vendored code that the change alters.
	Dependencies []string `json:"dependencies,omitempty"`
	// PassesOnBase are the task's acceptance tests that pass before any work, and the broken ones.
	PassesOnBase []string `json:"passes_on_base,omitempty"`
	// Uncovered are the lines of the change that no test ran, by file.
	Uncovered []string `json:"uncovered,omitempty"`
	// FewerTests are the validators that ran fewer tests than on the base, each with both numbers.
	FewerTests []string `json:"fewer_tests,omitempty"`
	// Ignored are the files that the attempt made and that git ignores, each with the rule.
	Ignored []string `json:"ignored,omitempty"`
}

// Broken is between the name of a broken acceptance test in PassesOnBase and the reason.
const Broken = ": cannot run: "

func isBroken(name string) bool { return strings.Contains(name, Broken) }

func passesOnBase(name string) bool { return !isBroken(name) }

// Doubts returns the reasons to trust the tests less, each in a line.
func (e *ValidatorRun) Doubts() (lines []string) {
	for _, doubt := range []struct {
		says  string
		names []string
	}{
		{"its test passes before any work: ", slices.DeleteFunc(slices.Clone(e.PassesOnBase), isBroken)},
		{"its test is broken: ", slices.DeleteFunc(slices.Clone(e.PassesOnBase), passesOnBase)},
		{"fewer tests: ", e.FewerTests},
		{"flaky: ", e.Flaky},
		{"no test ran: ", e.Uncovered},
		{"changes dependencies: ", e.Dependencies},
		{"ignored by git, in no commit: ", e.Ignored},
	} {
		if len(doubt.names) > 0 {
			lines = append(lines, doubt.says+strings.Join(doubt.names, ", "))
		}
	}
	return lines
}

// CommitHook is the name under which a commit hook's refusal is a result.
const CommitHook = "commit hook"

// OfHook reports whether it is a commit hook's refusal, with its words.
func (e *ValidatorRun) OfHook() bool {
	return len(e.Results) == 1 && e.Results[0].Name == CommitHook && e.Results[0].Output != nil
}

// ValidatorResult is the result of one validator. A skipped validator has neither passed nor failed.
type ValidatorResult struct {
	Name    string  `json:"name"`
	Output  *string `json:"output,omitempty"` // or why it was skipped; capped
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Skipped bool    `json:"skipped"`
	Known   bool    `json:"known,omitempty"` // also failed before any work; ignored
	Tests   *Tests  `json:"tests,omitempty"` // result by test, as reported by the runner
	By      string  `json:"by,omitempty"`    // "exit status" if only that counts
}

// Tests is a runner's report by test.
type Tests struct {
	Ran    int      `json:"ran"`
	Passed int      `json:"passed"`
	Failed int      `json:"failed"`
	Names  []string `json:"names,omitempty"` // failed tests, and acceptance tests that did not run
}

// BuildProducts names the directories that are left out of commits.
type BuildProducts struct {
	Scope
	LeftOut []string `json:"left_out"`
	Reason  string   `json:"reason"`
}

// CaseSubmitted is a case with a change that passed the validators. It is written before the evaluator is asked, so
// that a resume can continue with the review.
type CaseSubmitted struct {
	Scope
	Tree string          `json:"tree"`
	Base string          `json:"base"`
	Case json.RawMessage `json:"case"`
}

// CaseParseError is a case that could not be read.
type CaseParseError struct {
	Scope
	Error        string          `json:"error"`
	RawToolCalls json.RawMessage `json:"raw_tool_calls"`
	Attempt      int             `json:"attempt"`
}

// EvaluatorParseError is a verdict that could not be read.
type EvaluatorParseError struct {
	Scope
	Error        string          `json:"error"`
	RawToolCalls json.RawMessage `json:"raw_tool_calls"`
	Attempt      int             `json:"attempt"`
}

// EvaluatorVerdict is the evaluator's judgement on a tree.
type EvaluatorVerdict struct {
	Scope
	Verdict           string          `json:"verdict"` // accept or reject
	RejectionCategory *string         `json:"rejection_category"`
	Concern           *string         `json:"concern"`
	Evidence          []string        `json:"evidence"`
	NextStep          *string         `json:"next_step"`
	Tree              string          `json:"tree"`
	Base              string          `json:"base"`
	Summary           string          `json:"summary"` // summary of the first case, completed by later ones
	Case              json.RawMessage `json:"case"`
	DiffSummary       string          `json:"diff_summary"`
	ParseFailed       bool            `json:"parse_failed"`
	By                string          `json:"by,omitempty"` // ByHarness where no evaluator was asked
	// CarriedFrom is the tree that was reviewed, if it is not Tree: the branch has moved since, in files that the
	// change does not touch.
	CarriedFrom string `json:"carried_from,omitempty"`
	// TestsChanged are acceptance tests of the seed that the change alters, and tests of the project that it alters or
	// deletes.
	TestsChanged []string `json:"tests_changed,omitempty"`
	// PassesOnlyWith are files of configuration and of dependencies. With the seed's versions acceptance tests fail.
	PassesOnlyWith []string `json:"passes_only_with,omitempty"`
	Unseen         []string `json:"unseen,omitempty"`         // changed files that the evaluator did not see, or not completely
	DiffTruncated  bool     `json:"diff_truncated,omitempty"` // the evaluator saw all files' names, not all of the diff
}

// ByHarness is the author of a verdict that needed no model.
const ByHarness = "harness"

// ByPerson is the author of a verdict that the user gave with git tilth done.
const ByPerson = "person"

// Accepted reports whether the verdict accepts the change.
func (v *EvaluatorVerdict) Accepted() bool { return v.Verdict == "accept" }

// WithNext adds the next step to an objection.
func WithNext(says, next string) string {
	if next == "" {
		return says
	}
	if says != "" && !strings.ContainsRune(".!?:;", rune(says[len(says)-1])) {
		says += "."
	}
	return strings.TrimSpace(says + " Next: " + next)
}

// LedgerAppended follows the line of the task's ledger.
type LedgerAppended struct {
	Scope
	VerdictSummary string `json:"verdict_summary"`
}

// Cause returns the reason of a failed check in one line: the first test that failed and its error, as far as the
// runner names them.
func (r ValidatorResult) Cause() string {
	output := ""
	if r.Output != nil {
		output = *r.Output
	}
	if r.Tests == nil || len(r.Tests.Names) == 0 {
		return text.FailingLine(output)
	}
	test := r.Tests.Names[0]
	file, _, _ := strings.Cut(test, "::")
	bare := test[strings.LastIndex(test, ":")+1:]
	if file == bare {
		file = ""
	}
	line, found := text.FailingLineOf(output, file, bare)
	switch {
	case !found:
		return test + " failed"
	case strings.Contains(line, bare):
		return line
	}
	return test + ": " + line
}
