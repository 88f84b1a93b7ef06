package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"
)

// rows are the types of events that this program writes, in their order in a session.
var rows = []row{
	{"session_start", "Session started", func() Event { return &SessionStart{} }, true, outside},
	{"session_prepared", "Seed prepared", func() Event { return &SessionPrepared{} }, true, outside},
	{"seed_committed", "Seed", func() Event { return &SeedCommitted{} }, true, work},
	{"session_resume", "Session resumed", func() Event { return &SessionResume{} }, true, inReview | outside},
	{"preflight", "Preflight", func() Event { return &Preflight{} }, false, aside},
	{"context_reset", "Fresh context", func() Event { return &ContextReset{} }, false, work},
	{"lane_merged", "Merged with the branch", func() Event { return &LaneMerged{} }, true, work},
	{"memory_load", "Memory loaded", func() Event { return &MemoryLoad{} }, false, work},
	{"prompt_assembled", "Prompt", func() Event { return &PromptAssembled{} }, false, work},
	{"model_call", "Model", func() Event { return &ModelCall{} }, false, work},
	{"empty_model_response", "Empty answer", func() Event { return &EmptyModelResponse{} }, false, work},
	{"nudge", "Nudge", func() Event { return &Nudge{} }, false, work},
	{"tool_call", "Tool", func() Event { return &ToolCall{} }, false, work},
	{"tool_result", "Result", func() Event { return &ToolResult{} }, false, work},
	{"pre_tool_block", "Blocked", func() Event { return &PreToolBlock{} }, false, work},
	{"hook_run", "Hook", func() Event { return &HookRun{} }, false, aside},
	{"validator_run", "Validators", func() Event { return &ValidatorRun{} }, false, work},
	{"case_parse_error", "Unreadable case", func() Event { return &CaseParseError{} }, false, work},
	{"evaluator_parse_error", "Unreadable verdict", func() Event { return &EvaluatorParseError{} }, false,
		inReview},
	{"case_submitted", "Case submitted", func() Event { return &CaseSubmitted{} }, false, work},
	{"evaluator_verdict", "Verdict", func() Event { return &EvaluatorVerdict{} }, true, work},
	{"ledger_appended", "Ledger", func() Event { return &LedgerAppended{} }, false, outside | afterStop},
	{"agent_session", "Agent conversation", func() Event { return &AgentSession{} }, false, afterStop},
	{"agent_waits", "Agent waits", func() Event { return &AgentWaits{} }, false, inReview},
	{"task_done", "Task done", func() Event { return &TaskDone{} }, false, afterVerdict | outside},
	{"task_failed", "Task failed", func() Event { return &TaskFailed{} }, true, afterVerdict | outside},
	{"commit", "Commit", func() Event { return &Commit{} }, true, outside},
	{"task_marked", "Marked by you", func() Event { return &TaskMarked{} }, true, aside},
	{"proposed_learnings", "Learning", func() Event { return &ProposedLearnings{} }, false, afterStop | outside},
	{"build_products", "Left out of the commit", func() Event { return &BuildProducts{} }, false, outside},
	{"session_rewound", "Rewound", func() Event { return &SessionRewound{} }, true, outside},
	{"commit_repeated", "Your commit", func() Event { return &CommitRepeated{} }, true, aside},
	{"session_undone", "Undone", func() Event { return &SessionUndone{} }, true, aside},
	{"log_repaired", "Record repaired", func() Event { return &LogRepaired{} }, true, aside},
	{"stop", "Stopped", func() Event { return &Stop{} }, true, aside},
}

// SessionStart starts a session (phase prep-feature or fork) or a run of it (phase run).
type SessionStart struct {
	Scope
	Phase            string `json:"phase"`
	Source           string `json:"source"`
	Worktree         string `json:"worktree"`
	Branch           string `json:"branch"`
	Base             string `json:"base,omitempty"` // commit at which the branch begins
	ForkedFrom       string `json:"forked_from,omitempty"`
	At               string `json:"at,omitempty"` // the point of that session
	InterviewerModel string `json:"interviewer_model,omitempty"`
	Agents
	TaskCount int `json:"task_count"`
	// Sandbox describes the sandbox in words.
	Sandbox string `json:"sandbox,omitempty"`
	// Settings are the settings that affect validation and review, by name.
	Settings map[string]Setting `json:"settings,omitempty"`
	// Tasks are the finished tasks of a fork, with the commits that it shares.
	Tasks map[string]TaskState `json:"tasks,omitempty"`
}

