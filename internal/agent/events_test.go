package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
)

// feed lets a row read a stream of events, and of lines of standard error, as a run would.
func feed(p *Program, t *Turn, stdout, stderr string) (*stream, *ending) {
	var stopped *ending
	s := newStream(p, t)
	s.stop = func(how How, why string) {
		if stopped == nil {
			stopped = &ending{how: how, why: why}
		}
	}
	for line := range strings.Lines(stderr) {
		if p.watch != nil {
			p.watch(s, []byte(strings.TrimSuffix(line, "\n")))
		}
	}
	for line := range strings.Lines(stdout) {
		p.read(s, []byte(strings.TrimSuffix(line, "\n")))
	}
	return s, stopped
}

const (
	claudeInit   = `{"type":"system","subtype":"init","cwd":"/w","session_id":"c608d775-a1e6-44af-ad14-56c828dd876b","tools":["Bash","Read"],"model":"m","permissionMode":"acceptEdits"}` + "\n"
	claudeTool   = `{"type":"assistant","message":{"content":[{"id":"toolu_1","input":{"command":"ls"},"name":"Bash","type":"tool_use"}],"id":"msg_1","role":"assistant","usage":{"cache_creation_input_tokens":5,"cache_read_input_tokens":10,"input_tokens":100,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"c608d775-a1e6-44af-ad14-56c828dd876b"}` + "\n"
	claudeAnswer = `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":[{"type":"text","text":"a.txt"}],"is_error":false}]},"session_id":"c608d775-a1e6-44af-ad14-56c828dd876b"}` + "\n"
	claudeUsed   = `"usage":{"input_tokens":200,"cache_creation_input_tokens":5,"cache_read_input_tokens":20,"output_tokens":40}`
)

