package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/testsize"
)

type m = map[string]any

// faults fails the test for each of our messages with a fault.
func (f *fake) faults() {
	f.t.Helper()
	if said, err := os.ReadFile(f.log + ".acp-faults"); err == nil {
		f.t.Errorf("the agent finds fault with the client:\n%s", said)
	}
}

// byACPName is a row as settings make it.
func byACPName(t *testing.T, name string, set map[string]string) *Program {
	t.Helper()
	all := map[string]string{}
	for k, v := range set {
		all[k] = v
	}
	if name == "claude" || name == "codex" {
		all["acp"] = "true"
	}
	p, err := Named(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestACPTask(t *testing.T) {
	f := newFakeACP(t, m{"modes": []string{"auto", "default", "plan"}},
		fakeStep{"turns": 2, "write": m{"a.txt": "x"}, "text": `{"summary": "did it"}`,
			"acp": m{"cost": 0.5, "noise": 5}},
		fakeStep{"resumed": true, "turns": 1, "text": "more", "acp": m{"cost": 0.75, "noise": 5}})
	p := byACPName(t, "qwen", nil)
	var ids []string
	var events []record.Event
	turn := f.turn("/do it", Ref{})
	turn.System = "Be good."
	turn.OnConversation = func(id string) error {
		if len(f.runs()) > 0 && len(ids) == 0 {
			t.Error("the prompt was sent before the conversation's id was handed on")
		}
		ids = append(ids, id)
		return nil
	}
	turn.Emit = func(e record.Event) error { events = append(events, e); return nil }
	out := f.run(p, turn)
	f.faults()
	if out.How != Completed || out.Text != `{"summary": "did it"}` || out.Turns < 3 || out.Usage.Counted() != 120 ||
		out.Usage.Cost != 0.5 || out.ResumeBy != ResumeByLoad || len(ids) != 1 || ids[0] != out.Conversation {
		t.Fatalf("%+v, ids %v", out, ids)
	}
	var calls []string
	for _, e := range events {
		if c, ok := e.(*record.ToolCall); ok {
			calls = append(calls, c.Tool+" "+string(c.Args))
		}
	}
	want := `execute {"input":{"command":"true 0"},"title":"run 0"}|` +
		`execute {"input":{"command":"true 1"},"title":"run 1"}`
	if got := strings.Join(calls, "|"); got != want || len(events) != 4 {
		t.Errorf("%d events, calls %s", len(events), got)
	}
	run := f.runs()[0]
	if run.Prompt != "Be good.\n\n/do it" || !strings.Contains(fmt.Sprint(run.Args), "mode=default") {
		t.Errorf("%q %v", run.Prompt, run.Args)
	}
	next := f.turn("go on", Ref{ID: out.Conversation, Resume: true})
	next.PriorTotal = out.Total
	events = nil
	next.Emit = turn.Emit
	out = f.run(p, next)
	f.faults()
	if out.How != Completed || out.Text != "more" || out.Usage.Cost != 0.25 || out.Total.Cost != 0.75 ||
		len(events) != 2 {
		t.Fatalf("%+v, %d events", out, len(events))
	}
}

func TestACPConversations(t *testing.T) {
	for name, c := range map[string]struct {
		setup m
		how   How
		by    string
	}{
		"load":     {m{}, Completed, ResumeByLoad},
		"late":     {m{"replay": "late"}, Completed, ResumeByLoad},
		"resume":   {m{"resume": "resume"}, Completed, ResumeByResume},
		"neither":  {m{"resume": "none"}, NotFound, ResumeByNone},
		"disguise": {m{"replay": "none"}, NotFound, ResumeByLoad},
		"error":    {m{"loads": m{"code": -32099, "message": "Internal error"}}, NotFound, ResumeByLoad},
		"login":    {m{"loads": m{"code": -32000, "message": "Authentication required"}}, Refused, ResumeByLoad},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeACP(t, c.setup, fakeStep{"repeat": -1, "turns": 1, "text": "new", "acp": m{"chunks": []m{}}})
			p := byACPName(t, "copilot", nil)
			first := f.run(p, f.turn("begin", Ref{}))
			ref := Ref{ID: first.Conversation, Resume: true}
			if c.how == Completed {
				f.run(p, f.turn("more", ref)) // two answers for the replay
			}
			out := f.run(p, f.turn("go on", ref))
			f.faults()
			if first.How != Completed || out.How != c.how || out.ResumeBy != c.by {
				t.Errorf("%+v then %+v", first, out)
			}
			if c.how == Completed && (out.Text != "new" || out.Conversation != first.Conversation || out.Turns != 2) {
				t.Errorf("a replay is a part of the turn: %+v", out)
			}
		})
	}
}