// Agents are the agents, models and caps of a run.
type Agents struct {
	WorkerModel    *string `json:"worker_model"`
	EvaluatorModel *string `json:"evaluator_model"`
	WorkerAgent    string  `json:"worker_agent,omitempty"`
	EvaluatorAgent string  `json:"evaluator_agent,omitempty"`
	BaseURL        string  `json:"base_url"`
	// Limits are the caps by their names; 0 is off.
	Limits map[string]float64 `json:"limits"`
}

// Setting is a setting for validation or review: its value, or a hash of a long one, and its origin.
type Setting struct {
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// SettingChange is a setting that changed since the last start.
type SettingChange struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
	Origin string `json:"origin"` // origin of the new value, or ""
}

// SessionPrepared ends a preparation, before its seed is committed.
type SessionPrepared struct {
	Scope
	PRDEntries       int             `json:"prd_entries"`
	TestFiles        int             `json:"test_files"`
	InterviewerModel *string         `json:"interviewer_model"`
	Import           *Import         `json:"import,omitempty"` // result of --from
	TokensUsed       *int64          `json:"tokens_used"`
	Usage            json.RawMessage `json:"usage,omitempty"` // the checkpoint's usage
	StartedAt        string          `json:"started_at,omitempty"`
}

// Import describes how a task list was read.
type Import struct {
	Format   string   `json:"format"`
	Tasks    int      `json:"tasks"`    // imported
	Done     int      `json:"done"`     // left out because the list marks them as done
	Optional int      `json:"optional"` // left out because the list marks them as optional
	LeftOut  []string `json:"left_out"` // everything else that was left out, with its place
}

// SeedCommitted names the commit before any work.
type SeedCommitted struct {
	Scope
	SHA    string `json:"sha"`
	Branch string `json:"branch"`
}

// SessionResume is a resume: its findings and its plan.
type SessionResume struct {
	Scope
	SessionID      string   `json:"session_id"`
	LastStop       *string  `json:"last_stop"`
	Retried        []string `json:"retried"`
	Pending        []string `json:"pending"`
	UnwoundCommit  *string  `json:"unwound_commit"`
	UnwoundCommits []string `json:"unwound_commits,omitempty"`
	Plan           string   `json:"plan"`
	*Agents
	Sandbox string `json:"sandbox,omitempty"` // the same as in session_start
	// Settings are the same as in session_start; SettingsChanged are those that changed since the last start.
	Settings        map[string]Setting `json:"settings,omitempty"`
	SettingsChanged []SettingChange    `json:"settings_changed,omitempty"`
	Edited          []string           `json:"edited,omitempty"` // files changed in the worktree since the stop
}

// foundAllDone reports whether the resume had nothing to do. The stop before it then still counts.
func (e *SessionResume) foundAllDone() bool {
	return e.LastStop != nil && *e.LastStop == AllDone && len(e.Pending)+len(e.Retried) == 0
}

// Preflight lists the validators that were found before the first task, and whether they can run.
type Preflight struct {
	Scope
	Passed bool    `json:"passed"`
	Checks []Check `json:"checks"`
	Setup  string  `json:"setup,omitempty"` // why the setup failed, so that nothing was checked
	// PassesOnBase has the acceptance tests that pass before any work, and the broken ones, of each task tried.
	PassesOnBase map[string][]string `json:"passes_on_base,omitempty"`
}

// ContextReset begins an attempt at a task.
type ContextReset struct {
	Scope
	Base string `json:"base"` // commit at which the attempt begins
	// Judged is the start of the judged range, "" for Base. A placeholder is above it.
	Judged string `json:"judged,omitempty"`
	// Done are the tasks that are done when the attempt begins; nil in events of other versions or tools.
	Done *[]string `json:"done,omitempty"`
	Lane bool      `json:"lane,omitempty"` // the attempt is in a lane
	// Since is the base of the lane's first attempt, if this attempt continues another one.
	Since string `json:"since,omitempty"`
}

