package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

// futureCheckpoint has members that this build does not know, and no trailing newline.
const futureCheckpoint = `{
  "session_id": "20260601-102030-abcdef",
  "started_at": "2026-06-01T10:20:30.456Z",
  "source": "/home/u/r\u00e9po",
  "future": {"b": 1, "a": [1.50, null]},
  "workspace": "/home/u/.tilth/sessions/20260601-102030-abcdef/workspace",
  "branch": "session/20260601-102030-abcdef",
  "tokens_used": 140,
  "usage": {
    "worker": {"prompt": 100, "eval": 40, "total": 140, "cached": 80, "reasoning": 30, "cost": 0.001},
    "evaluator": {"prompt": 0, "eval": 0, "total": 0, "cached": 0, "reasoning": 0, "cost": 0.0}
  },
  "status": "running"
}`

func TestCheckpointKeepsUnknownMembers(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(CheckpointFile), futureCheckpoint)
	cp, err := s.Checkpoint()
	must(t, err)
	if cp.Source != "/home/u/répo" || cp.TokensUsed != 140 || cp.Status != Running ||
		cp.Usage.Worker.CachedTokens != 80 || cp.Usage.Sum().Cost != 0.001 {
		t.Errorf("%+v", cp)
	}
	cp.Status = Failed
	cp.TokensUsed += 60
	cp.Usage.Worker.Add(RoleUsage{Calls: 1, PromptTokens: 50, EvalTokens: 10, Cost: 0.002})
	must(t, s.SaveCheckpoint(cp))
	var got, want map[string]any
	must(t, json.Unmarshal([]byte(read(t, s.Path(CheckpointFile))), &got))
	must(t, json.Unmarshal([]byte(futureCheckpoint), &want))
	want["status"], want["tokens_used"], want["conversations"] = Failed, 200.0, map[string]any{}
	worker := want["usage"].(map[string]any)["worker"].(map[string]any)
	worker["calls"], worker["prompt"], worker["eval"], worker["cost"] = 1.0, 150.0, 50.0, 0.003
	usage := want["usage"].(map[string]any)
	usage["evaluator"].(map[string]any)["calls"] = 0.0
	for _, role := range []string{record.RoleInterview, record.RoleSelfImprove} {
		usage[role] = map[string]any{"calls": 0.0, "prompt": 0.0, "eval": 0.0, "cached": 0.0, "reasoning": 0.0,
			"cost": 0.0}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("after a rewrite:\n%v\nwant\n%v", got, want)
	}
	text := read(t, s.Path(CheckpointFile))
	if !strings.Contains(text, `1.50`) {
		t.Errorf("1.50 is gone from\n%s", text)
	}
}

func TestCheckpointRewriteIsStable(t *testing.T) {
	s := newSession(t)
	cp := &Checkpoint{SessionID: testID, Source: "/src <&>", Status: Prepared, StartedAt: record.FormatTime(testNow),
		Label: "T-001: x", GitCommonDir: "/src/.git",
		Usage: Usage{Interview: RoleUsage{Calls: 2, PromptTokens: 7, Cost: 0.5}}}
	must(t, cp.SetConversation("T-002",
		&Conversation{Agent: "claude", ID: "u", Attempts: []Attempt{{Started: "a", Turns: 3, Cost: 0.25}}}))
	must(t, cp.SetConversation("T-001", &Conversation{ID: "v"}))
	must(t, s.SaveCheckpoint(cp))
	first := read(t, s.Path(CheckpointFile))
	again, err := s.Checkpoint()
	must(t, err)
	must(t, s.SaveCheckpoint(again))
	if second := read(t, s.Path(CheckpointFile)); second != first {
		t.Errorf("a rewrite of the same changed\n%s\nto\n%s", first, second)
	}
	if again.Conversation("T-002").Attempts[0].Cost != 0.25 || again.Usage.Interview.Calls != 2 {
		t.Errorf("%+v", again)
	}
	again.Conversations = nil
	must(t, s.SaveCheckpoint(again))
	text := read(t, s.Path(CheckpointFile))
	if !strings.Contains(text, `"conversations": {}`) {
		t.Errorf("what was removed is still there:\n%s", text)
	}
	if info, err := os.Stat(s.Path(CheckpointFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestCheckpointKeepsUnknownPartsOfConversations(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(CheckpointFile), `{"conversations": {"T-002": {"id": "b", "note": 1}, "T-001": {"id": "a", "attempts": [{"turns": 2, "x": {"y": []}}]}, "T-003": null}}`)
	cp, err := s.Checkpoint()
	must(t, err)
	one := cp.Conversation("T-001")
	one.ID = "c"
	must(t, cp.SetConversation("T-001", one))
	must(t, cp.SetConversation("T-000", &Conversation{ID: "new"}))
	if cp.Conversation("T-003") != nil || len(cp.Conversations) != 4 {
		t.Errorf("%v", cp.Conversations)
	}
	must(t, s.SaveCheckpoint(cp))
	text := read(t, s.Path(CheckpointFile))
	for _, kept := range []string{`"note": 1`, `"y": []`, `"id": "c"`, `"turns": 2,`} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is missing in\n%s", kept, text)
		}
	}
}