func TestACPPermissions(t *testing.T) {
	for name, c := range map[string]struct {
		ask      m
		readOnly bool
		refused  bool
		how      How
	}{
		"command":         {ask: m{"kind": "execute"}, how: Completed},
		"edit":            {ask: m{"kind": "edit", "path": "new/a.txt"}, how: Completed},
		"bare edit":       {ask: m{"kind": "edit", "path": "a.txt", "bare": true}, how: Completed},
		"temporary":       {ask: m{"kind": "edit", "path": "$TMPDIR/x"}, how: Completed},
		"outside":         {ask: m{"kind": "edit", "path": "/etc/x"}, refused: true, how: Completed},
		"beside":          {ask: m{"kind": "delete", "path": "../x"}, refused: true, how: Completed},
		"bare outside":    {ask: m{"kind": "move", "path": "/etc/x", "bare": true}, refused: true, how: Completed},
		"by a link":       {ask: m{"kind": "edit", "path": "link/x"}, refused: true, how: Completed},
		"only always":     {ask: m{"kind": "execute", "options": []string{"allow_always"}}, how: Completed},
		"no way":          {ask: m{"options": []string{"reject_always"}}, refused: true, how: Completed},
		"nothing":         {ask: m{"kind": "execute", "options": []string{}}, refused: true, how: Completed},
		"ends the turn":   {ask: m{"kind": "edit", "path": "/x", "then": "cancelled"}, refused: true, how: Unfinished},
		"ends in silence": {ask: m{"kind": "edit", "path": "/x", "then": "end_turn"}, refused: true, how: Unfinished},
		"shown change":    {ask: m{"path": "a.txt", "diff": true}, how: Completed},
		"change outside":  {ask: m{"path": "/etc/x", "diff": true}, refused: true, how: Completed},
		"bare change":     {ask: m{"path": "/etc/x", "diff": true, "bare": true}, refused: true, how: Completed},
		"reading":         {ask: m{"kind": "read", "path": "/etc/x"}, readOnly: true, how: Completed},
		"running":         {ask: m{"kind": "execute"}, readOnly: true, refused: true, how: Completed},
		"unnamed":         {ask: m{}, readOnly: true, refused: true, how: Completed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeACP(t, m{}, fakeStep{"acp": m{"asks": []m{c.ask}}})
			f.env = append(f.env, "TMPDIR="+filepath.Join(f.home, "temp"))
			if err := os.Symlink("/etc", filepath.Join(f.dir, "link")); err != nil {
				t.Fatal(err)
			}
			turn := f.turn("do", Ref{})
			turn.ReadOnly = c.readOnly
			blocks := 0
			turn.Emit = func(e record.Event) error {
				if _, ok := e.(*record.PreToolBlock); ok {
					blocks++
				}
				return nil
			}
			out := f.run(byACPName(t, "copilot", nil), turn)
			f.faults()
			if out.How != c.how || (blocks > 0) != c.refused || (len(out.Denied) > 0) != c.refused {
				t.Errorf("%+v, %d blocks", out, blocks)
			}
		})
	}
}