// LaneMerged announces that a lane's worktree becomes its change merged onto the branch's tip. It is written before the
// files change, and has everything that a resume needs to finish.
type LaneMerged struct {
	Scope
	Base      string   `json:"base"`                // the tip, and the lane's new base
	From      string   `json:"from"`                // earlier base
	Was       string   `json:"was"`                 // the lane's tree before
	Tree      string   `json:"tree"`                // the lane's tree after
	Conflicts []string `json:"conflicts,omitempty"` // the conflicting files
	Marker    string   `json:"marker,omitempty"`    // the label of the lane's side in their marker lines
	Other     string   `json:"other,omitempty"`     // the label of the other side; "" for Base
	Said      string   `json:"said,omitempty"`      // git's messages about them
}

// OtherSide returns the label of the other side in marker lines.
func (e *LaneMerged) OtherSide() string { return cmp.Or(e.Other, e.Base) }

// MemoryLoad is the manifest of a prompt.
type MemoryLoad struct {
	Scope
	Role            string             `json:"role"`
	Channels        map[string]Channel `json:"channels"`
	UserPromptChars int                `json:"user_prompt_chars"`
}

// Channel is one part of a prompt.
type Channel struct {
	Chars     int    `json:"chars"`
	Present   bool   `json:"present"`
	SHA256    string `json:"sha256_8"`
	Truncated bool   `json:"truncated"`
}

// NewChannel describes a part of a prompt that is cut to limit characters.
func NewChannel(text string, limit int) Channel {
	sum := sha256.Sum256([]byte(text))
	n := utf8.RuneCountInString(text)
	return Channel{Present: text != "", Chars: n, Truncated: n > limit, SHA256: hex.EncodeToString(sum[:])[:8]}
}

// PromptAssembled is the prompt of a role. Append cuts its content to MaxText characters.
type PromptAssembled struct {
	Scope
	Role      string `json:"role"`
	Content   string `json:"content"`
	Chars     int    `json:"chars"` // characters of the whole prompt
	Truncated bool   `json:"truncated"`
}

// NewPrompt returns the event of a prompt that has a system and a user part.
func NewPrompt(role, system, user string) *PromptAssembled {
	prompt := system + "\n---\n\n" + user
	n := utf8.RuneCountInString(prompt)
	return &PromptAssembled{Role: role, Content: prompt, Chars: n, Truncated: n > MaxText}
}

