// Package config reads settings and their origins.
//
// The first of these sets a value: command-line flag, TILTH_* variable, git config (tilth.*), default. Nothing is read
// from files inside a repository's tree, so a cloned repository cannot configure anything. Every value is checked when
// it is loaded, before anything starts.
package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// kind is the kind of a setting's values.
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
	kindURL // may have a password
)

// Setting is a row of the table of everything that can be configured.
type Setting struct {
	Name    string // documented git config key, such as tilth.maxTokens
	Env     string // the variable that sets it, "" for a list
	Flag    string // the command-line flag that sets it, without dashes, or ""
	Short   string // a name of one letter for the Flag, or ""
	Imports bool   // only commands that import tasks have the Flag
	Given   string // value of a Flag without an argument, else ""
	Default string
	Help    string
	kind    kind
	values  []string // allowed values of a kindString
	alone   string   // a value that cannot be combined with others
	check   func(string) error
	envOnly bool // keeps a setting out of git config: a credential has its own place there
	judges  bool // decides how work is judged
}

// settings is the table. A new setting is a new row.
var settings = withEnv(slices.Concat([]Setting{
	{Name: "tilth.sessionsDir", Help: "directory of the sessions (default ~/.tilth/sessions, or $TILTH_HOME/sessions)"},
	{Name: "tilth.baseUrl", judges: true, kind: kindURL,
		Help: "OpenAI-compatible endpoint, for example http://localhost:11434/v1"},
	{Name: "tilth.apiKey", kind: kindSecret, envOnly: true,
		Help: "key of the endpoint (default: from git credential)"},

	{Name: "tilth.worker.agent", judges: true,
		Help: "builtin, claude, codex, gemini, opencode, copilot, qwen, or one of yours; claude,codex: codex takes " +
			"over at a limit"},
	{Name: "tilth.worker.model", judges: true, Flag: "model", Help: "model that does the tasks"},
	{Name: "tilth.worker.baseUrl", judges: true, kind: kindURL, Help: "endpoint of the worker, if not tilth.baseUrl"},
	{Name: "tilth.worker.apiKey", kind: kindSecret, envOnly: true, Help: "key of the worker's endpoint"},

	{Name: "tilth.evaluator.agent", judges: true, Help: "reviewer: builtin, an agent program, or a list of both"},
	{Name: "tilth.evaluator.model", judges: true, Flag: "evaluator-model",
		Help: "model that reviews (default: the worker's)"},
	{Name: "tilth.evaluator.baseUrl", judges: true, kind: kindURL,
		Help: "endpoint of the evaluator, if not tilth.baseUrl"},
	{Name: "tilth.evaluator.apiKey", kind: kindSecret, envOnly: true, Help: "key of the evaluator's endpoint"},

	{Name: "tilth.prep.agent", Help: "interviewer: builtin or an agent program"},
	{Name: "tilth.prep.model", Help: "model of the interview (default: the worker's)"},
	{Name: "tilth.prep.baseUrl", kind: kindURL, Help: "endpoint of the interview, if not tilth.baseUrl"},
	{Name: "tilth.prep.apiKey", kind: kindSecret, envOnly: true, Help: "key of the interview's endpoint"},
}, capSettings(), []Setting{
	{Name: "tilth.onFailure", Default: "stop", values: []string{"stop", "continue"},
		Help: "after a failed task: stop, or continue with independent tasks (--keep-going)"},
	{Name: "tilth.lanes", Flag: "lanes", Short: "j", Default: "1", kind: kindPositive, check: checkLanes,
		Help: "number of tasks worked on at the same time, at most 64"},
	{Name: "tilth.maxOutage", Default: "1h", kind: kindDuration,
		Help: "how long an endpoint or agent program may fail before the next agent takes over or the run stops"},
	{Name: "tilth.providerAttempts", kind: kindPositive,
		Help: "attempts at one model call before the run stops (default: as many as tilth.maxOutage allows)"},
	{Name: "tilth.requestTimeout", Default: "15m", kind: kindDuration, Help: "time limit of one model call"},
	{Name: "tilth.wait", Flag: "no-wait", Given: "false", Default: "true", kind: kindBool,
		Help: "false: stop at a usage limit; true: wait until it resets"},
	{Name: "tilth.maxWait", Default: "6h", kind: kindDuration,
		Help: "longest wait for a usage limit to reset"},
	{Name: "tilth.awake", Default: "auto", values: []string{"auto", "off"},
		Help: "auto: keep the machine awake during a run, with systemd-inhibit or caffeinate; off: let it sleep"},
	{Name: "tilth.again", Flag: "again", Imports: true, Given: "true", Default: "false", kind: kindBool,
		Help: "redo tasks that are done in a session you have not taken, merged or pushed"},
	{Name: "tilth.optional", Flag: "optional", Imports: true, Given: "true", Default: "false", kind: kindBool,
		Help: "import optional tasks of a list, too"},
	{Name: "tilth.resumeNotice", Default: "5", kind: kindSeconds,
		Help: "seconds of pause after the note about a resumable session"},

	{Name: "tilth.validator", judges: true, kind: kindList,
		Help: "name=command to run before each review; repeatable (default: detected)"},
	{Name: "tilth.validatorTimeout", judges: true, Default: "10m", kind: kindDuration,
		Help: "time limit of one validator"},
	{Name: "tilth.redFirst", judges: true, Default: "warn", values: []string{"warn", "require", "off"},
		Help: "an acceptance test that passes before any work: warn, refuse to run (require), or off"},
	{Name: "tilth.retryTests", judges: true, Default: "2", kind: kindCount,
		Help: "how often a failing test of the project or an earlier task runs again alone; if it passes, it is flaky"},
	{Name: "tilth.bashTimeout", Default: "2m", kind: kindDuration,
		Help: "default time limit of a worker's shell command"},
	{Name: "tilth.turnTimeout", Default: "60m", kind: kindDuration, Help: "time limit of one turn of an agent program"},
	{Name: "tilth.linger", Default: "20s", kind: kindDuration,
		Help: "idle time after which a turn with a result ends, unless a subagent is running"},
	{Name: "tilth.maxTurns", Flag: "max-turns", Default: "100", kind: kindPositive,
		Help: "steps that an agent program may take in one iteration"},
	{Name: "tilth.setup", judges: true, kind: kindList, alone: "none",
		Help: "command to run once in a new worktree; repeatable; none turns it off (default: by the lock file)"},
	{Name: "tilth.copy", judges: true, kind: kindList,
		Help: "pattern of ignored files to copy into a new worktree; repeatable"},
	{Name: "tilth.maxFileSize", judges: true, Default: "20m", kind: kindCount,
		Help: "largest file to commit, in bytes; 0 is no limit"},
	{Name: "tilth.maxFetch", Default: "200m", kind: kindCount,
		Help: "largest session to fetch, in bytes beyond its base; 0 is no limit"},
	{Name: "tilth.allowBinary", judges: true, kind: kindList,
		Help: "pattern of compiled files that may be committed; repeatable"},
	{Name: "tilth.minFree", Default: "200m", kind: kindCount,
		Help: "free disk space below which a run stops, in bytes; 0 is no limit"},
	{Name: "tilth.sandboxEnv", judges: true, kind: kindList,
		Help: "variable to keep in the sandbox although it looks like a key; repeatable"},
	{Name: "tilth.sandbox", judges: true, Default: "auto", values: []string{"auto", "on", "off"},
		Help: "sandbox for everything the worker starts: auto (if the system has one), on (required), off"},
	{Name: "tilth.sandboxWrite", judges: true, kind: kindList,
		Help: "path outside the worktree that the sandbox may write; repeatable"},
	{Name: "tilth.sandboxRead", judges: true, kind: kindList,
		Help: "path to open for reading in a closed directory, such as the home directory; repeatable"},
	{Name: "tilth.sandboxHide", judges: true, kind: kindList,
		Help: "path that the sandbox may not read; repeatable"},
	{Name: "tilth.sandboxNetwork", judges: true, Default: "on", values: []string{"on", "off"},
		Help: "network access in the sandbox: on or off"},
	{Name: "tilth.maxProcesses", Default: "2000", kind: kindPositive,
		Help: "processes and threads of one command or turn"},
	{Name: "tilth.maxMemory", Default: "0", kind: kindCount,
		Help: "memory of one command or turn, in bytes; 0 is 90 % of the machine"},
	{Name: "tilth.undoKeep", Default: "10", kind: kindPositive, Help: "number of undos to keep"},
	{Name: "tilth.lease", Default: "5m", kind: kindDuration, check: checkLease,
		Help: "lifetime of a claim on a remote session, at least 2s; renewed after a third of it"},
	{Name: "tilth.reviewers",
		Help: "bots whose review threads address works on, separated by commas; people need write access"},
	{Name: "tilth.watchInterval", Default: "30s", kind: kindDuration,
		Help: "time between two checks of the pull request by address --watch"},
	{Name: "tilth.signCommits", Default: "false", kind: kindBool,
		Help: "sign commits: true or false (default: commit.gpgSign)"},
	{Name: "tilth.branch", Default: "session/{id}", check: checkBranch,
		Help: "name of a new session's branch, from {id}, {label} and {date}"},
	{Name: "tilth.signOff", Default: "false", kind: kindBool,
		Help: "add your Signed-off-by to the commits of tasks, as git commit --signoff does"},
	{Name: "tilth.commitSubject", Default: "{title}", check: checkSubject,
		Help: "subject of a task's commit, from {id}, {title}, {title:lower} (no capital), {type} (default feat) " +
			"and {scope}"},
	{Name: "tilth.seedCommit", Default: "auto", values: []string{"auto", "keep"},
		Help: "commit of a seed without acceptance tests: auto (none), keep (an empty commit)"},
	{Name: "tilth.notify",
		Help: "notify at a run's end: bell, desktop, or a command that reads TILTH_NOTIFY_*"},
	{Name: "tilth.notifyOn", Default: "end", check: checkNotifyOn,
		Help: "run events that send a notification, separated by commas: end, failure, limit, outage"},
	{Name: "tilth.prompts", judges: true, Help: "directory with files that replace built-in prompts"},
}))

