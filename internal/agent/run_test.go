package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/git-tilth/git-tilth/internal/record"
)

// A new conversation, with its id reported before the work or at the first event, is continued with its messages.
func TestConversationIsResumed(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"write": map[string]string{"a.txt": "a"}, "text": `first {"n":1}`, "turns": 2}, fakeStep{"text": "second"})
		var told []string
		turn := f.turn("do the FIRST thing", Ref{ID: p.NewID()})
		turn.System = "you are a worker"
		turn.OnConversation = func(id string) error { told = append(told, id); return nil }
		one := f.run(p, turn)
		if one.How != Completed || one.Text != `first {"n":1}` || one.Turns != 3 {
			t.Fatalf("first run: %+v", one)
		}
		if len(told) != 1 || told[0] != one.Conversation || (p.preset && told[0] != turn.Conversation.ID) {
			t.Fatalf("told %v, conversation %s, preset %q", told, one.Conversation, turn.Conversation.ID)
		}
		if _, err := os.Stat(filepath.Join(f.dir, "a.txt")); err != nil {
			t.Error(err)
		}
		dollars := p.Name == "claude"
		if want := (Usage{Prompt: 300, Eval: 60, CostKnown: dollars}); one.Usage != want || one.Total != want {
			t.Errorf("usage %+v, total %+v", one.Usage, one.Total)
		}
		if gone, s := p.Stored(f.env, f.dir, one.Conversation); gone {
			t.Errorf("stored: %+v", s)
		}

		next := f.turn("go on", Ref{ID: one.Conversation, Resume: true})
		next.PriorTotal, next.System = one.Total, "you are a worker"
		next.OnConversation = turn.OnConversation
		two := f.run(p, next)
		if two.How != Completed || two.Conversation != one.Conversation || two.Text != "second" {
			t.Fatalf("second run: %+v", two)
		}
		if want := (Usage{Prompt: 100, Eval: 20, CostKnown: dollars}); two.Usage != want {
			t.Errorf("usage of the second run: %+v", two.Usage)
		}
		if want := (Usage{Prompt: 400, Eval: 80, CostKnown: dollars}); two.Total != want {
			t.Errorf("total after the second run: %+v", two.Total)
		}
		runs := f.runs()
		if len(runs) != 2 || len(runs[1].History) != 1 || !strings.Contains(runs[1].History[0], "FIRST") ||
			runs[1].Dir != f.dir {
			t.Fatalf("runs: %+v", runs)
		}
		for _, r := range runs {
			if !strings.Contains(r.System+r.Prompt, "you are a worker") {
				t.Error("the system prompt was not passed")
			}
			if strings.Contains(strings.Join(r.Env, "\n"), "the-key-of-the-harness") {
				t.Error("the harness's key was in the environment")
			}
		}
		if len(told) != 2 || told[1] != told[0] {
			t.Errorf("told %v: the resumed conversation is told too, once", told)
		}
	})
}

// Each program's messages for failures, and their meaning.
func TestWaysToEnd(t *testing.T) {
	reset := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		step fakeStep
		how  How
		only string
	}{
		"exit 0 without a terminal event": {fakeStep{"end": "none"}, Failed, ""},
		"an error":                        {fakeStep{"end": "error"}, Failed, ""},
		"usage limit":                     {fakeStep{"end": "usage_limit", "reset": reset.Unix()}, UsageLimit, ""},
		"success with a bad exit status":  {fakeStep{"exit": 3}, Failed, ""},
		"text that mentions a limit": {
			fakeStep{
				"text": "You've hit your usage limit. No conversation found with session ID: x. Session not found"},
			Completed, ""},
		"a file that mentions a limit": {fakeStep{"end": "none", "text": "Claude AI usage limit reached|1"},
			Failed, ""},
		"100 MB of output":            {fakeStep{"flood": 100}, Completed, ""},
		"a child that keeps the pipe": {fakeStep{"stray": true}, Completed, ""},
		"its own turn limit":          {fakeStep{"end": "turn_limit"}, TurnLimit, "claude"},
		"the id late":                 {fakeStep{"id": "late"}, Completed, ""},
		"permission denied":           {fakeStep{"denied": []string{"Bash"}}, Completed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachProgram(t, func(t *testing.T, p *Program) {
				if c.only != "" && !strings.Contains(c.only, p.Name) {
					return
				}
				f := newFake(t, c.step)
				out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
				if out.How != c.how {
					t.Fatalf("got %s (%s), want %s", out.How, out.Detail, c.how)
				}
				if out.How != Completed && out.Detail == "" {
					t.Error("it does not say why")
				}
				if out.How == UsageLimit && p.Name == "claude" && !out.LimitReset.Equal(reset) {
					t.Errorf("reset at %s", out.LimitReset)
				}
				if c.step["denied"] != nil && len(out.Denied) == 0 {
					t.Error("the denied tool is not reported")
				}
			})
		})
	}
}

