package session

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// script turns "type {payload}" lines into a record, a second apart.
func script(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		typ, payload, _ := strings.Cut(line, " ")
		if payload == "" {
			payload = "{}"
		}
		ts := record.FormatTime(testNow.Add(time.Duration(i) * time.Second))
		fmt.Fprintf(&b, `{"ts":%q,"type":%q,"payload":%s}`+"\n", ts, typ, payload)
	}
	return b.String()
}

func rollUp(text string) *Summary {
	s := NewSummary(testID)
	for line := range strings.Lines(text) {
		s.Feed(record.Parse([]byte(strings.TrimSpace(line))))
	}
	return s
}

var wholeRun = script(
	`session_start {"phase":"prep-feature","source":"/s","worker_model":"w","evaluator_model":"e"}`,
	`model_call {"phase":"interview","prompt_tokens":10,"eval_tokens":1,"cost":0.25,"tokens_used_total":11}`,
	`session_prepared {"tokens_used":11}`,
	`seed_committed {"sha":"abc","branch":"session/x"}`,
	`session_start {"phase":"run","limits":{"max_tokens":100}}`,
	`context_reset {"task_id":"T-001"}`,
	`model_call {"task_id":"T-001","iter":1,"prompt_tokens":100,"eval_tokens":20,"cached_tokens":50,"reasoning_tokens":5,"cost":0.5,"tokens_used_total":131}`,
	`tool_call {"task_id":"T-001","iter":1,"tool":"bash"}`,
	`hook_run {"task_id":"T-001","hook":"pre-tool","outcome":"block","tool":"bash"}`,
	`pre_tool_block {"task_id":"T-001","iter":1,"tool":"bash","reason":"sudo"}`,
	`tool_call {"task_id":"T-001","iter":1,"tool":"read_file"}`,
	`model_call {"task_id":"T-001","iter":2,"attempt":1,"prompt_tokens":0,"eval_tokens":0,"health":"empty","tokens_used_total":131}`,
	`model_call {"task_id":"T-001","iter":2,"attempt":2,"prompt_tokens":100,"eval_tokens":20,"cost":0.5,"tokens_used_total":251}`,
	`model_call {"task_id":"T-001","iter":2,"phase":"evaluator","prompt_tokens":40,"eval_tokens":9,"tokens_used_total":300}`,
	`evaluator_verdict {"task_id":"T-001","iter":2,"verdict":"reject","rejection_category":"weak_test"}`,
	`task_failed {"task_id":"T-001","reason":"iter_cap"}`,
	`stop {"reason":"iter_cap"}`,
	`session_resume {"last_stop":"iter_cap","retried":["T-001"],"pending":["T-001"]}`,
	`context_reset {"task_id":"T-001"}`,
	`model_call {"task_id":"T-001","iter":1,"prompt_tokens":10,"eval_tokens":2,"tokens_used_total":312}`,
	`evaluator_verdict {"task_id":"T-001","iter":1,"verdict":"accept","rejection_category":null}`,
	`task_done {"task_id":"T-001","summary":"s"}`,
	`commit {"task_id":"T-001","sha":"def"}`,
	`model_call {"task_id":"T-001","phase":"self_improve","prompt_tokens":3,"eval_tokens":1,"tokens_used_total":316}`,
	`stop {"reason":"all_done"}`,
)

