package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
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
			gone    bool
		}{
			{f.dir, out.Conversation, false},
			{link, out.Conversation, false},
			{other, out.Conversation, true},
			{f.dir, "00000000-0000-4000-8000-000000000000", true},
			{f.dir, "", true},
			{f.dir, "../x", true},
		} {
			if gone, why := p.Stored(f.env, c.dir, c.id); gone != c.gone || why == "" {
				t.Errorf("%s in %s: gone %v, want %v (%s)", c.id, c.dir, gone, c.gone, why)
			}
		}
		f.forget()
		if gone, why := p.Stored(f.env, f.dir, out.Conversation); !gone {
			t.Errorf("deleted: %s", why)
		}
	})
}

// An empty transcript can be neither resumed nor started again.
func TestEmptyTranscript(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		for _, pattern := range []string{".claude/projects/*/*.jsonl", ".codex/sessions/*/*/*/*.jsonl"} {
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
		gone, why := p.Stored(f.env, f.dir, out.Conversation)
		if !gone || !strings.Contains(why, "empty") {
			t.Errorf("%v, %s", gone, why)
		}
		if id, err := p.discover(f.env, f.dir, time.Time{}); id != "" || err != nil {
			t.Errorf("an empty transcript was discovered (%v)", err)
		}
	})
}

func TestDiscover(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		begun := time.Now().Add(-time.Second)
		if id, err := p.discover(f.env, f.dir, begun); id != "" || err != nil {
			t.Fatalf("found something in an empty store (%v)", err)
		}
		mine := f.run(p, f.turn("mine", Ref{ID: p.NewID()})).Conversation
		// The user's own newer chat in another directory, for example below this one or with a similar name.
		for _, dir := range []string{filepath.Join(f.dir, "sub"), f.dir + "-2"} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			turn := f.turn("a person's", Ref{ID: p.NewID()})
			turn.Dir = dir
			f.run(p, turn)
		}
		find := func(since time.Time, except ...string) string {
			id, err := p.discover(f.env, f.dir, since, except...)
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
		for i, dir := range dirs {
			if id, err := p.discover(f.env, dir, time.Time{}); id != ids[dir] || err != nil {
				t.Errorf("%s: found %q, want %q (%v)", dir, id, ids[dir], err)
			}
			if gone, _ := p.Stored(f.env, dirs[1-i], ids[dir]); !gone {
				t.Errorf("the conversation of %s counts as that of %s", dir, dirs[1-i])
			}
		}
	})
}

// A thread that ended between an answer and its count. The answer was paid for, but the next run continues from the
// count before it.
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
	p, _ := byName("codex")
	prior := Usage{Prompt: 100, Eval: 20}
	for _, run := range []struct {
		name, events, more string
		want               Usage
	}{
		{"ended while a tool runs", "", "", Usage{Prompt: 200, Eval: 40}},
		{"ended before its first answer", "", "", Usage{}},
		{"with one more answer, counted on from before the one", `{"type":"turn.completed","usage":{"input_tokens":300,"output_tokens":60}}`,
			`{"type":"token_usage_record","payload":{"thread_token_usage":{"input_tokens":400,"output_tokens":80}}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":300,"output_tokens":60}}}}
`, Usage{Prompt: 100, Eval: 20}},
		{"ended before its first answer again", "", "", Usage{}},
	} {
		rollout += run.more
		if err := os.WriteFile(path, []byte(rollout), 0o600); err != nil {
			t.Fatal(err)
		}
		turn := &Turn{PriorTotal: prior}
		s, _ := feed(p, turn, run.events, "")
		p.finish(s, &history{program: p, env: []string{"CODEX_HOME=" + home}, id: id})
		out := s.outcome(proc.Outcome{}, &ending{how: Interrupted, why: "x"})
		if out.Usage != run.want {
			t.Errorf("%s: usage %+v, want %+v", run.name, out.Usage, run.want)
		}
		prior = out.Total
	}
}

// A turn's end has the same cost for any size of the store. It reads neither years of days around a thread's own nor
// the beginning of the rollout.
func TestCodexReadsTheEndOfOneRollout(t *testing.T) {
	const id = "c608d775-a1e6-44af-ad14-56c828dd876b"
	sessions := filepath.Join(t.TempDir(), "sessions")
	write := func(day, content string) {
		path := filepath.Join(sessions, filepath.FromSlash(day), "rollout-2026-11-21T14-20-55-"+id+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	used := func(n string) string {
		return `{"type":"token_usage_record","payload":{"thread_token_usage":{"input_tokens":` + n + `,"output_tokens":1}}}` + "\n"
	}
	// An earlier day and an earlier line each name tokens that would be taken if they were read last.
	write("2025/02/03", used("9000"))
	write("2026/11/21", used("7000")+used("300")+`{"type":"event_msg","payload":{"type":"token_count","info":null}}`+"\n")
	p, _ := byName("codex")
	h := &history{program: p, env: []string{"CODEX_HOME=" + filepath.Dir(sessions)}, id: id}
	if files, err := codexStore.files(h); len(files) != 1 || !strings.Contains(files[0], "2026") {
		t.Errorf("looked into %v, %v", files, err)
	}
	s, _ := feed(p, &Turn{}, "", "")
	p.finish(s, h)
	if s.total.Prompt != 300 {
		t.Errorf("booked %+v", s.total)
	}
	h.id = "c608d775-a1e6-44af-ad14-56c828dd876c"
	if files, err := codexStore.files(h); len(files) != 0 || err != nil {
		t.Errorf("a thread without a rollout has %v, %v", files, err)
	}
}

// A rollout that was cut before the task's message has only Codex's own first messages of a thread.
func TestCodexRolloutWithoutTheTask(t *testing.T) {
	p, _ := byName("codex")
	f := newFake(t)
	out := f.run(p, f.turn("the task", Ref{}))
	found, err := filepath.Glob(filepath.Join(f.home, ".codex/sessions/*/*/*/*.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for n, want := range map[int]bool{3: true, 4: false} {
		if err := os.WriteFile(found[0], []byte(strings.Join(lines[:n], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := p.Stored(f.env, f.dir, out.Conversation); got != want {
			t.Errorf("of %d lines: gone %v, want %v", n, got, want)
		}
	}
}
