package scripttest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// kinds are the types that a field of the contract may have: s string, n number, b boolean, o object, a array; "?"
// allows null, "-" allows the field to be missing.
type kinds map[string]string

// eventFields are the payload fields of each event, except fields that all events of a task have.
var eventFields = map[string]kinds{
	"session_start": {"phase": "s", "source": "s", "worktree": "s", "branch": "s", "worker_model": "s?",
		"evaluator_model": "s?", "base_url": "s", "limits": "o", "task_count": "n?"},
	"session_prepared": {"prd_entries": "n", "test_files": "n", "interviewer_model": "s?", "tokens_used": "n"},
	"seed_committed":   {"sha": "s", "branch": "s"},
	"session_resume": {"session_id": "s", "last_stop": "s?", "retried": "a", "pending": "a", "unwound_commit": "s?",
		"plan": "s"},
	"context_reset":    {"base": "s"},
	"lane_merged":      {"base": "s", "from": "s", "was": "s", "tree": "s"},
	"memory_load":      {"channels": "o", "user_prompt_chars": "n"},
	"prompt_assembled": {"role": "s", "content": "s", "chars": "n", "truncated": "b"},
	"model_call": {"prompt_tokens": "n", "eval_tokens": "n", "cached_tokens": "n", "reasoning_tokens": "n",
		"cost":              "n?",
		"tokens_used_total": "n", "phase": "s-", "attempt": "n", "finish_reason": "s", "content": "s", "health": "s"},
	"empty_model_response":  {"streak": "n", "finish_reason": "s", "prompt_tokens": "n", "eval_tokens": "n"},
	"agent_waits":           {"who": "s", "reason": "s", "detail": "s", "until": "s-", "attempt": "n"},
	"nudge":                 {"kind": "s", "streak": "n", "content": "s"},
	"tool_call":             {"tool": "s", "args": "os"},
	"tool_result":           {"tool": "s", "result_preview": "s", "result_chars": "n"},
	"pre_tool_block":        {"tool": "s", "reason": "s"},
	"hook_run":              {"hook": "s", "outcome": "s", "tool": "s?", "reason": "s"},
	"validator_run":         {"passed": "b", "results": "a"},
	"case_parse_error":      {"error": "s", "raw_tool_calls": "as", "attempt": "n"},
	"evaluator_parse_error": {"error": "s", "raw_tool_calls": "as", "attempt": "n"},
	"case_submitted":        {"tree": "s", "base": "s", "case": "o"},
	"task_marked":           {"task_id": "s", "mark": "s", "note": "s-"},
	"evaluator_verdict": {"verdict": "s", "rejection_category": "s?", "concern": "s?", "evidence": "a",
		"next_step": "s?", "tree": "s", "parse_failed": "b"},
	"ledger_appended":    {"verdict_summary": "s"},
	"agent_session":      {"agent": "s", "how": "s"},
	"task_done":          {"summary": "s"},
	"task_failed":        {"reason": "s"},
	"commit":             {"sha": "s"},
	"proposed_learnings": {"emitted": "b", "entry": "s?", "reason": "s"},
	"log_repaired":       {},
	"session_rewound":    {"to": "s", "from": "s", "undo": "n", "note": "s?-", "tasks": "o"},
	"session_undone":     {"undo": "n", "redo": "n", "tasks": "o"},
	"commit_repeated":    {"from": "s", "sha": "s"},
	"preflight":          {"passed": "b", "checks": "a"},
	"stop":               {"reason": "s", "failed": "o-"},
	"build_products":     {"left_out": "a", "reason": "s"},
}

// sessionEvents belong to the session, not to a task.
var sessionEvents = []string{"session_start", "session_prepared", "seed_committed", "session_resume", "stop",
	"log_repaired", "task_marked", "session_rewound", "session_undone", "commit_repeated", "preflight"}

// recordCap is the most characters of one text in an event.
const recordCap = 16_000