func TestRollup(t *testing.T) {
	s := rollUp(wholeRun)
	at := func(n int) string { return record.FormatTime(testNow.Add(time.Duration(n) * time.Second)) }
	if *s.PrepStartedAt != at(0) || *s.StartedAt != at(4) || *s.LastEventAt != at(24) || s.Events != 25 ||
		s.Resumes != 1 {
		t.Errorf("times and counts: %+v", s)
	}
	if s.Tokens != (summaryTokens{263, 53, 50, 316}) || s.Cost != 1.25 || string(s.Limits) != `{"max_tokens":100}` || s.SeedSHA != "abc" {
		t.Errorf("tokens %+v, cost %v, limits %s", s.Tokens, s.Cost, s.Limits)
	}
	if u := s.Usage; u.Interview.Calls != 1 || u.Worker.Calls != 4 || u.Worker.CachedTokens != 50 ||
		u.Worker.ReasoningTokens != 5 ||
		u.Evaluator.PromptTokens != 40 || u.SelfImprove.EvalTokens != 1 || u.Sum().Total() != 266 {
		t.Errorf("usage %+v", u)
	}
	task := s.Tasks["T-001"]
	want := &taskSummary{Status: TaskDone, Iterations: 3, Tokens: 255, Cost: 1,
		ToolCalls: map[string]int64{"bash": 1, "read_file": 1}, HookBlocks: 1,
		Evaluator: verdictCounts{1, 1, map[string]int64{"weak_test": 1}}, Attempts: 2, Iter: 1, StartedAt: at(5),
		EndedAt: at(21), Commit: "def"}
	if !reflect.DeepEqual(task, want) {
		t.Errorf("%+v\nwant\n%+v", task, want)
	}
	if s.Evaluator.Accepts != 1 || s.Evaluator.Rejects != 1 || s.HookOutcomes["pre-tool"]["block"] != 1 ||
		s.ToolHistogram["bash"] != 1 ||
		*s.Stop != (record.LastStop{Reason: "all_done", TS: at(24)}) || s.Models[record.RoleEvaluator] != "e" {
		t.Errorf("%+v", s)
	}
	data, err := jsonl.Encode(s)
	must(t, err)
	if strings.Contains(string(data), "failure_reason") {
		t.Errorf("a task done later carries a failure_reason: %s", data)
	}
}

func TestRollupOfTaskStates(t *testing.T) {
	for name, c := range map[string]struct {
		text, status, reason string
	}{
		"begun":              {script(`context_reset {"task_id":"T-001"}`), record.Working, ""},
		"failed":             {script(`context_reset {"task_id":"T-001"}`, `task_failed {"task_id":"T-001","reason":"no_case"}`), TaskFailed, "no_case"},
		"resumed":            {script(`task_failed {"task_id":"T-001","reason":"no_case"}`, `session_resume {"retried":["T-001"]}`), TaskPending, ""},
		"another is retried": {script(`task_failed {"task_id":"T-001","reason":"no_case"}`, `session_resume {"retried":["T-002"]}`), TaskFailed, "no_case"},
		"tried again":        {script(`task_failed {"task_id":"T-001","reason":"no_case"}`, `context_reset {"task_id":"T-001"}`), record.Working, ""},
		"failed again":       {script(`task_failed {"task_id":"T-001","reason":"no_case"}`, `context_reset {"task_id":"T-001"}`, `task_failed {"task_id":"T-001","reason":"iter_cap"}`), TaskFailed, "iter_cap"},
		"done in the end":    {script(`task_failed {"task_id":"T-001","reason":"no_case"}`, `task_done {"task_id":"T-001"}`), TaskDone, ""},
		"refused by a hook": {script(`task_done {"task_id":"T-001"}`,
			`validator_run {"task_id":"T-001","passed":false,"results":[{"name":"commit hook","output":"no"}]}`), record.Working, ""},
		"refused for good": {script(`task_done {"task_id":"T-001"}`, `stop {"task_id":"T-001","reason":"commit_refused"}`), record.Working, ""},
		"committed after all": {script(`task_done {"task_id":"T-001"}`, `stop {"task_id":"T-001","reason":"commit_refused"}`,
			`commit {"task_id":"T-001","sha":"c"}`), TaskDone, ""},
		"odd types": {script(`task_failed {"task_id":"T-001","reason":5}`, `session_resume {"retried":5}`, `model_call {"task_id":"T-001","iter":"x","prompt_tokens":[]}`), TaskFailed, ""},
	} {
		task := rollUp(c.text).Tasks["T-001"]
		if task == nil || task.Status != c.status || task.FailureReason != c.reason {
			t.Errorf("%s: %+v", name, task)
		}
	}
}

