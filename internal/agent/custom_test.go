package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestCustomSettings(t *testing.T) {
	for _, c := range []struct {
		name string
		set  map[string]string
		err  string
	}{
		{"mine", map[string]string{"start": "x"}, ""},
		{"mine", map[string]string{"start": "x", "format": "codex-json", "resume": "y", "presetId": "true",
			"notFound": "no such"}, ""},
		{"mine", map[string]string{}, "tilth.agent.mine.start is not set"},
		{"mine", map[string]string{"start": "x", "strat": "y"}, "tilth.agent.mine.strat is not known"},
		{"mine", map[string]string{"start": "x", "format": "xml"}, "tilth.agent.mine.format"},
		{"mine", map[string]string{"start": "x", "presetid": "maybe"}, "tilth.agent.mine.presetId"},
		{"mine", map[string]string{"start": "x", "notfound": "("}, "tilth.agent.mine.notFound"},
		{"mine", map[string]string{"start": "x", "done": "("}, "tilth.agent.mine.done"},
		{"mine", map[string]string{"start": "x", "args": "y"},
			"tilth.agent.mine.args has no effect: mine is a program of your own"},
		{"mine", map[string]string{"start": "x", "env": "A_KEY B_TOKEN"}, ""},
		{"mine", map[string]string{"start": "x", "env": "A_KEY=x"}, "tilth.agent.mine.env: \"A_KEY=x\""},
		{"mine", map[string]string{"start": "x", "acp": "1", "mode": "code", "readonlymode": "ask", "auth": "k"}, ""},
		{"mine", map[string]string{"acp": "true"}, "tilth.agent.mine.acp: there is no command"},
		{"mine", map[string]string{"start": "x", "acp": "perhaps"}, `tilth.agent.mine.acp: "perhaps" is not a boolean`},
		{"mine", map[string]string{"start": "x", "mode": "code"}, "tilth.agent.mine.mode has no effect"},
		{"mine", map[string]string{"start": "x", "acp": "1", "resume": "y"}, "tilth.agent.mine.resume has no effect"},
		{"mine", map[string]string{"start": "x", "acp": "1", "notfound": "y"}, "agent.mine.notFound has no effect"},
		{"mine", map[string]string{"start": "x", "acp": "1", "args": "y"}, "tilth.agent.mine.args"},
		{"claude", map[string]string{"acp": "true", "args": "--x", "path": "/opt/c"}, ""},
		{"claude", map[string]string{"acp": "true", "start": "x"}, "tilth.agent.claude.start has no effect"},
		{"qwen", map[string]string{"mode": "yolo"}, ""},
		{"qwen", map[string]string{"acp": "false"}, "tilth.agent.qwen.acp: qwen speaks only ACP"},
		{"copilot", map[string]string{"format": "text"}, "tilth.agent.copilot.format has no effect"},
		{"claude", map[string]string{"env": "A_KEY"}, ""},
		{"claude", map[string]string{"path": "/opt/claude", "args": "--effort high"}, ""},
		{"claude", map[string]string{"start": "x"},
			"claude is a row of the table; its keys are acp, args, env, model, path"},
		{"claude", map[string]string{"path": "tools/claude"}, "names a file in the worktree"},
	} {
		p, err := custom(c.name, c.set)
		if c.err == "" && (err != nil || p.Name != c.name) {
			t.Errorf("%v: %v", c.set, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v: got %v, want %s", c.set, err, c.err)
		}
	}
}

// The first program of the user's shell command is looked up, but not shell keywords and relative paths.
func TestLookupOfAShellCommand(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "agent"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for start, missing := range map[string]string{
		"cat > seen; echo done": "", "A=1 exec cat": "", "cd x && y": "", "if true; then y; fi": "", "./agent --x": "",
		`"$HOME/none"`: "", "~/agent -p": "", "~/none -p": filepath.Join(home, "none"), "/no/such/agent": "/no/such/agent",
		"no-such-agent --acp": "no-such-agent", "A=1 no-such-agent|cat": "no-such-agent",
	} {
		for _, acp := range []string{"", "true"} {
			p, err := custom("mine", map[string]string{"start": start, "acp": acp})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if missing != "" {
				want = "mine is not installed: no " + missing + " on PATH"
			}
			got := ""
			if _, err := p.Lookup(t.Context(), home, []string{"HOME=" + home, "PATH=/bin:/usr/bin"}); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", start, got, want)
			}
		}
	}
}