var (
	traceForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
	spanForm  = regexp.MustCompile(`^[0-9a-f]{16}$`)
	shaForm   = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// auditor collects missing and wrong fields of a session's files.
type auditor struct {
	faults []string
	where  string

	tasks    map[string]*taskNames // by task, "" for events without one
	lastTime time.Time
	traces   map[string]bool
}

// taskNames are the names in the events of an attempt.
type taskNames struct {
	trace    string
	spans    map[string]int64
	lastIter int64
	lastType string
	done     bool // after a task_done that waits for its commit
}

func (a *auditor) of(task string) *taskNames {
	if a.tasks[task] == nil {
		a.tasks[task] = &taskNames{spans: map[string]int64{}}
	}
	return a.tasks[task]
}

func (a *auditor) fault(format string, args ...any) {
	a.faults = append(a.faults, a.where+": "+fmt.Sprintf(format, args...))
}

// contract checks every file of a session against the contract: the record event by event, ledgers, plan, checkpoint,
// summary and the modes of all files.
func contract(ts *testscript.TestScript, _ bool, args []string) {
	need(ts, args, 1, "contract VAR")
	id := ts.Getenv(args[0])
	s := &session.Session{ID: id, Dir: filepath.Join(ts.Getenv("TILTH_SESSIONS_DIR"), id)}
	a := &auditor{traces: map[string]bool{}, tasks: map[string]*taskNames{}}
	n := 0
	_, skipped, err := jsonl.Scan(s.Path(session.RecordFile), 0, func(_ int64, line []byte) error {
		n++
		a.where = fmt.Sprintf("event %d", n)
		a.event(line)
		return nil
	})
	ts.Check(err)
	a.where = "events.jsonl"
	if skipped > 0 || n == 0 {
		a.fault("%d lines, %d of them no objects", n, skipped)
	}
	a.ledgers(s.Path("ledger"))
	a.jsonFile(s.Path("checkpoint.json"), kinds{"session_id": "s", "source": "s", "workspace": "s", "branch": "s",
		"status": "s", "tokens_used": "n", "usage": "o", "started_at": "s", "conversations": "o"})
	a.jsonFile(s.Path("seed-meta.json"), kinds{"interviewer_model": "s?", "started_at": "s", "ended_at": "s",
		"tokens": "n", "tldr": "s", "open_questions": "a", "blockers": "a", "scope_notes": "a"})
	a.summary(s)
	a.plan(s.Path("prd.json"))
	a.modes(s.Dir)
	a.faults = append(a.faults, contractVerified(ts, s)...)
	if len(a.faults) > 0 {
		ts.Fatalf("session %s is not as the contract says:\n%s", id, strings.Join(a.faults, "\n"))
	}
}

func (a *auditor) event(line []byte) {
	e := gjson.ParseBytes(line)
	typ, p := e.Get("type").Str, e.Get("payload")
	a.where += " (" + typ + ")"
	at, err := time.Parse(time.RFC3339, e.Get("ts").Str)
	if err != nil || !strings.HasSuffix(e.Get("ts").Str, "Z") {
		a.fault("ts is %s", e.Get("ts").Raw)
	}
	if at.Before(a.lastTime) {
		a.fault("written before the event that precedes it")
	}
	a.lastTime = at
	fields, known := eventFields[typ]
	switch {
	case !known:
		a.fault("unknown type")
	case !p.IsObject():
		a.fault("the payload is no object")
	case len(e.Map()) != 3:
		a.fault("has fields beside ts, type and payload")
	}
	a.fields(p, fields)
	ofSession := slices.Contains(sessionEvents, typ) || p.Get("hook").Str == "post-run"
	if !ofSession || (typ == "log_repaired" && p.Get("task_id").Exists()) {
		a.scope(typ, p)
	}
	a.values(typ, p)
	a.order(typ, p)
}

func (a *auditor) fields(p gjson.Result, want kinds) {
	for name, kind := range want {
		v := p.Get(name)
		switch {
		case !v.Exists():
			if !strings.Contains(kind, "-") {
				a.fault("%s is missing", name)
			}
		case v.Type == gjson.Null:
			if !strings.Contains(kind, "?") {
				a.fault("%s is null", name)
			}
		case !strings.Contains(kind, kindOf(v)):
			a.fault("%s is %.80s, want %s", name, v.Raw, kind)
		}
	}
}

func kindOf(v gjson.Result) string {
	switch {
	case v.Type == gjson.String:
		return "s"
	case v.Type == gjson.Number:
		return "n"
	case v.IsBool():
		return "b"
	case v.IsObject():
		return "o"
	}
	return "a"
}

// scope checks the names of an event of a task: one trace per run of a task, one span per iteration.
func (a *auditor) scope(typ string, p gjson.Result) {
	trace, span := p.Get("trace_id").Str, p.Get("span_id").Str
	t := a.of(p.Get("task_id").Str)
	if typ == "context_reset" {
		if a.traces[trace] {
			a.fault("the trace has had a run before")
		}
		a.traces[trace] = true
		*t = taskNames{trace: trace, spans: map[string]int64{}}
	}
	if !regexp.MustCompile(`^T-\d{3,}$`).MatchString(p.Get("task_id").Str) || !traceForm.MatchString(trace) || !spanForm.MatchString(span) {
		a.fault("task_id %s, trace_id %s, span_id %s", p.Get("task_id").Raw, p.Get("trace_id").Raw,
			p.Get("span_id").Raw)
		return
	}
	if trace != t.trace {
		a.fault("trace %s within the run %s", trace, t.trace)
	}
	iter := p.Get("iter")
	if !iter.Exists() {
		beforeFirst := typ == "context_reset" ||
			typ == "log_repaired"
		if !beforeFirst || t.lastIter > 0 {
			a.fault("iter is missing")
		}
		return
	}
	if n, seen := t.spans[span]; seen && n != iter.Int() {
		a.fault("span %s is of iterations %d and %d", span, n, iter.Int())
	}
	t.spans[span] = iter.Int()
	if d := iter.Int() - t.lastIter; d != 0 && d != 1 {
		a.fault("iteration %d after %d", iter.Int(), t.lastIter)
	}
	t.lastIter = iter.Int()
	if len(t.spans) > int(t.lastIter) {
		a.fault("%d spans in %d iterations", len(t.spans), t.lastIter)
	}
}

// values checks rules on values beyond a field's type.
func (a *auditor) values(typ string, p gjson.Result) {
	oneOf := func(name string, allowed ...string) {
		if !slices.Contains(allowed, p.Get(name).Str) {
			a.fault("%s is %s", name, p.Get(name).Raw)
		}
	}
	switch typ {
	case "session_start":
		oneOf("phase", "prep-feature", "fork", "run")
	case "prompt_assembled":
		oneOf("role", "worker", "evaluator", "self_improve", "interview")
	case "model_call":
		if p.Get("phase").Exists() {
			oneOf("phase", "interview", "evaluator", "self_improve")
		}
	case "evaluator_verdict":
		oneOf("verdict", "accept", "reject")
		if (p.Get("verdict").Str == "accept") != (p.Get("rejection_category").Type == gjson.Null) {
			a.fault("verdict %s with category %s", p.Get("verdict").Raw, p.Get("rejection_category").Raw)
		}
		if !shaForm.MatchString(p.Get("tree").Str) {
			a.fault("tree is %s", p.Get("tree").Raw)
		}
	case "task_failed":
		oneOf("reason", reasons(func(r record.Reason) bool {
			return r.Task || r.Word == record.CommitRefused || r.Word == record.ReviewerFailed
		})...)
	case "stop":
		oneOf("reason", reasons(func(record.Reason) bool { return true })...)
	case "commit", "seed_committed":
		if !shaForm.MatchString(p.Get("sha").Str) {
			a.fault("sha is %s", p.Get("sha").Raw)
		}
	case "validator_run":
		for _, r := range p.Get("results").Array() {
			a.fields(r, kinds{"name": "s", "passed": "b", "seconds": "n", "output": "s"})
		}
	case "memory_load":
		for _, c := range p.Get("channels").Map() {
			a.fields(c, kinds{"present": "b", "chars": "n", "truncated": "b", "sha256_8": "s"})
		}
	}
	if content := []rune(p.Get("content").Str); len(content) > recordCap+100 {
		a.fault("content of %d characters", len(content))
	}
}

// reasons returns the words of the table's rows that match.
func reasons(match func(record.Reason) bool) (words []string) {
	for _, r := range record.Reasons() {
		if match(r) {
			words = append(words, r.Word)
		}
	}
	return words
}

// order checks the sequence of events at a task's end.
func (a *auditor) order(typ string, p gjson.Result) {
	t := a.of(p.Get("task_id").Str)
	switch typ {
	case "ledger_appended":
		if t.lastType != "evaluator_verdict" && !p.Get("rolled_forward").Bool() {
			a.fault("after %s", t.lastType)
		}
	case "task_done":
		if t.lastType != "ledger_appended" && !p.Get("rolled_forward").Bool() {
			a.fault("after %s", t.lastType)
		}
		t.done = true
	case "commit":
		switch {
		case p.Get("placeholder").Bool():
			if t.lastType != "task_failed" && t.lastType != "build_products" {
				a.fault("placeholder after %s", t.lastType)
			}
		case !t.done && !p.Get("rolled_forward").Bool():
			a.fault("commit of %s without task_done", p.Get("task_id").Str)
		}
		t.done = false
	}
	t.lastType = typ
}

func (a *auditor) ledgers(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		a.where = "ledger/" + filepath.Base(name)
		if !regexp.MustCompile(`^T-\d{3,}\.jsonl$`).MatchString(filepath.Base(name)) {
			a.fault("is no name of a ledger")
		}
		data, err := os.ReadFile(name)
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			a.fault("is not of whole lines: %v", err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			entry := gjson.Parse(line)
			if n := len(entry.Map()); n != 5 && !(n == 6 && entry.Get("note").Exists()) {
				a.fault("has the fields %s", strings.Join(keysOf(entry), ", "))
			}
			a.fields(entry, kinds{"ts": "s", "iter": "n", "diff_summary": "s", "case": "o", "verdict": "o"})
		}
	}
}