func TestRollupCounts(t *testing.T) {
	s := rollUp(`{"ts": "2026-06-01T10:00:00Z", "type": "session_start", "payload": {"source": "/s", "worktree": "/w", "branch": "b"}}
{"ts": "2026-06-01T10:00:01Z", "type": "model_call", "payload": {"task_id": "T-1", "iter": 1, "prompt_tokens": 100, "eval_tokens": 50}}
{"ts": "2026-06-01T10:00:02Z", "type": "evaluator_verdict", "payload": {"task_id": "T-1", "verdict": "accept"}}
{"ts": "2026-06-01T10:00:03Z", "type": "evaluator_verdict", "payload": {"task_id": "T-1", "verdict": "reject"}}
{"ts": 5, "payload": {}}
`)
	if *s.StartedAt != "2026-06-01T10:00:00Z" || s.PrepStartedAt != nil ||
		s.Tokens != (summaryTokens{100, 50, 0, 150}) ||
		s.Evaluator.Accepts != 1 || s.Evaluator.Rejects != 1 || s.Skipped != 1 || s.Events != 4 {
		t.Errorf("%+v", s)
	}
}

func TestWhatMakesAStopStale(t *testing.T) {
	for last, stale := range map[string]bool{
		`hook_run {"hook":"post-run","outcome":"ok"}`:                         false,
		`log_repaired {"cut_bytes":4}`:                                        false,
		`session_resume {"last_stop":"all_done","retried":[],"pending":[]}`:   false,
		`session_resume {"last_stop":"all_done","pending":["T-004"]}`:         true,
		`session_resume {"last_stop":"wall_clock","retried":[],"pending":[]}`: true,
		`context_reset {"task_id":"T-001"}`:                                   true,
		`session_start {"phase":"run"}`:                                       true,
		`model_call {}`:                                                       true,
	} {
		text := script(`session_start`, `stop {"reason":"all_done"}`, last)
		s := newSession(t)
		write(t, s.Path(CheckpointFile), `{"status":"running"}`)
		write(t, s.Path(RecordFile), text)
		o := s.Overview()
		if got := rollUp(text).Stop == nil; got != stale || (o.LastStop == "") != stale ||
			(o.State() == "crashed") != stale {
			t.Errorf("%s: stale %v in the roll-up; overview: last stop %q, crashed %v", last, got, o.LastStop,
				o.State())
		}
	}
}

// However the record is cut into the pieces that the summaries in between saw, the result is that of one pass.
func TestSummaryIsIncremental(t *testing.T) {
	want, err := jsonl.Encode(rollUp(wholeRun + "rubbish\n"))
	must(t, err)
	s := newSession(t)
	text := wholeRun + "rubbish\n"
	for cut := 0; cut <= len(text); cut += 97 {
		must(t, os.RemoveAll(s.Path(SummaryFile)))
		write(t, s.Path(RecordFile), text[:cut])
		must(t, s.WriteSummary())
		write(t, s.Path(RecordFile), text)
		sum, err := s.Summarize()
		must(t, err)
		got, err := jsonl.Encode(sum)
		must(t, err)
		if !sameJSON(got, want) {
			t.Fatalf("cut at %d:\n%s\nwant\n%s", cut, got, want)
		}
		must(t, s.WriteSummary())
		var file map[string]json.RawMessage
		must(t, json.Unmarshal([]byte(read(t, s.Path(SummaryFile))), &file))
		var at mark
		must(t, json.Unmarshal(file["rolled_up"], &at))
		if at.Offset != int64(len(text)) {
			t.Fatalf("cut at %d: rolled up to %d of %d", cut, at.Offset, len(text))
		}
	}
}