// ModelCall is one answer of a model, or one turn of an agent program. Phase is the role.
type ModelCall struct {
	Scope
	PromptTokens     int64           `json:"prompt_tokens"`
	EvalTokens       int64           `json:"eval_tokens"`
	CachedTokens     int64           `json:"cached_tokens"`    // part of prompt_tokens
	ReasoningTokens  int64           `json:"reasoning_tokens"` // part of eval_tokens
	Cost             *float64        `json:"cost"`             // dollars; null if unknown
	TokensUsedTotal  int64           `json:"tokens_used_total"`
	Attempt          int             `json:"attempt"`
	FinishReason     string          `json:"finish_reason"`
	Health           string          `json:"health"` // "ok", else the fault of the answer
	Error            string          `json:"error,omitempty"`
	Status           *int            `json:"status,omitempty"` // HTTP status
	WaitSeconds      *float64        `json:"wait_seconds,omitempty"`
	Content          string          `json:"content"`
	Chars            *int            `json:"chars,omitempty"` // characters of the whole content
	Truncated        *bool           `json:"truncated,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	Agent            string          `json:"agent,omitempty"` // name, if the role has several agents
	Turns            *int            `json:"turns,omitempty"` // turns of an agent program
	Conversation     *string         `json:"conversation,omitempty"`
	Denied           []string        `json:"denied,omitempty"`     // tools that an agent program refused
	Skipped          int             `json:"skipped,omitempty"`    // skipped lines and updates
	OtherCost        string          `json:"other_cost,omitempty"` // in a currency other than dollars; not counted
}

// HealthCut is the health of a turn that git-tilth ended after the program had reported its result and continued.
const HealthCut = "cut"

// EmptyModelResponse follows the model_call of an empty answer.
type EmptyModelResponse struct {
	Scope
	Streak       int    `json:"streak"`
	FinishReason string `json:"finish_reason"`
	PromptTokens int64  `json:"prompt_tokens"`
	EvalTokens   int64  `json:"eval_tokens"`
}

// Nudge is a message to a model that neither called a tool nor handed in.
type Nudge struct {
	Scope
	Kind    string `json:"kind"`
	Streak  int    `json:"streak"`
	Content string `json:"content"`
}

// ToolCall is a call as the model made it. Args is an object, or a string where the model garbled it.
type ToolCall struct {
	Scope
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// ToolResult is the beginning of a tool's answer.
type ToolResult struct {
	Scope
	Tool    string `json:"tool"`
	Preview string `json:"result_preview"`
	Chars   int    `json:"result_chars"`
	IsError *bool  `json:"is_error,omitempty"`
}

// PreToolBlock is a call that was not carried out.
type PreToolBlock struct {
	Scope
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// HookRun is a run of a lifecycle hook of the repository.
type HookRun struct {
	Scope
	Hook    string  `json:"hook"`
	Outcome string  `json:"outcome"` // ok, block, failed, error or interrupted
	Tool    *string `json:"tool"`
	Reason  string  `json:"reason"`
}

// AgentSession is a conversation of an agent program that began, was resumed, was lost or replaced.
type AgentSession struct {
	Scope
	Agent        string `json:"agent"`
	Conversation string `json:"conversation"`
	How          string `json:"how"`
	Why          string `json:"why"`
	Role         string `json:"role,omitempty"` // empty for the worker
	// From and Until name the agent at its usage limit whose task another one takes over, and the end of the limit.
	From  string `json:"from,omitempty"`
	Until string `json:"until,omitempty"`
}

// AgentWaits is a wait for an endpoint or agent program: the run waits before it asks again, or the program waits for
// its API by itself. It is written when the wait begins, and once a minute.
type AgentWaits struct {
	Scope
	Who     string `json:"who"`
	Reason  string `json:"reason"` // Outage or UsageLimit
	Detail  string `json:"detail"`
	Until   string `json:"until,omitempty"` // "" if unknown
	Attempt int    `json:"attempt"`         // the failed one; 0 for a program that waits by itself
}

// TaskDone is a task with an accepted change; its commit follows.
type TaskDone struct {
	Scope
	Summary string `json:"summary"`
}

// TaskFailed is a task without a commit.
type TaskFailed struct {
	Scope
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	// Objection is the last objection to the change.
	Objection string `json:"objection,omitempty"`
	Hint      string `json:"hint,omitempty"` // the command that helps
}

// Commit is a task's commit, or the placeholder of a failed one.
type Commit struct {
	Scope
	SHA         string `json:"sha"`
	Placeholder bool   `json:"placeholder,omitempty"`
	// Aside is the bundle of a placeholder that is not on the branch, relative to the session's directory.
	Aside string `json:"aside,omitempty"`
}

// TaskMarked is the user's decision on a task, between two runs.
type TaskMarked struct {
	Scope
	Mark string `json:"mark"` // done, skipped, retry, kept; of an edited plan: added, changed, moved, removed
	Note string `json:"note,omitempty"`
	// Status is the status that the user set in prd.json; Mark has the same meaning.
	Status string `json:"status,omitempty"`
}

// ProposedLearnings is the answer to the question about learnings.
type ProposedLearnings struct {
	Scope
	Emitted bool    `json:"emitted"`
	Entry   *string `json:"entry"`
	Reason  string  `json:"reason"`
}

// LastStop is the stop that is a session's last state.
type LastStop struct {
	Reason string `json:"reason"`
	TS     string `json:"ts"`
}

// LogRepaired is damage that a crash or the worker left, in a file of the session or elsewhere, and its repair.
type LogRepaired struct {
	Scope
	File     string `json:"file,omitempty"` // relative to the session's directory
	CutBytes *int64 `json:"cut_bytes,omitempty"`
	Why      string `json:"why,omitempty"`

	What string `json:"what,omitempty"`
	Done string `json:"done,omitempty"`
}

// Stop is the end of a run.
type Stop struct {
	Scope
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail,omitempty"`
	Reset   string   `json:"reset,omitempty"` // end of a usage limit
	Seconds *float64 `json:"seconds,omitempty"`
	Error   string   `json:"error,omitempty"`
	Hint    string   `json:"hint,omitempty"` // the fix before a resume
	// Failed are the tasks that failed in a run with --keep-going, with the reasons.
	Failed map[string]string `json:"failed,omitempty"`
}