func TestACPEnds(t *testing.T) {
	null := m{"usage": nil}
	for name, c := range map[string]struct {
		agent string
		step  fakeStep
		how   How
		said  string
	}{
		"max_turn_requests": {"qwen", fakeStep{"acp": m{"stop": "max_turn_requests"}}, TurnLimit, ""},
		"max_tokens":        {"qwen", fakeStep{"acp": m{"stop": "max_tokens"}}, Unfinished, "token limit"},
		"refusal":           {"qwen", fakeStep{"acp": m{"stop": "refusal"}}, Unfinished, "refuses"},
		"cancelled":         {"qwen", fakeStep{"acp": m{"stop": "cancelled"}}, Failed, "nothing cancelled it"},
		"a new word":        {"qwen", fakeStep{"acp": m{"stop": "tired"}}, Failed, "tired"},
		"no word":           {"qwen", fakeStep{"acp": m{"stop": "-"}}, Failed, "none"},
		"crash":             {"qwen", fakeStep{"stderr": "a boom\n", "acp": m{"crash": true}}, Failed, "a boom"},
		"a lie about 401": {"copilot", fakeStep{"text": "Error: Authentication failed", "acp": m{"usage": "left out"}},
			Refused, "Authentication failed"},
		"a lie about 429": {"codex", fakeStep{"text": "retry limit, last status: 429 Too Many Requests", "acp": null},
			UsageLimit, "429"},
		"a lie about 500":     {"codex", fakeStep{"text": "unexpected status 500", "acp": null}, Failed, "500"},
		"no lie, with tokens": {"codex", fakeStep{"text": "status 429 is handled"}, Completed, ""},
		"no lie, with a tool": {"codex", fakeStep{"turns": 1, "text": "429", "acp": null}, Completed, ""},
		"no lie, untold":      {"codex", fakeStep{"text": "429", "acp": m{"usage": "left out"}}, Completed, ""},
		"no lie, in _meta": {"gemini", fakeStep{"text": "429", "acp": m{"usage": "left out",
			"meta": m{"quota": m{"token_count": m{"input_tokens": 7, "output_tokens": 2}}}}}, Completed, ""},
		"error 401": {"gemini", fakeStep{"acp": m{"error": m{"code": 401,
			"message": `{"error":{"message":"API key not valid","code":401}}`}}}, Refused, "API key not valid"},
		"error -32000": {"claude", fakeStep{"acp": m{"error": m{"code": -32000, "message": "Authentication required"}}},
			Refused, "Authentication required"},
		"error 429": {"claude", fakeStep{"acp": m{"error": m{"code": -32603, "message": "Internal error",
			"data": m{"details": "API Error: 429", "errorKind": "rate_limit"}}}}, UsageLimit, "API Error: 429"},
		"error of a limit": {"claude", fakeStep{"acp": m{"error": m{"code": -32603,
			"message": "You've hit your weekly limit"}}}, UsageLimit, "weekly"},
		"error 500": {"opencode", fakeStep{"acp": m{"error": m{"code": -32603, "message": "Internal error",
			"data": m{"message": "Overloaded"}}}}, Failed, "Overloaded"},
		"error in words": {"opencode", fakeStep{"acp": m{"error": m{"code": -32603, "message": "Internal error",
			"data": m{"message": "invalid key"}}}}, Refused, "invalid key"},
		"a bare error": {"opencode", fakeStep{"acp": m{"error": m{"code": -32603, "message": "Internal error"}}},
			Failed, "-32603"},
		"a long line": {"qwen", fakeStep{"acp": m{"long": 65}}, Failed, "longer than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeACP(t, m{"modes": []string{"default", "agent", "x#plan"}}, c.step)
			out := f.run(byACPName(t, c.agent, nil), f.turn("do", Ref{}))
			f.faults()
			if out.How != c.how || !strings.Contains(out.Detail, c.said) || name == "crash" && !out.Uncounted {
				t.Errorf("%+v", out)
			}
		})
	}
}

// A notice of the agent's own is neither the case nor a message.
func TestACPMessages(t *testing.T) {
	for name, c := range map[string]struct {
		chunks, after []m
		want          string
	}{
		"named": {[]m{{"id": "1", "text": "first"}, {"id": "2", "text": "the "}, {"text": "Warning: model"},
			{"id": "2", "text": "case"}}, nil, "the case"},
		"plain":           {[]m{{"text": "a"}, {"text": "b"}}, nil, "ab"},
		"notice":          {[]m{{"text": "the case"}, {"text": "Info: Request failed. Retrying"}}, nil, "the case"},
		"too late":        {[]m{{"text": "the case"}}, []m{{"text": "no case"}}, "the case"},
		"named, too late": {[]m{{"id": "1", "text": "the case"}}, []m{{"id": "2", "text": "no case"}}, "the case"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeACP(t, nil, fakeStep{"turns": 1, "text": "-", "acp": m{"chunks": c.chunks, "after": c.after}})
			out := f.run(byACPName(t, "copilot", nil), f.turn("do", Ref{}))
			f.faults()
			if out.Text != c.want || out.How != Completed {
				t.Errorf("%+v", out)
			}
		})
	}
}

