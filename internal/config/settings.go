// Package config answers what a setting is and where its value comes from.
//
// A value is looked for in this order: command-line flag, TILTH_* variable, git
// config (tilth.*), default. Nothing is read from files inside a repository's
// tree, so a cloned repository cannot configure anything. Every value is checked
// when it is loaded, before anything starts.
package config

// kind says which values a setting takes.
type kind int

const (
	kindString   kind = iota
	kindCount         // a whole number, 0 allowed; k, m and g suffixes as in git config
	kindPositive      // a whole number from 1
	kindNumber        // a decimal number, 0 allowed
	kindBool
	kindDuration // 90s, 15m, 6h; a bare number counts minutes
	kindSeconds  // a decimal number of seconds
	kindList     // repeatable
	kindSecret
	kindURL // may hold a password
)

// Setting is a row of the table of everything that can be configured.
type Setting struct {
	// Name is the git config key as it is documented, such as tilth.maxTokens.
	Name string
	// Env are the variables that set it, the first one that is set wins.
	Env []string
	// Flag is the command-line flag that sets it, without dashes, or "".
	Flag    string
	Default string
	Help    string
	kind    kind
	// envOnly keeps a setting out of git config: a credential has its own place there.
	envOnly bool
}

// settings is the table. A new setting is a new row.
var settings = []Setting{
	{Name: "tilth.sessionsDir", Env: []string{"TILTH_SESSIONS_DIR"}, Help: "where sessions are kept (default ~/.tilth/sessions, or $TILTH_HOME/sessions)"},
	{Name: "tilth.baseUrl", Env: []string{"TILTH_BASE_URL"}, kind: kindURL, Help: "OpenAI-compatible endpoint, for example http://localhost:11434/v1"},
	{Name: "tilth.apiKey", Env: []string{"TILTH_API_KEY"}, kind: kindSecret, envOnly: true, Help: "key of the endpoint; without it git credential is asked for one"},

	{Name: "tilth.worker.agent", Env: []string{"TILTH_WORKER_AGENT"}, Help: "builtin, or an agent program: claude, codex, gemini, opencode, or one of yours"},
	{Name: "tilth.worker.model", Env: []string{"TILTH_WORKER_MODEL"}, Flag: "model", Help: "the model that does the tasks"},
	{Name: "tilth.worker.baseUrl", Env: []string{"TILTH_WORKER_BASE_URL"}, kind: kindURL, Help: "endpoint of the worker, if not tilth.baseUrl"},
	{Name: "tilth.worker.apiKey", Env: []string{"TILTH_WORKER_API_KEY"}, kind: kindSecret, envOnly: true, Help: "key of the worker's endpoint"},

	{Name: "tilth.evaluator.agent", Env: []string{"TILTH_EVALUATOR_AGENT"}, Help: "builtin, or an agent program, for the reviewer"},
	{Name: "tilth.evaluator.model", Env: []string{"TILTH_EVALUATOR_MODEL"}, Flag: "evaluator-model", Help: "the model that judges (default: the worker's)"},
	{Name: "tilth.evaluator.baseUrl", Env: []string{"TILTH_EVALUATOR_BASE_URL"}, kind: kindURL, Help: "endpoint of the evaluator, if not tilth.baseUrl"},
	{Name: "tilth.evaluator.apiKey", Env: []string{"TILTH_EVALUATOR_API_KEY"}, kind: kindSecret, envOnly: true, Help: "key of the evaluator's endpoint"},

	{Name: "tilth.prep.model", Env: []string{"TILTH_PREP_MODEL"}, Help: "the model that interviews (default: the worker's)"},
	{Name: "tilth.prep.baseUrl", Env: []string{"TILTH_PREP_BASE_URL"}, kind: kindURL, Help: "endpoint of the interview, if not tilth.baseUrl"},
	{Name: "tilth.prep.apiKey", Env: []string{"TILTH_PREP_API_KEY"}, kind: kindSecret, envOnly: true, Help: "key of the interview's endpoint"},

	{Name: "tilth.maxIterationsPerTask", Env: []string{"TILTH_MAX_ITERATIONS_PER_TASK"}, Flag: "max-iterations", Default: "32", kind: kindPositive, Help: "model calls, or turns of an agent program, per task"},
	{Name: "tilth.maxEvaluatorCallsPerTask", Env: []string{"TILTH_MAX_EVALUATOR_CALLS_PER_TASK"}, Flag: "max-evaluator-calls", Default: "0", kind: kindCount, Help: "reviews per task; 0 is no limit"},
	{Name: "tilth.maxWallClockMinutes", Env: []string{"TILTH_MAX_WALL_CLOCK_MINUTES"}, Flag: "max-minutes", Default: "120", kind: kindNumber, Help: "minutes per run or resume, fractions allowed; 0 is no limit"},
	{Name: "tilth.maxTokens", Env: []string{"TILTH_MAX_TOKENS"}, Flag: "max-tokens", Default: "2000000", kind: kindCount, Help: "tokens per session; 0 is no limit"},
	{Name: "tilth.maxCost", Env: []string{"TILTH_MAX_COST"}, Flag: "max-cost", Default: "0", kind: kindNumber, Help: "dollars per session; 0 is no limit"},

	{Name: "tilth.providerAttempts", Env: []string{"TILTH_PROVIDER_ATTEMPTS"}, Default: "8", kind: kindPositive, Help: "attempts at one model call before the task fails"},
	{Name: "tilth.requestTimeout", Env: []string{"TILTH_REQUEST_TIMEOUT"}, Default: "15m", kind: kindDuration, Help: "time limit of one model call"},
	{Name: "tilth.stream", Env: []string{"TILTH_STREAM"}, Default: "false", kind: kindBool, Help: "ask the endpoint for streamed answers"},
	{Name: "tilth.maxWait", Env: []string{"TILTH_MAX_WAIT"}, Default: "6h", kind: kindDuration, Help: "the longest wait for a usage limit to reset, with --wait"},
	{Name: "tilth.resumeNotice", Env: []string{"TILTH_RESUME_NOTICE"}, Default: "5", kind: kindSeconds, Help: "seconds that run waits after its note about a resumable session"},

	{Name: "tilth.validator", kind: kindList, Help: "name=command, run before each review; repeatable (default: detected from the project)"},
	{Name: "tilth.validatorTimeout", Env: []string{"TILTH_VALIDATOR_TIMEOUT"}, Default: "10m", kind: kindDuration, Help: "time limit of one validator"},
	{Name: "tilth.bashTimeout", Env: []string{"TILTH_BASH_TIMEOUT"}, Default: "2m", kind: kindDuration, Help: "time limit of a worker's shell command that names none"},
	{Name: "tilth.turnTimeout", Env: []string{"TILTH_TURN_TIMEOUT"}, Default: "60m", kind: kindDuration, Help: "time limit of one turn of an agent program"},
	{Name: "tilth.maxTurns", Env: []string{"TILTH_MAX_TURNS"}, Flag: "max-turns", Default: "100", kind: kindPositive, Help: "an agent program's own steps in one turn"},
	{Name: "tilth.setup", kind: kindList, Help: "command to run once in a new worktree; repeatable"},
	{Name: "tilth.copy", kind: kindList, Help: "pattern of ignored files to copy into a new worktree; repeatable"},
	{Name: "tilth.signCommits", Env: []string{"TILTH_SIGN_COMMITS"}, Default: "false", kind: kindBool, Help: "sign the commits that git-tilth makes"},
	{Name: "tilth.prompts", Env: []string{"TILTH_PROMPTS"}, Help: "directory whose files replace the built-in prompts"},
}