// withEnv names the variable of each setting after it: tilth.worker.baseUrl is TILTH_WORKER_BASE_URL.
func withEnv(rows []Setting) []Setting {
	for i, s := range rows {
		if s.kind != kindList {
			rows[i].Env = variable(s.Name)
		}
	}
	return rows
}

func variable(name string) string {
	var b strings.Builder
	for _, c := range name {
		switch {
		case c == '.':
			c = '_'
		case unicode.IsUpper(c):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}

// checkLanes refuses a number of lanes that is probably mistyped.
func checkLanes(value string) error {
	if n, err := parseCount(value); err == nil && n > 64 {
		return errors.New("must be at most 64")
	}
	return nil
}

// checkNotifyOn refuses an unknown event.
func checkNotifyOn(value string) error {
	for _, name := range strings.Split(value, ",") {
		if !slices.Contains([]string{"end", "failure", "limit", "outage"}, name) {
			return fmt.Errorf("%q is not end, failure, limit or outage", name)
		}
	}
	return nil
}

// checkLease refuses a claim that expires before it can be renewed.
func checkLease(value string) error {
	if d, err := time.ParseDuration(value); err == nil && d < 2*time.Second {
		return errors.New("must be at least 2s")
	}
	return nil
}

// notInBranch matches the characters and parts that git allows in no branch.
var notInBranch = pattern.New(`[\x00-\x20~^:?*\[\\\x7f]|\.\.|@\{|//|/\.|^[-./]|[./]$|\.lock(?:/|$)|^@$|^HEAD$`)

// checkBranch refuses a form of branch names that git refuses, or that has another part than the usual ones.
func checkBranch(form string) error {
	for _, part := range subjectPart().FindAllString(form, -1) {
		if !slices.Contains([]string{"{id}", "{label}", "{date}"}, part) {
			return fmt.Errorf("%s is not one of {id}, {label} and {date}", part)
		}
	}
	if notInBranch().MatchString(form) {
		return errors.New("is not a branch name")
	}
	return nil
}

var subjectPart = pattern.New(`\{[^}]*\}`)

// checkSubject refuses a form of subjects with an unknown {field}, or without any.
func checkSubject(form string) error {
	parts := subjectPart().FindAllString(form, -1)
	for _, part := range parts {
		if !slices.Contains([]string{"{id}", "{title}", "{title:lower}", "{type}", "{scope}"}, part) {
			return fmt.Errorf("%s is not one of {id}, {title}, {title:lower}, {type} and {scope}", part)
		}
	}
	if !slices.ContainsFunc(parts, func(p string) bool { return p == "{id}" || strings.HasPrefix(p, "{title") }) {
		return errors.New("names neither {id} nor {title}")
	}
	return nil
}
