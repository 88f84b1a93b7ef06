package record

import (
	"slices"
	"strings"
)

// Why a run stops or a task fails, in the words of the record. The caps' words are config's (config.Cap) as well.
const (
	AllDone        = "all_done"
	Interrupted    = "interrupted"
	Errored        = "error"
	WallClock      = "wall_clock"
	TokenCap       = "token_cap"
	CostCap        = "cost_cap"
	UsageLimit     = "usage_limit" // a provider's limit on the user's plan; the stop says when it resets
	DiskFull       = "disk_full"   // less than tilth.minFree is left on a disk that the run writes to
	ClaimLost      = "claim_lost"  // another machine took the session over
	ReviewerFailed = "reviewer_failed"
	// PreflightFailed is a problem found before any model is asked.
	PreflightFailed = "preflight"
	// CommitRefused means that a commit hook refused the same change with the same words again, or that a commit
	// cannot be signed. The task is accepted and waits for its commit.
	CommitRefused = "commit_refused"
	// TasksFailed is the end of a run that continued after a failed task: no other task can start.
	TasksFailed = "tasks_failed"

	IterCap         = "iter_cap"
	EvaluatorCap    = "evaluator_cap"
	EmptyResponses  = "empty_responses"
	NoCase          = "no_case"
	Stuck           = "stuck"
	ProviderFailure = "provider_failure"
	ContextOverflow = "context_overflow"

	Outage = "outage" // the reason of a wait, not of a stop
)

// Reason describes why a run stopped. It is the only table of reasons.
type Reason struct {
	Word   string
	Says   string // shown after "Stopped: "
	Status string // status of the session after it
	Exit   int    // code of the command that ran
	Hint   string // the fix before a resume, unless the stop has its own
	// Task marks a reason that fails a task. A work in progress commit can name it.
	Task bool
	// Calm is a stop without a problem: the work is done, or the user or a cap ended the run.
	Calm bool
	// Cuts marks a stop that can come between a verdict and its commit, in a run and in each resume that retries
	// the commit.
	Cuts bool
	// Last marks a stop after which a resume has nothing to do.
	Last bool
}

var reasons = []Reason{
	{Word: AllDone, Says: "every task is done", Status: "all_done", Calm: true, Last: true},
	{Word: Interrupted, Says: "interrupted by the user or a signal", Status: "running", Exit: 130, Calm: true,
		Cuts: true},
	{Word: Errored, Says: "an error", Status: "failed", Exit: 3, Cuts: true},
	{Word: WallClock, Says: "the time limit was reached", Status: "running", Exit: 5, Calm: true},
	{Word: TokenCap, Says: "the token cap was reached", Status: "running", Exit: 5, Calm: true},
	{Word: CostCap, Says: "the dollar cap was reached", Status: "running", Exit: 5, Calm: true},
	{Word: UsageLimit, Says: "the provider's usage limit was reached", Status: "running", Exit: 5},
	{Word: DiskFull, Says: "a disk is full", Status: "running", Exit: 5, Cuts: true,
		Hint: "free some space, or lower tilth.minFree"},
	{Word: ClaimLost, Says: "another machine took the session over", Status: "running", Exit: 4, Cuts: true},
	{Word: ReviewerFailed, Says: "the reviewer gave no readable verdict", Status: "running", Exit: 3,
		Hint: "set another --evaluator-model or tilth.evaluator.agent"},
	{Word: PreflightFailed, Says: "a check before the first task failed", Status: "running", Exit: 2},
	{Word: CommitRefused, Says: "the accepted change cannot be committed", Status: "running", Exit: 1, Cuts: true,
		Hint: "correct the hook, or tilth.commitSubject"},
	{Word: TasksFailed, Says: "some tasks are not done", Status: "failed", Exit: 1},
	{Word: IterCap, Says: "the iteration cap was reached", Status: "failed", Exit: 1, Task: true},
	{Word: EvaluatorCap, Says: "the cap on reviews was reached", Status: "failed", Exit: 1, Task: true},
	{Word: EmptyResponses, Says: "the model gave empty answers", Status: "failed", Exit: 3, Task: true},
	{Word: NoCase, Says: "the worker did not hand in its work", Status: "failed", Exit: 1, Task: true},
	{Word: Stuck, Says: "same failure three times in a row", Status: "failed", Exit: 1, Task: true},
	{Word: ContextOverflow, Says: "the conversation is too long, and so was a new one", Status: "failed", Exit: 1,
		Task: true},
	{Word: ProviderFailure, Says: "the model endpoint failed", Status: "running", Exit: 3},
}

// Reasons returns the table.
func Reasons() []Reason { return slices.Clone(reasons) }

// ReasonOf returns the Reason with this name. An unknown name is its own description.
func ReasonOf(word string) Reason {
	if i := slices.IndexFunc(reasons, func(r Reason) bool { return r.Word == word }); i >= 0 {
		return reasons[i]
	}
	return Reason{Word: word, Says: strings.ReplaceAll(word, "_", " "), Status: "running", Exit: 1}
}