func keysOf(v gjson.Result) []string {
	var out []string
	for k := range v.Map() {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (a *auditor) jsonFile(path string, want kinds) gjson.Result {
	a.where = filepath.Base(path)
	data, err := os.ReadFile(path)
	if err != nil || !json.Valid(data) {
		a.fault("cannot be read: %v", err)
		return gjson.Result{}
	}
	v := gjson.ParseBytes(data)
	a.fields(v, want)
	return v
}

// summary is read like other readers do, which update it first.
func (a *auditor) summary(s *session.Session) {
	if err := s.WriteSummary(); err != nil {
		a.fault("summary.json: %v", err)
	}
	v := a.jsonFile(s.Path("summary.json"),
		kinds{"version": "n", "session_id": "s", "started_at": "s", "prep_started_at": "s", "last_event_at": "s",
			"tokens": "o", "tasks": "o", "tool_histogram": "o", "hook_outcomes": "o", "evaluator": "o", "stop": "o?-"})
	a.fields(v.Get("tokens"), kinds{"prompt": "n", "eval": "n", "total": "n"})
	if v.Get("stop").IsObject() {
		a.fields(v.Get("stop"), kinds{"reason": "s", "ts": "s"})
	}
	for id, task := range v.Get("tasks").Map() {
		a.where = "summary.json " + id
		a.fields(task, kinds{"status": "s", "iterations": "n", "tokens": "on", "tool_calls": "o", "hook_blocks": "n",
			"evaluator": "o", "failure_reason": "s?-"})
		a.fields(task.Get("evaluator"), kinds{"accepts": "n", "rejects": "n", "rejection_categories": "o"})
		if task.Get("status").Str == "done" && task.Get("failure_reason").Str != "" {
			a.fault("is done and has a failure_reason")
		}
	}
}

func (a *auditor) plan(path string) {
	a.where = "prd.json"
	data, err := os.ReadFile(path)
	if err != nil || !gjson.ParseBytes(data).IsArray() {
		a.fault("cannot be read: %v", err)
	}
	for _, t := range gjson.ParseBytes(data).Array() {
		a.fields(t, kinds{"id": "s", "title": "s", "description": "s", "acceptance_criteria": "a", "status": "s"})
		if !slices.Contains([]string{"pending", "done", "failed", "skipped"}, t.Get("status").Str) {
			a.fault("status %s", t.Get("status").Raw)
		}
	}
}

// modes checks that nobody else can read the session: directories 0700, files 0600. In the worktree it checks only the
// top, because git writes the files.
func (a *auditor) modes(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			a.fault("%v", err)
			return nil
		}
		a.where, _ = filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		switch {
		case (a.where == "workspace" || strings.HasPrefix(a.where, "workspace.found-") ||
			filepath.Dir(a.where) == "lanes" && d.Name() != ".judge" && d.Name() != ".new") &&
			info.Mode().Perm() == 0o700:
			return fs.SkipDir
		case a.where == "caches" && info.Mode().Perm() == 0o700:
			return fs.SkipDir // the caches below it are closed too
		case (a.where == "judge" || filepath.Dir(a.where) == "lanes/.judge") &&
			(info.Mode().Perm() == 0o700 || info.Mode().Perm() == 0):
			return fs.SkipDir // closed after a killed run
		case d.IsDir() && info.Mode().Perm() != 0o700, !d.IsDir() && info.Mode().Perm() != 0o600:
			a.fault("has mode %o", info.Mode().Perm())
		case strings.Contains(d.Name(), ".tmp"):
			a.fault("a temporary file was left behind")
		}
		return nil
	})
}
