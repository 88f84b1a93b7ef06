package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStored(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		other := filepath.Join(f.home, "other")
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(f.home, "link")
		if err := os.Symlink(f.dir, link); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			dir, id string
			want    Presence
		}{
			{f.dir, out.Conversation, Present},
			{link, out.Conversation, Present},
			{other, out.Conversation, Missing},
			{f.dir, unknownID(p), Missing},
			{f.dir, "", Missing},
			{f.dir, "../x", Missing},
		} {
			if got := p.Stored(f.env, c.dir, c.id); got.Presence != c.want || got.Why == "" {
				t.Errorf("%s in %s: %+v, want %s", c.id, c.dir, got, c.want)
			}
		}
		f.forget()
		if got := p.Stored(f.env, f.dir, out.Conversation); got.Presence != Missing {
			t.Errorf("deleted: %+v", got)
		}
	})
}

func unknownID(p *Program) string {
	if p.Name == "opencode" {
		return "ses_0000000000"
	}
	return "00000000-0000-4000-8000-000000000000"
}

// A transcript that exists but holds nothing can be neither resumed nor started again.
func TestEmptyTranscript(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini"} {
		p, _ := ByName(name)
		f := newFake(t)
		out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		for _, pattern := range []string{".claude/projects/*/*.jsonl", ".codex/sessions/*/*/*/*.jsonl", ".gemini/tmp/*/chats/*.jsonl"} {
			found, err := filepath.Glob(filepath.Join(f.home, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range found {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				head, _, _ := strings.Cut(string(data), "\n")
				if err := os.WriteFile(path, []byte(head+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := p.Stored(f.env, f.dir, out.Conversation); got.Presence != Empty {
			t.Errorf("%s: %+v", name, got)
		}
		if _, ok, err := p.Discover(f.env, f.dir, time.Time{}); ok || err != nil {
			t.Errorf("%s: an empty transcript was discovered (%v)", name, err)
		}
	}
}

func TestUnreadableStore(t *testing.T) {
	p, _ := ByName("opencode")
	env := []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	if got := p.Stored(env, t.TempDir(), "ses_1"); got.Presence != Unknown {
		t.Errorf("%+v", got)
	}
	if _, ok, err := p.Discover(env, t.TempDir(), time.Time{}); ok || err == nil {
		t.Errorf("found without the program (%v)", err)
	}
}

func TestDiscover(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		begun := time.Now().Add(-time.Second)
		if _, ok, err := p.Discover(f.env, f.dir, begun); ok || err != nil {
			t.Fatalf("found something in an empty store (%v)", err)
		}
		mine := f.run(p, f.turn("mine", Ref{ID: p.NewID()})).Conversation
		// A person's own chat, newer and in another directory, even if only below this one or with a name that begins alike.
		for _, dir := range []string{filepath.Join(f.dir, "sub"), f.dir + "-2"} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			turn := f.turn("a person's", Ref{ID: p.NewID()})
			turn.Dir = dir
			f.run(p, turn)
		}
		find := func(since time.Time, except ...string) string {
			id, _, err := p.Discover(f.env, f.dir, since, except...)
			if err != nil {
				t.Error(err)
			}
			return id
		}
		if got := find(begun); got != mine {
			t.Errorf("found %q, want %q", got, mine)
		}
		if got := find(time.Now().Add(time.Hour)); got != "" {
			t.Errorf("found %q, which is older than the session", got)
		}
		if got := find(begun, mine); got != "" {
			t.Errorf("found %q, which belongs to another task", got)
		}
		newer := f.run(p, f.turn("newer", Ref{ID: p.NewID()})).Conversation
		if got := find(begun); got != newer {
			t.Errorf("found %q, want the newest %q", got, newer)
		}
	})
}

// Two sessions of one repository with the same program never mix their conversations.
func TestTwoSessionsAtOnce(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		dirs := []string{f.dir, filepath.Join(f.home, "sessions", "b", "workspace")}
		if err := os.MkdirAll(dirs[1], 0o755); err != nil {
			t.Fatal(err)
		}
		type done struct {
			dir string
			out Outcome
			err error
		}
		results := make(chan done)
		for _, dir := range dirs {
			go func() {
				turn := f.turn("work in "+dir, Ref{ID: p.NewID()})
				turn.Dir = dir
				out, err := p.Run(t.Context(), turn)
				results <- done{dir, out, err}
			}()
		}
		ids := map[string]string{}
		for range dirs {
			d := <-results
			if d.err != nil || d.out.How != Completed {
				t.Fatalf("%+v %v", d.out, d.err)
			}
			ids[d.dir] = d.out.Conversation
		}
		if p.Name == "gemini" {
			return // the fake's projects.json is not written by two at once
		}
		for i, dir := range dirs {
			if id, _, err := p.Discover(f.env, dir, time.Time{}); id != ids[dir] || err != nil {
				t.Errorf("%s: found %q, want %q (%v)", dir, id, ids[dir], err)
			}
			if s := p.Stored(f.env, dirs[1-i], ids[dir]); s.Presence == Present {
				t.Errorf("the conversation of %s counts as that of %s", dir, dirs[1-i])
			}
		}
	})
}

// A thread that was ended between an answer and its count: the answer was paid for, but the next run counts on from before it.
func TestCodexTokensOfAnEndedRun(t *testing.T) {
	const id = "c608d775-a1e6-44af-ad14-56c828dd876b"
	home := t.TempDir()
	path := filepath.Join(home, "sessions", "2026", "11", "21", "rollout-2026-11-21T14-20-55-"+id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	rollout := `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":200,"output_tokens":40}}}}
{"type":"token_usage_record","payload":{"thread_token_usage":{"input_tokens":300,"output_tokens":60}}}
{"type":"event_msg","payload":{"type":"token_count","info":null}}
`
	if err := os.WriteFile(path, []byte(rollout), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := ByName("codex")
	turn := &Turn{PriorTotal: Usage{Prompt: 100, Eval: 20}}
	s, _ := feed(p, turn, "", "")
	p.finish(s, &history{program: p, env: []string{"CODEX_HOME=" + home}, id: id})
	out := p.judge(s, turn, result{}, &ended{TurnLimit, "x"})
	if out.Usage != (Usage{Prompt: 200, Eval: 40}) || out.Total != (Usage{Prompt: 200, Eval: 40}) {
		t.Errorf("usage %+v, total %+v", out.Usage, out.Total)
	}
}