// A second summary reads only new events, so unreadable earlier ones have no effect.
func TestSummaryDoesNotReadAgain(t *testing.T) {
	s := newSession(t)
	filler := script(`tool_result {"x":"` + strings.Repeat("y", 20_000) + `"}`)
	text := wholeRun + filler + filler + filler
	write(t, s.Path(RecordFile), text)
	must(t, s.WriteSummary())
	f, err := os.OpenFile(s.Path(RecordFile), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte(strings.Repeat("\n", 20_000)), 10_000)
	must(t, err)
	_, err = f.WriteAt([]byte(script(`stop {"reason":"token_cap"}`)), int64(len(text)))
	must(t, err)
	sum, err := s.Summarize()
	must(t, err)
	if sum.Tokens.Total != 316 || sum.Stop.Reason != "token_cap" || sum.Skipped != 0 {
		t.Errorf("%+v", sum)
	}
}

// A State stored at any point and continued equals that of the whole record. A stored State of another version or with
// a wrong hash is discarded.
func TestStateIsIncremental(t *testing.T) {
	s := newSession(t)
	text := script(`session_rewound {"to":"seed","undo":7}`, `session_undone {"undo":7,"redo":8,"tasks":{"T-001":{"status":"pending"}}}`) +
		wholeRun
	again := len(text)
	text += script(`context_reset {"task_id":"T-002","base":"b","done":["T-001"]}`, `tool_result {"x":"context_reset"}`)
	rewound := len(text)
	text += script(fmt.Sprintf(`session_rewound {"to":"T-002","counts":%d,"undo":1,"sha":"b","tasks":{"T-002":{"status":"pending"}}}`, again),
		`context_reset {"task_id":"T-003","base":"c"}`,
		fmt.Sprintf(`session_undone {"undo":1,"redo":2,"counts":%d,"tasks":{"T-001":{"status":"done"},"T-002":{"status":"pending"}}}`, rewound),
		`context_reset {"task_id":"T-004","base":"d"}`)
	write(t, s.Path(RecordFile), text)
	want, err := s.State()
	must(t, err)
	if first := want.Tasks["T-002"].First; first == nil || first.Counts != int64(again) ||
		want.Tasks["T-003"].Last != 0 || want.Tasks["T-004"].First.Base != "d" {
		t.Fatalf("%+v", want)
	}
	for cut := 0; cut <= len(text); cut += 97 {
		must(t, os.RemoveAll(s.Path(SummaryFile)))
		write(t, s.Path(RecordFile), text[:cut])
		must(t, s.WriteSummary())
		switch cut % 3 {
		case 0:
			write(t, s.Path(SummaryFile), strings.Replace(read(t, s.Path(SummaryFile)), `"fold"`, `"older"`, 1))
		case 1:
			write(t, s.Path(SummaryFile), strings.ReplaceAll(read(t, s.Path(SummaryFile)), `"pending"`, `"done"`))
		}
		write(t, s.Path(RecordFile), text)
		got, err := s.State()
		must(t, err)
		if is, was := record.JSON(got), record.JSON(want); string(is) != string(was) {
			t.Fatalf("cut at %d:\n%s\nwant\n%s", cut, is, was)
		}
	}
}