func TestCheckpointOddShapes(t *testing.T) {
	s := newSession(t)
	for text, check := range map[string]func(*Checkpoint) bool{
		`{}`: func(c *Checkpoint) bool {
			return c.Status == "" && c.TokensUsed == 0 && record.ParseTime(c.StartedAt).IsZero()
		},
		`{"source": null, "tokens_used":null}`:   func(c *Checkpoint) bool { return c.Source == "" },
		`{"tokens_used": "many"}`:                func(c *Checkpoint) bool { return c.TokensUsed == 0 },
		`{"conversations": {"T-1": 5}}`:          func(c *Checkpoint) bool { return c.Conversation("T-1") == nil },
		`{"usage": [1, 2]}`:                      func(c *Checkpoint) bool { return c.Usage.Sum().Total() == 0 },
		`{"usage": "free"}`:                      func(c *Checkpoint) bool { return c.Usage.Sum().Cost == 0 },
		`{"usage": {"worker": 5, "x": {}}}`:      func(c *Checkpoint) bool { return c.Usage.Worker.Calls == 0 },
		`{"started_at": {"a": 1}}`:               func(c *Checkpoint) bool { return c.StartedAt == "" },
		`{"started_at": 1e300}`:                  func(c *Checkpoint) bool { return record.ParseTime(c.StartedAt).IsZero() },
		`{"started_at": "2026-06-01T10:20:30Z"}`: func(c *Checkpoint) bool { return record.ParseTime(c.StartedAt).Unix() == testNow.Unix() },
		`{"status": "a", "status": "b"}`:         func(c *Checkpoint) bool { return c.Status == "b" },
	} {
		write(t, s.Path(CheckpointFile), text)
		cp, err := s.Checkpoint()
		if err != nil || !check(cp) {
			t.Errorf("%s: %+v, %v", text, cp, err)
			continue
		}
		must(t, s.SaveCheckpoint(cp))
		// Unchanged members are kept.
		var before, after map[string]json.RawMessage
		must(t, json.Unmarshal([]byte(text), &before))
		must(t, json.Unmarshal([]byte(read(t, s.Path(CheckpointFile))), &after))
		for k := range before {
			if _, kept := after[k]; !kept {
				t.Errorf("%s: %q is gone", text, k)
			}
		}
	}
}

func TestDamagedUsageIsCountedAgain(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(CheckpointFile), `{"usage": [1, 2]}`)
	cp, err := s.Checkpoint()
	must(t, err)
	cp.Usage.Role("").Add(RoleUsage{Calls: 1, PromptTokens: 5})
	must(t, s.SaveCheckpoint(cp))
	cp, err = s.Checkpoint()
	must(t, err)
	if cp.Usage.Worker.PromptTokens != 5 {
		t.Errorf("%+v", cp.Usage)
	}
}

func TestCheckpointErrorsNameFileAndFault(t *testing.T) {
	s := newSession(t)
	if _, err := s.Checkpoint(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing checkpoint: %v", err)
	}
	for text, want := range map[string]string{
		"":                            "is empty",
		"  \n":                        "is empty",
		"5":                           "is a number, want an object",
		"[]":                          "is a list, want an object",
		"{\"a\": 1,\n \"b\" 2}":       "line 2, column 6",
		`{"status": `:                 "is not JSON",
		`{"source": 5}`:               `"source" is a number, want a string`,
		`{"branch": {}}`:              `"branch" is an object, want a string`,
		`{"conversations": []}`:       `"conversations" is a list, want an object`,
		"{\"status\": \"a\"}\x00\x00": "is not JSON",
	} {
		write(t, s.Path(CheckpointFile), text)
		_, err := s.Checkpoint()
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), s.Path(CheckpointFile)) {
			t.Errorf("%q: %v, want %q and the file", text, err, want)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(futureCheckpoint))
	f.Add([]byte(`{"usage":[1],"conversations":{"T-1":null},"rewind":{"usage":{}},"tokens_used":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cp, err := decodeCheckpoint(data)
		if err != nil {
			return
		}
		once, err := encode(cp, data)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := decodeCheckpoint(once)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
		twice, err := encode(again, once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("a second rewrite changed\n%s\nto\n%s (%v)", once, twice, err)
		}
	})
}