func TestTurnLimit(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"turns": 9, "hang": true})
		turn := f.turn("x", Ref{ID: p.NewID()})
		turn.MaxTurns = 2
		out := f.run(p, turn)
		if out.How != TurnLimit || out.Turns < 2 || out.Conversation == "" {
			t.Fatalf("%+v", out)
		}
		if out.Usage.Prompt < 200 {
			t.Errorf("usage was lost: %+v", out.Usage)
		}
		next := f.turn("go on", Ref{ID: out.Conversation, Resume: true})
		next.PriorTotal = out.Total
		if out = f.run(p, next); out.How != Completed || out.Usage.Prompt != 100 {
			t.Errorf("resumed: %+v", out)
		}
	})
}

// cancelOnEvent ends a turn at the program's first output, after which the program hangs.
func cancelOnEvent(t *testing.T, f *fake, p *Program) Outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn := f.turn("x", Ref{ID: p.NewID()})
	turn.Emit = func(record.Event) error { cancel(); return nil }
	out, err := p.Run(ctx, turn)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInterrupted(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"turns": 1, "hang": true})
		out := cancelOnEvent(t, f, p)
		if out.How != Interrupted || out.Conversation == "" {
			t.Fatalf("%+v", out)
		}
		if out = f.run(p, f.turn("go on", Ref{ID: out.Conversation, Resume: true})); out.How != Completed {
			t.Errorf("resumed: %+v", out)
		}
	})
}

func TestDeafProgramIsKilled(t *testing.T) {
	p, _ := byName("codex")
	f := newFake(t, fakeStep{"turns": 1, "hang": true, "deaf": true, "stray": true})
	if out := cancelOnEvent(t, f, p); out.How != Interrupted {
		t.Fatalf("%+v", out)
	}
	strayIsGone(t, f)
}

func TestStrayIsEnded(t *testing.T) {
	p, _ := byName("claude")
	f := newFake(t, fakeStep{"stray": true})
	f.run(p, f.turn("x", Ref{ID: p.NewID()}))
	strayIsGone(t, f)
}

// strayIsGone checks that the program's detached child ended with it.
func strayIsGone(t *testing.T, f *fake) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return // only Linux finds processes outside of the group
	}
	data, err := os.ReadFile(f.log + ".stray")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}

// A signal from elsewhere ends a program with exit status 0 and without a result; that is no success.
func TestSignalFromElsewhere(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		for _, sig := range []string{"INT", "TERM"} {
			f := newFake(t, fakeStep{"run": []string{"kill -" + sig + " $PPID"}, "hang": true})
			out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
			if out.How != Interrupted && out.How != Failed {
				t.Errorf("SIG%s: %+v", sig, out)
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	p, _ := byName("claude")
	f := newFake(t, fakeStep{"hang": true})
	turn := f.turn("x", Ref{ID: p.NewID()})
	turn.Timeout = 200 * time.Millisecond
	if out := f.run(p, turn); out.How != TimedOut {
		t.Errorf("%+v", out)
	}
}

func TestNotFound(t *testing.T) {
	zero := 0
	for name, step := range map[string]fakeStep{"as it does": {"repeat": -1},
		"with exit status 0": {"end": "not_found", "exit": zero}} {
		t.Run(name, func(t *testing.T) {
			eachProgram(t, func(t *testing.T, p *Program) {
				f := newFake(t, step)
				id := p.NewID()
				if id == "" {
					id = "7a1f7e9c-3a52-4a5e-9a43-0f9d2f6f2b11"
				}
				turn := f.turn("go on", Ref{ID: id, Resume: true})
				turn.OnConversation = func(string) error { return errors.New("told about a conversation that is lost") }
				if out := f.run(p, turn); out.How != NotFound || out.Conversation != "" {
					t.Errorf("%+v", out)
				}
			})
		})
	}
}

// A program that silently starts another conversation has lost the requested one.
func TestLostSilently(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{}, fakeStep{"end": "lost", "turns": 1, "hang": true})
		one := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		if !p.keepsID {
			return
		}
		if out := f.run(p, f.turn("go on", Ref{ID: one.Conversation, Resume: true})); out.How != NotFound {
			t.Errorf("%+v", out)
		}
	})
}

func TestIDInUse(t *testing.T) {
	p, _ := byName("claude")
	f := newFake(t)
	one := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
	if out := f.run(p, f.turn("x", Ref{ID: one.Conversation})); out.How != InUse {
		t.Errorf("claude: %+v", out)
	}
	p, _ = byName("codex")
	f = newFake(t, fakeStep{"end": "in_use"})
	if out := f.run(p, f.turn("x", Ref{ID: uuid.NewString(), Resume: true})); out.How != InUse {
		t.Errorf("codex: %+v", out)
	}
}