func TestSummaryOfARewoundRecord(t *testing.T) {
	s := newSession(t)
	seed := strings.Join(strings.SplitAfterN(wholeRun, "\n", 5)[:4], "")
	later := strings.ReplaceAll(wholeRun[len(seed):], "2026-06-01", "2026-06-02") + script("stop", "stop")
	for name, after := range map[string]string{
		"cut": seed, "cut and grown beyond": seed + later, "replaced": strings.ReplaceAll(wholeRun, "T-001", "T-002"),
		"gone": "", "grown": wholeRun + later,
	} {
		write(t, s.Path(RecordFile), wholeRun)
		must(t, os.RemoveAll(s.Path(SummaryFile)))
		must(t, s.WriteSummary())
		before, err := s.Summarize() // the process keeps it in memory
		must(t, err)
		write(t, s.Path(RecordFile), after)
		if name == "gone" {
			must(t, os.Remove(s.Path(RecordFile)))
		}
		sum, err := s.Summarize()
		must(t, err)
		got, err := jsonl.Encode(sum)
		must(t, err)
		want, err := jsonl.Encode(rollUp(after))
		must(t, err)
		if !sameJSON(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		got, err = jsonl.Encode(before)
		must(t, err)
		if want, err = jsonl.Encode(rollUp(wholeRun)); err != nil || !sameJSON(got, want) {
			t.Errorf("%s: what was handed out is now\n%s", name, got)
		}
	}
}

func TestSummaryFileOfOthers(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(RecordFile), wholeRun)
	for _, text := range []string{`{"version":1,"judge":{"accepts":7},"tasks":{"T-9":{}}}`, `{"version":1,"rolled_up":5}`, `{"rolled_up":{"offset":-3}}`, "", "5", "{"} {
		write(t, s.Path(SummaryFile), text)
		must(t, s.WriteSummary())
		var got struct {
			SessionID string `json:"session_id"`
			Tasks     map[string]any
			Judge     map[string]any
			Usage     map[string]any
		}
		must(t, json.Unmarshal([]byte(read(t, s.Path(SummaryFile))), &got))
		if len(got.Tasks) != 1 || got.SessionID != testID || len(got.Usage) != 4 ||
			strings.Contains(text, "judge") != (got.Judge != nil) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestSummaryShape(t *testing.T) {
	s := newSession(t)
	must(t, s.WriteSummary())
	var got map[string]any
	must(t, json.Unmarshal([]byte(read(t, s.Path(SummaryFile))), &got))
	for _, key := range []string{"version", "session_id", "started_at", "prep_started_at", "last_event_at", "tokens",
		"tasks", "tool_histogram", "hook_outcomes", "evaluator"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if got["started_at"] != nil || got["stop"] != nil || !reflect.DeepEqual(got["tasks"], map[string]any{}) {
		t.Errorf("%v", got)
	}
	write(t, s.Path(RecordFile), wholeRun)
	must(t, s.WriteSummary())
	must(t, json.Unmarshal([]byte(read(t, s.Path(SummaryFile))), &got))
	task := got["tasks"].(map[string]any)["T-001"].(map[string]any)
	for _, key := range []string{"status", "iterations", "tokens", "tool_calls", "hook_blocks", "evaluator"} {
		if _, ok := task[key]; !ok {
			t.Errorf("tasks.T-001.%s is missing", key)
		}
	}
	if !reflect.DeepEqual(task["evaluator"],
		map[string]any{"accepts": 1.0, "rejects": 1.0, "rejection_categories": map[string]any{"weak_test": 1.0}}) {
		t.Errorf("%v", task["evaluator"])
	}
	if !reflect.DeepEqual(got["stop"],
		map[string]any{"reason": "all_done", "ts": record.FormatTime(testNow.Add(24 * time.Second))}) {
		t.Errorf("%v", got["stop"])
	}
}

// Numbers in a foreign record can be summed and written as JSON.
func TestNumbersOfTheRecordAreBounded(t *testing.T) {
	call := `model_call {"task_id":"T-001","prompt_tokens":9e18,"cost":1e308}`
	s := rollUp(script(call, call))
	if _, err := json.Marshal(s); err != nil || s.Cost != 0 || s.Tokens.Prompt != 0 {
		t.Errorf("%g dollars, %d tokens: %v", s.Cost, s.Tokens.Prompt, err)
	}
	var sum RoleUsage
	for range 2 {
		sum.Add(RoleUsage{Cost: 1e308})
	}
	if math.IsInf(sum.Cost, 0) {
		t.Error("a sum of costs is infinite")
	}
}