// A program finds the keys that its row names, its proxies and no others.
func TestAProgramsKeys(t *testing.T) {
	environ := []string{"PATH=/bin", "A_KEY=1", "B_TOKEN=2", "SSH_AUTH_SOCK=/x", "HTTPS_PROXY=http://u:p@proxy",
		"DATABASE_URL=postgres://u:p@h/d", "TILTH_MODEL=m", "OPENAI_API_KEY=3"}
	for name, want := range map[string]string{
		"mine": "A_KEY HTTPS_PROXY PATH CI", "codex": "A_KEY HTTPS_PROXY OPENAI_API_KEY PATH CI",
	} {
		set := map[string]string{"env": "A_KEY"}
		if name == "mine" {
			set["start"] = "x"
		}
		p, err := custom(name, set)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range p.Environ(environ, nil) {
			if !slices.Contains(quiet, entry) {
				key, _, _ := strings.Cut(entry, "=")
				got = append(got, key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s finds %s, want %s", name, got, want)
		}
	}
	const dropped = "A_KEY DATABASE_URL HTTPS_PROXY OPENAI_API_KEY SSH_AUTH_SOCK"
	if got := strings.Join(Dropped(environ, []string{"B_TOKEN"}), " "); got != dropped {
		t.Errorf("dropped are %s", got)
	}
}

func TestAdjustedRow(t *testing.T) {
	f := newFake(t)
	p, err := custom("claude", map[string]string{"args": "--model big"})
	if err != nil {
		t.Fatal(err)
	}
	f.run(p, f.turn("x", Ref{ID: p.NewID()}))
	if got := strings.Join(f.runs()[0].Args, " "); !strings.Contains(got, "--model big --session-id") {
		t.Errorf("got %s", got)
	}
	if row, _ := byName("claude"); len(row.Args) > 0 {
		t.Error("the table was changed")
	}
}

// A user's program that prints text and keeps its conversations in files.
func TestTextProgram(t *testing.T) {
	const start = `[ -n "$TILTH_CONVERSATION" ] && cat > "$TILTH_CONVERSATION" && echo "said $TILTH_MAX_TURNS:$TILTH_READ_ONLY:$TILTH_MODEL" && echo DONE`
	const resume = `if [ -f "$TILTH_CONVERSATION" ]; then echo "knows $(cat "$TILTH_CONVERSATION")"; echo DONE; else echo "never heard of it" >&2; exit 1; fi`
	p, err := custom("mine", map[string]string{"start": start, "resume": resume, "presetid": "true", "done": "^DONE$",
		"notfound": "never heard"})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	turn := f.turn("the task; $(exit 9)", Ref{ID: p.NewID()})
	turn.MaxTurns, turn.Model, turn.System = 5, "big", "the system prompt"
	one := f.run(p, turn)
	if one.How != Completed || one.Text != "said 5::big\nDONE\n" || one.Conversation != turn.Conversation.ID {
		t.Fatalf("%+v", one)
	}
	two := f.run(p, f.turn("go on", Ref{ID: one.Conversation, Resume: true}))
	if two.How != Completed || !strings.Contains(two.Text, "knows the system prompt\n\nthe task; $(exit 9)") {
		t.Fatalf("%+v", two)
	}
	if out := f.run(p, f.turn("go on", Ref{ID: uuid.NewString(), Resume: true})); out.How != NotFound {
		t.Errorf("%+v", out)
	}
	if gone, s := p.Stored(f.env, f.dir, one.Conversation); gone || !strings.Contains(s, "only a resume") {
		t.Errorf("%+v", s)
	}
}

func TestTextProgramWithoutADoneLine(t *testing.T) {
	f := newFake(t)
	for command, want := range map[string]How{"echo hello": Completed, "true": Failed, "echo hello; exit 1": Failed,
		"echo TILTH_CONVERSATION=abc; echo hello": Completed} {
		p, err := custom("mine", map[string]string{"start": command})
		if err != nil {
			t.Fatal(err)
		}
		out := f.run(p, f.turn("x", Ref{}))
		if out.How != want {
			t.Errorf("%s: %+v", command, out)
		}
		if says := map[string]string{"true": "it exited with status 0 without a line of output",
			"echo hello; exit 1": "hello (it exited with status 1 after a line of output)"}[command]; want == Failed &&
			out.Detail != says {
			t.Errorf("%s: %q", command, out.Detail)
		}
		if strings.Contains(command, "abc") && (out.Conversation != "abc" || out.Text != "hello\n") {
			t.Errorf("%s: %+v", command, out)
		}
		if out = f.run(p, f.turn("x", Ref{ID: "abc", Resume: true})); out.How != NotFound {
			t.Errorf("resumed without a command for it: %+v", out)
		}
	}
}

// The user's own expressions also hold for the output of a text program that failed, but not for its message.
func TestTextProgramAtItsLimit(t *testing.T) {
	f := newFake(t)
	for command, want := range map[string]How{
		"echo At my limit, try again in 2 hours; exit 1": UsageLimit, "echo At my limit >&2; exit 1": UsageLimit,
		"echo At my limit, try again in 2 hours": Completed, "echo quota exceeded; exit 1": Failed,
		"echo quota exceeded; true": Failed, // without the line of success
	} {
		p, err := custom("mine", map[string]string{"start": command, "usagelimit": "^At my limit",
			"done": map[bool]string{true: "^DONE"}[strings.HasSuffix(command, "true")]})
		if err != nil {
			t.Fatal(err)
		}
		out := f.run(p, f.turn("x", Ref{}))
		if known := strings.Contains(command, "hours; exit"); out.How != want || out.LimitReset.IsZero() == known {
			t.Errorf("%s: %+v", command, out)
		}
	}
}

func TestTextProgramWithMuchToSay(t *testing.T) {
	f := newFake(t)
	p, err := custom("mine", map[string]string{"start": "yes a line of output | head -c 100000000; echo; echo the end"})
	if err != nil {
		t.Fatal(err)
	}
	out := f.run(p, f.turn("x", Ref{}))
	if out.How != Completed || !strings.HasSuffix(out.Text, "the end\n") || !strings.HasPrefix(out.Text, "a line") ||
		len(out.Text) > 3*maxText {
		t.Errorf("%s, %d bytes, %.20q", out.How, len(out.Text), out.Text)
	}
}

// A program of the user's own that speaks another program's language.
func TestCustomFormat(t *testing.T) {
	f := newFake(t)
	p, err := custom("wrapped", map[string]string{"format": "codex-json", "start": "codex exec --json -", "resume": `codex exec --json resume "$TILTH_CONVERSATION" -`})
	if err != nil {
		t.Fatal(err)
	}
	one := f.run(p, f.turn("FIRST", Ref{}))
	if one.How != Completed || one.Conversation == "" || one.Usage.Prompt != 100 {
		t.Fatalf("%+v", one)
	}
	turn := f.turn("SECOND", Ref{ID: one.Conversation, Resume: true})
	turn.PriorTotal = one.Total
	if two := f.run(p, turn); two.How != Completed || two.Usage.Prompt != 100 || two.Total.Prompt != 200 {
		t.Errorf("%+v", two)
	}
}

func TestFinalJSON(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"a":1}`, `{"a":1}`},
		{"Here it is:\n```json\n{\"a\": {\"b\": \"}\"}}\n```\nbye {", `{"a": {"b": "}"}}`},
		{`first {"a":1} then {"b":2} done`, `{"b":2}`},
		{`{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`func f() { return } {"a":"\u00e4"}`, `{"a":"\u00e4"}`},
		{`{{{{`, ""}, {"", ""}, {"[1]", ""}, {`{"a":`, ""},
	} {
		got, ok := FinalJSON(c.text)
		if string(got) != c.want || ok != (c.want != "") {
			t.Errorf("%q: got %s", c.text, got)
		}
	}
}

// The search stops in text with too many beginnings of objects.
func TestFinalJSONOfNonsense(t *testing.T) {
	if got, ok := FinalJSON(strings.Repeat(`{"a":`, 200_000)); ok {
		t.Errorf("found %.20s", got)
	}
}

func FuzzFinalJSON(f *testing.F) {
	f.Add("a {\"b\":1} c")
	f.Add("```{}```{")
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := FinalJSON(text); ok && (len(got) == 0 || got[0] != '{' || !strings.Contains(text, string(got))) {
			t.Errorf("got %q", got)
		}
	})
}