func TestACPSettings(t *testing.T) {
	setup := m{"modes": []string{"auto", "default", "plan"}, "models": []string{"small", "big"}}
	for name, c := range map[string]struct {
		set      map[string]string
		model    string
		auth     string
		readOnly bool
		how      How
		said     string
		args     string
	}{
		"row's":       {nil, "", "", false, Completed, "", "mode=default"},
		"user's":      {map[string]string{"mode": "auto"}, "", "", false, Completed, "", "mode=auto"},
		"judging":     {map[string]string{"mode": "auto"}, "", "", true, Completed, "", "mode=plan"},
		"own judging": {map[string]string{"readOnlyMode": "auto"}, "", "", true, Completed, "", "mode=auto"},
		"model":       {nil, "big", "", false, Completed, "", "mode=default"},
		"no mode": {map[string]string{"mode": "yolo"}, "", "", false, Refused,
			`has no mode "yolo", only auto, default, plan`, ""},
		"no model":      {nil, "huge", "", false, Refused, `no model "huge", only small, big`, ""},
		"no login":      {nil, "", "needs:key", false, Refused, "Authentication required", ""},
		"login":         {map[string]string{"auth": "key"}, "", "needs:key", false, Completed, "", "mode=default"},
		"another login": {map[string]string{"auth": "token"}, "", "needs:key", false, Refused, `no "token", only key`, ""},
		"terminal":      {map[string]string{"auth": "key"}, "", "terminal:key", false, Refused, "needs a terminal", ""},
	} {
		for _, options := range []bool{false, true} {
			t.Run(fmt.Sprint(name, options), func(t *testing.T) {
				all := m{"options": options, "auth": c.auth}
				for k, v := range setup {
					all[k] = v
				}
				f := newFakeACP(t, all)
				turn := f.turn("do", Ref{})
				turn.Model, turn.ReadOnly = c.model, c.readOnly
				out := f.run(byACPName(t, "qwen", c.set), turn)
				f.faults()
				runs := f.runs()
				if out.How != c.how || !strings.Contains(out.Detail, c.said) || (c.args == "") != (len(runs) == 0) {
					t.Fatalf("%+v, %d prompts", out, len(runs))
				}
				if c.args != "" && !strings.HasSuffix(fmt.Sprint(runs[0].Args), c.args+"]") {
					t.Errorf("%v", runs[0].Args)
				}
			})
		}
	}
	for version, how := range map[string]How{"2": Refused, `"1"`: Refused, "null": Refused} {
		f := newFakeACP(t, m{"version": jsonRaw(version)})
		if out := f.run(byACPName(t, "qwen", nil), f.turn("do", Ref{})); out.How != how {
			t.Errorf("version %s: %+v", version, out)
		}
	}
}

type jsonRaw string