// The output of one run of each program, and its meaning.
func TestEvents(t *testing.T) {
	reset := time.Unix(1795282561, 0).UTC()
	for _, c := range []struct {
		name, program  string
		stdout, stderr string
		res            proc.Outcome
		resume         bool
		maxTurns       int
		want           Outcome
	}{
		{name: "success, with the cost of this run", program: "claude",
			stdout: claudeInit + claudeTool + claudeTool + claudeAnswer +
				`{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"done","session_id":"c608d775-a1e6-44af-ad14-56c828dd876b","total_cost_usd":0.9,` + claudeUsed +
				`,"permission_denials":[{"tool_name":"WebFetch","tool_use_id":"x","tool_input":{}}],"model_usage_since_last_result":{"m":{"inputTokens":200,"outputTokens":40,"cacheReadInputTokens":20,"cacheCreationInputTokens":5,"costUSD":0.25},"small":{"inputTokens":7,"outputTokens":1,"costUSD":0.5}}}`,
			want: Outcome{How: Completed, Text: "done", Turns: 1, Denied: []string{"WebFetch"},
				Usage: Usage{Prompt: 232, Eval: 41, Cached: 20, Cost: 0.75, CostKnown: true}}},
		{name: "success of an older version", program: "claude",
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.5,` + claudeUsed + `}`,
			want: Outcome{How: Completed, Text: "done",
				Usage: Usage{Prompt: 225, Eval: 40, Cached: 20, Cost: 0.5, CostKnown: true}}},
		{name: "turn limit", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + claudeTool + claudeAnswer + `{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":3,` + claudeUsed + `,"errors":["Reached maximum number of turns (2)"]}`,
			want:   Outcome{How: TurnLimit, Turns: 1, Usage: Usage{Prompt: 225, Eval: 40, Cached: 20}}},
		{name: "auth error called success", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key","api_error_status":401}`,
			want:   Outcome{How: Refused}},
		{name: "invalid request", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400 tools.3: invalid schema","api_error_status":400}`,
			want:   Outcome{How: Refused}},
		{name: "invalid request of an older version", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400 tools.3: invalid schema"}`,
			want:   Outcome{How: Refused}},
		{name: "server error", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 Overloaded","api_error_status":529}`,
			want:   Outcome{How: Failed}},
		{name: "full conversation", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 413 Request too large","api_error_status":413}`,
			want:   Outcome{How: Overflow}},
		{name: "usage limit, its end in words", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"5-hour limit reached ∙ resets Jan 3, 2199 5:00pm (UTC)"}`,
			want:   Outcome{How: UsageLimit, LimitReset: time.Date(2199, 1, 3, 17, 1, 0, 0, time.UTC)}},
		{name: "invalid request", program: "codex", res: proc.Outcome{ExitCode: 1},
			stdout: `{"type":"turn.failed","error":{"message":"unexpected status 400 Bad Request: {\"detail\":\"not supported\"}"}}`,
			want:   Outcome{How: Refused}},
		{name: "full conversation", program: "codex", res: proc.Outcome{ExitCode: 1},
			stdout: `{"type":"turn.failed","error":{"message":"unexpected status 400 Bad Request: Your input exceeds the context window of this model."}}`,
			want:   Outcome{How: Overflow}},
		{name: "refused key", program: "claude", res: proc.Outcome{Canceled: true, ExitCode: 143},
			stdout: claudeInit + `{"type":"system","subtype":"api_retry","attempt":1,"error_status":401,"error":"authentication_failed"}`,
			want:   Outcome{How: Refused}},
		{name: "usage limit", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795282561,"rateLimitType":"five_hour"}}` + "\n" +
				`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"api_error":"usage_limit_reached","result":"You've hit your 5-hour limit"}`,
			want: Outcome{How: UsageLimit, LimitReset: reset}},
		{name: "usage limit in words", program: "claude", res: proc.Outcome{ExitCode: 1},
			stdout: claudeInit + `{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1795282561"}`,
			want:   Outcome{How: UsageLimit, LimitReset: reset}},
		{name: "usage limit on standard error", program: "claude",
			res:  proc.Outcome{ExitCode: 1, Stderr: []byte("Claude usage limit reached|1795282561\n")},
			want: Outcome{How: UsageLimit, LimitReset: reset}},
		{name: "a limit that was near", program: "claude",
			stdout: claudeInit + `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1795282561}}` + "\n" +
				`{"type":"result","subtype":"success","is_error":false,"result":"done"}`,
			want: Outcome{How: Completed, Text: "done"}},
		{name: "not found", program: "claude", resume: true,
			res:    proc.Outcome{ExitCode: 1, Stderr: []byte("No conversation found with session ID: x")},
			stdout: `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"c608d775-a1e6-44af-ad14-56c828dd876b"}`,
			want:   Outcome{How: NotFound}},
		{name: "the model says that nothing was found", program: "claude", resume: true,
			stdout: claudeInit + `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"No conversation found with session ID: x"}]}}`,
			want:   Outcome{How: Failed, Text: "No conversation found with session ID: x", Turns: 1}},
		{name: "interrupted from elsewhere", program: "claude",
			stdout: claudeInit + `{"type":"result","subtype":"error_during_execution","is_error":true}`,
			want:   Outcome{How: Failed}},
		{name: "a subagent's messages", program: "claude",
			stdout: claudeInit + `{"type":"assistant","parent_tool_use_id":"toolu_9","message":{"id":"sub","content":[{"type":"text","text":"a subagent's words"}]}}` + "\n" +
				`{"type":"result","subtype":"success","is_error":false,"result":"done"}`,
			want: Outcome{How: Completed, Text: "done"}},

		{name: "success", program: "codex",
			stdout: `{"type":"thread.started","thread_id":"c608d775-a1e6-44af-ad14-56c828dd876b"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata not found. Defaulting to fallback metadata"}}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"reasoning","text":"hm"}}
{"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"item_4","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":600,"cached_input_tokens":60,"output_tokens":120,"reasoning_output_tokens":30}}`,
			want: Outcome{How: Completed, Text: "done", Turns: 3,
				Usage: Usage{Prompt: 500, Eval: 100, Cached: 60, Reasoning: 30}}},
		{name: "turns are counted", program: "codex", maxTurns: 1, res: proc.Outcome{Canceled: true, ExitCode: 143},
			stdout: `{"type":"thread.started","thread_id":"c608d775-a1e6-44af-ad14-56c828dd876b"}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"a","status":"in_progress"}}
{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"b","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"b","exit_code":1,"status":"failed"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"a","exit_code":0,"status":"completed"}}`,
			want: Outcome{How: TurnLimit, Turns: 1}},
		{name: "usage limit", program: "codex", res: proc.Outcome{ExitCode: 1},
			stdout: `{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. Upgrade to Pro or try again at Jan 3rd, 2027 5:04 PM."}}`,
			want:   Outcome{How: UsageLimit, LimitReset: time.Date(2027, 1, 3, 17, 5, 0, 0, time.Local).UTC()}},
		{name: "usage limit without a time", program: "codex", res: proc.Outcome{ExitCode: 1},
			stdout: `{"type":"error","message":"You've hit your usage limit."}`, want: Outcome{How: UsageLimit}},
		{name: "a file that speaks of a limit", program: "codex", res: proc.Outcome{ExitCode: 1},
			stdout: `{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"cat f","aggregated_output":"You've hit your usage limit.","exit_code":0,"status":"completed"}}
{"type":"turn.failed","error":{"message":"stream disconnected"}}`,
			want: Outcome{How: Failed, Turns: 1}},
	} {
		t.Run(c.program+"/"+c.name, func(t *testing.T) {
			p, _ := byName(c.program)
			turn := &Turn{MaxTurns: c.maxTurns, Conversation: Ref{ID: "x", Resume: c.resume}}
			if p.Name == "codex" {
				turn.PriorTotal = Usage{Prompt: 100, Eval: 20}
			}
			s, stopped := feed(p, turn, c.stdout, c.stderr)
			got := s.outcome(c.res, stopped)
			if got.How != Completed && got.Detail == "" {
				t.Error("it does not say why")
			}
			got.Conversation, got.Detail, got.Total = "", "", Usage{}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Reading any output of a program does not fail, and the kept text stays small.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{claudeInit, claudeTool, claudeAnswer, `{"type":"item.started","item":{"type":"command_execution"}}`,
		`{"type":"turn.completed","usage":{"input_tokens":-1}}`, `{"type":"tool_result","error":{"type":"policy"}}`, `{"type":"step_finish","part":{"reason":"stop","tokens":{}}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1e300}}`, `5`, `null`, `{`, "\x00", `{"type":5}`,
		"Attempt 1 failed: x Retrying after 999999999999999ms", `{"type":"error","message":"You've hit your usage limit. try again at 99:99 PM"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range append(natives(), textProgram(t)) {
			for _, resume := range []bool{false, true} {
				turn := &Turn{MaxTurns: 2, Conversation: Ref{ID: "x", Resume: resume},
					Emit: func(record.Event) error { return nil }}
				s, stopped := feed(p, turn, text, text)
				out := s.outcome(proc.Outcome{Stderr: []byte(text)}, stopped)
				if out.How == "" || len(out.Detail) > 400 || strings.ContainsAny(out.Detail, "\n\r") {
					t.Fatalf("%s: %+v", p.Name, out)
				}
			}
		}
	})
}

func textProgram(t testing.TB) *Program {
	p, err := custom("mine", map[string]string{"start": "true", "resume": "true", "done": "^DONE"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The look-up of a conversation does not fail for any contents of the program's store.
func FuzzStores(f *testing.F) {
	id := "c608d775-a1e6-44af-ad14-56c828dd876b"
	for _, seed := range []string{"", "{}\n", `{"type":"user","cwd":"/w","timestamp":"2026-11-21T14:20:53Z"}`, `{"type":"session_meta","payload":{"id":"` + id + `","cwd":"/w"}}`,
		`{"sessionId":"` + id + `"}`, "\xff\xfe{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		home := t.TempDir()
		dir := proc.RealPath(t.TempDir())
		env := []string{"HOME=" + home}
		for _, path := range []string{".claude/projects/x/" + id + ".jsonl",
			".codex/sessions/2026/11/21/rollout-2026-11-21T14-20-55-" + id + ".jsonl"} {
			full := filepath.Join(home, path)
			if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(full, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range natives() {
			if _, why := p.Stored(env, dir, id); why == "" {
				t.Errorf("%s: it does not say why", p.Name)
			}
			if got, err := p.discover(env, dir, time.Time{}); got != "" &&
				(err != nil || !p.validID().MatchString(got)) {
				t.Errorf("%s: %q %v", p.Name, got, err)
			}
		}
	})
}

// Numbers and ids from a program are foreign.
func TestNumbersAndIDsThatAreNone(t *testing.T) {
	row, _ := byName("claude")
	cost := func(n string) string {
		return `{"type":"result","model_usage_since_last_result":{"m":{"costUSD":` + n + `}}}` + "\n"
	}
	s, _ := feed(row, &Turn{}, cost("0.5")+cost("-7")+cost("1e999")+cost("1e308"), "")
	if got := s.usage; got.Cost != 0.5 || got.CostKnown {
		t.Errorf("the cost is %+v", got)
	}
	own, err := describe("own", map[string]string{"start": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{strings.Repeat("x", 200_000), "a\x1b]0;b", "a\x00b"} {
		if s, _ := feed(own, &Turn{}, "TILTH_CONVERSATION="+id+"\n", ""); s.conversation != "" {
			t.Errorf("an id of %d bytes is taken: %.20q", len(id), s.conversation)
		}
	}
}