// Older versions give a resumed conversation a new id, which is reported.
func TestIDChangesOnResume(t *testing.T) {
	p, _ := byName("claude")
	f := newFake(t, fakeStep{}, fakeStep{"id": "changed"}, fakeStep{})
	one := f.run(p, f.turn("FIRST", Ref{ID: p.NewID()}))
	var told []string
	turn := f.turn("SECOND", Ref{ID: one.Conversation, Resume: true})
	turn.OnConversation = func(id string) error { told = append(told, id); return nil }
	two := f.run(p, turn)
	if two.How != Completed || two.Conversation == one.Conversation ||
		!reflect.DeepEqual(told, []string{two.Conversation}) {
		t.Fatalf("%+v, told %v", two, told)
	}
	f.run(p, f.turn("THIRD", Ref{ID: two.Conversation, Resume: true}))
	if got := f.runs()[2].History; !reflect.DeepEqual(got, []string{"FIRST", "SECOND"}) {
		t.Errorf("history of the third run: %q", got)
	}
}

func TestIDNeverSaid(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"id": "missing"})
		out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		if out.How != Completed {
			t.Fatalf("%+v", out)
		}
		if (out.Conversation != "") != p.preset {
			t.Errorf("conversation %q", out.Conversation)
		}
	})
}

// A conversation that cannot be recorded must not be used.
func TestRefusedConversationEndsTheProgram(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"turns": 1, "hang": true})
		turn := f.turn("x", Ref{ID: p.NewID()})
		disk := errors.New("disk full")
		turn.OnConversation = func(string) error { return disk }
		if _, err := p.Run(t.Context(), turn); !errors.Is(err, disk) {
			t.Errorf("got %v", err)
		}
		if p.preset && len(f.runs()) > 0 {
			t.Error("the program was started")
		}
	})
}

func TestReadOnly(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		turn := f.turn("judge", Ref{ID: p.NewID()})
		turn.ReadOnly = true
		f.run(p, turn)
		f.run(p, f.turn("work", Ref{ID: p.NewID()}))
		if runs := f.runs(); !runs[0].ReadOnly || runs[1].ReadOnly {
			t.Errorf("%v\n%v", runs[0].Args, runs[1].Args)
		}
	})
}

// A resume of a conversation from another directory is never tried by Choose; the program itself would refuse or
// misuse it.
func TestBadIDsAreNotHandedOver(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		for _, id := range []string{"", "latest", "--help", "../../etc/passwd", "x y"} {
			out := f.run(p, f.turn("x", Ref{ID: id, Resume: true}))
			if out.How != NotFound {
				t.Errorf("%q: %+v", id, out)
			}
		}
		if len(f.runs()) > 0 {
			t.Error("the program was started")
		}
	})
}

func TestNotInstalled(t *testing.T) {
	p, _ := byName("claude")
	_, err := p.Run(t.Context(), Turn{Dir: t.TempDir(), Env: []string{"PATH=" + t.TempDir()}})
	if err == nil ||
		err.Error() != "Claude Code is not installed: no claude on PATH (npm install -g @anthropic-ai/claude-code)" {
		t.Errorf("got %v", err)
	}
	if _, err := p.Run(t.Context(), Turn{Dir: filepath.Join(t.TempDir(), "gone")}); err == nil ||
		!strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsWrittenDown(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"turns": 1})
		turn := f.turn("x", Ref{ID: p.NewID()})
		var kinds []string
		turn.Emit = func(e record.Event) error { kinds = append(kinds, record.TypeOf(e)); return nil }
		f.run(p, turn)
		if want := []string{"tool_call", "tool_result"}; !reflect.DeepEqual(kinds, want) {
			t.Errorf("got %v", kinds)
		}
	})
}

// An event that cannot be recorded ends the program.
func TestWhatCannotBeWrittenDown(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"turns": 1, "hang": true})
		turn := f.turn("x", Ref{ID: p.NewID()})
		full := errors.New("the disk is full")
		turn.Emit = func(record.Event) error { return full }
		if _, err := p.Run(t.Context(), turn); err != full {
			t.Errorf("got %v", err)
		}
	})
}

// A terminal event ends the turn even if the program does not exit.
func TestLingeringProgramIsEnded(t *testing.T) {
	p, _ := byName("claude")
	f := newFake(t, fakeStep{"end": "linger"})
	turn := f.turn("x", Ref{ID: p.NewID()})
	turn.Timeout = 500 * time.Millisecond
	if out := f.run(p, turn); out.How != Completed {
		t.Errorf("%+v", out)
	}
}

// Events are small for any output of the program, and their arguments are JSON.
func TestEventsAreBounded(t *testing.T) {
	p, _ := byName("claude")
	long := strings.Repeat("ä", maxActivity)
	s := newStream(p, &Turn{Emit: func(e record.Event) error {
		res, ok := e.(*record.ToolResult) // the record cuts it after redaction
		if raw := record.JSON(e); !ok && len(raw) > maxActivity+100 || !json.Valid(raw) {
			t.Errorf("%s of %d bytes", record.TypeOf(e), len(raw))
		}
		if ok && res.Chars != maxActivity {
			t.Errorf("%d characters", res.Chars)
		}
		return nil
	}})
	s.uses("Bash", `{"command":"`+long+`"}`)
	s.used("Bash", long, false)
	s.wait(long, 0)
}