func (r jsonRaw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// A cancelled turn gets one cancel message, and ends in time without a reaction.
func TestACPCancel(t *testing.T) {
	unseen, files := m{"kind": "execute", "unseen": true}, m{"files": "terminal/create"}
	for name, c := range map[string]struct {
		step fakeStep
		turn func(*Turn)
		how  How
		most time.Duration
	}{
		"interrupt": {fakeStep{"hang": true}, nil, Interrupted, 3 * time.Second},
		"deaf":      {fakeStep{"hang": true, "deaf": true}, nil, Interrupted, 10 * time.Second},
		"time":      {fakeStep{"hang": true}, func(t *Turn) { t.Timeout = time.Second }, TimedOut, 4e9},
		"turns":     {fakeStep{"turns": 3, "hang": true}, func(t *Turn) { t.MaxTurns = 2 }, TurnLimit, 3e9},
		"unseen tools": {fakeStep{"hang": true, "acp": m{"asks": []m{unseen, unseen, unseen}}},
			func(t *Turn) { t.MaxTurns = 2 }, TurnLimit, 3e9},
		"our files": {fakeStep{"hang": true, "acp": m{"asks": []m{files, files}}},
			func(t *Turn) { t.MaxTurns = 2 }, TurnLimit, 3e9},
		"unseen, then seen": {fakeStep{"hang": true, "turns": 2, "acp": m{"asks": []m{unseen}}},
			func(t *Turn) { t.MaxTurns = 3 }, TurnLimit, 3e9},
		"silence":        {fakeStep{"acp": m{"quiet": true}}, func(t *Turn) { t.Patience = 1e9 }, UsageLimit, 5e9},
		"leaves a child": {fakeStep{"hang": true, "stray": true}, nil, Interrupted, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeACP(t, nil, c.step)
			turn := f.turn("do", Ref{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.turn != nil {
				c.turn(&turn)
			} else {
				turn.Emit = func(e record.Event) error {
					if _, ok := e.(*record.ToolCall); ok {
						cancel()
					}
					return nil
				}
			}
			begun := time.Now()
			out, err := byACPName(t, "copilot", nil).Run(ctx, turn)
			f.faults()
			if err != nil || out.How != c.how || time.Since(begun) > c.most {
				t.Errorf("%+v, %v after %s", out, err, time.Since(begun))
			}
		})
	}
}

// An answer ends the turn at once, unless a subagent is running.
func TestACPHelpers(t *testing.T) {
	f := newFakeACP(t, nil, fakeStep{"acp": m{"under": 0.3}})
	turn := f.turn("do", Ref{})
	turn.Linger = 200 * time.Millisecond
	out := f.run(byACPName(t, "copilot", nil), turn)
	if out.How != Completed || out.Text != "what the helper found" {
		t.Errorf("%+v", out)
	}
}

func TestACPInitialize(t *testing.T) {
	f := newFakeACP(t, m{"auth": "needs:key"})
	info, err := byACPName(t, "gemini", nil).Initialize(t.Context(), f.env, nil)
	if err != nil || info.Name != "Fake gemini" || info.Version != "0.0.0" || info.Resume != ResumeByLoad ||
		fmt.Sprint(info.Auth) != "[key]" || len(f.runs()) > 0 {
		t.Errorf("%+v, %v", info, err)
	}
	f.faults()
}

// TestACPTurns plays turns with noise, permissions, crashes, lost conversations and false reports. The agent checks
// each of our messages against the protocol's schema.
func TestACPTurns(t *testing.T) {
	n := testsize.Of(60, 500)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var steps []fakeStep
	var want []How
	for range n {
		step, acp := fakeStep{"turns": r.IntN(4)}, m{"noise": r.IntN(8)}
		var asks []m
		for range r.IntN(3) {
			path := []string{"a", "/etc/a", "../b", "c/d/e"}[r.IntN(4)]
			kind := []string{"edit", "execute", "delete", "read", ""}[r.IntN(5)]
			asks = append(asks, m{"kind": kind, "path": path, "bare": r.IntN(2) == 0})
		}
		acp["asks"] = asks
		how := Completed
		switch r.IntN(8) {
		case 0:
			acp["crash"], how = true, Failed
		case 1:
			acp["error"], how = m{"code": -32603, "message": "Internal error"}, Failed
		case 2:
			step = fakeStep{"text": "429 Too Many Requests"}
			acp, how = m{"usage": nil, "noise": r.IntN(8)}, UsageLimit
		case 3:
			acp["stop"], how = "refusal", Unfinished
		case 4:
			acp["stop"], how = "max_turn_requests", TurnLimit
		}
		step["acp"] = acp
		steps, want = append(steps, step), append(want, how)
	}
	f := newFakeACP(t, nil, steps...)
	p := byACPName(t, "copilot", nil)
	ref := Ref{}
	for i, how := range want {
		if ref.Resume && r.IntN(10) == 0 {
			os.Remove(f.log + ".acp-" + ref.ID)
			if out := f.run(p, f.turn("go on", ref)); out.How != NotFound {
				t.Fatalf("turn %d of a lost conversation: %+v", i, out)
			}
			ref = Ref{}
		}
		out := f.run(p, f.turn("go on", ref))
		if out.How != how {
			t.Fatalf("turn %d is %+v, not %s", i, out, how)
		}
		ref = Ref{ID: out.Conversation, Resume: out.Conversation != ""}
	}
	f.faults()
}
