package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The command lines, as they were seen to work.
func TestCommandLines(t *testing.T) {
	const id = "c608d775-a1e6-44af-ad14-56c828dd876b"
	full := Turn{Prompt: "p", System: "s", Model: "m", MaxTurns: 7, GitDir: "/g/worktrees/w", CommonDir: "/g"}
	for _, c := range []struct {
		program string
		ref     Ref
		ro      bool
		bare    bool
		want    string
		stdin   string
	}{
		{"claude", Ref{ID: id}, false, false, "-p --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools Bash " +
			"--disallowedTools EnterWorktree,ExitWorktree,CronCreate,ScheduleWakeup --model m --max-turns 7 --append-system-prompt s --session-id " + id, "p"},
		{"claude", Ref{ID: id, Resume: true}, true, true, "-p --output-format stream-json --verbose --permission-mode default --tools Read,Glob,Grep " +
			"--strict-mcp-config --no-session-persistence --resume " + id, "p"},
		{"codex", Ref{}, false, false, "exec --json --skip-git-repo-check -c check_for_update_on_startup=false -s workspace-write " +
			"--add-dir /g/worktrees/w --add-dir /g/objects --add-dir /g/refs --add-dir /g/logs -m m -", "s\n\np"},
		{"codex", Ref{ID: id, Resume: true}, false, true, "exec --json --skip-git-repo-check -c check_for_update_on_startup=false -s workspace-write resume " + id + " -", "p"},
		{"codex", Ref{}, true, true, "exec --json --skip-git-repo-check -c check_for_update_on_startup=false -s read-only --ephemeral -", "p"},
		{"gemini", Ref{ID: id}, false, false, "--skip-trust -o stream-json --approval-mode yolo -m m --session-id " + id, "s\n\np"},
		{"gemini", Ref{ID: id, Resume: true}, true, true, "--skip-trust -o stream-json --approval-mode default --policy POLICY --resume " + id, "p"},
		{"opencode", Ref{}, false, false, "run --format json --print-logs -m m", "s\n\np"},
		{"opencode", Ref{ID: "ses_1", Resume: true}, true, true, "run --format json --print-logs --session ses_1", "p"},
	} {
		f := newFake(t)
		p, _ := ByName(c.program)
		turn := full
		if c.bare {
			turn = Turn{Prompt: "p"}
		}
		turn.Conversation, turn.ReadOnly, turn.Env, turn.Dir = c.ref, c.ro, f.env, f.dir
		cmd, err := p.build(&turn)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(cmd.argv[1:], " ")
		for _, arg := range cmd.argv {
			if strings.HasSuffix(arg, "policy.toml") {
				if _, err := os.Stat(arg); err != nil {
					t.Error(err)
				}
				got = strings.ReplaceAll(got, arg, "POLICY")
			}
		}
		if got != c.want || cmd.stdin != c.stdin || cmd.argv[0] != filepath.Join(f.home, "bin", p.Binary) {
			t.Errorf("%s\ngot  %s < %q\nwant %s < %q", c.program, got, cmd.stdin, c.want, c.stdin)
		}
		cmd.remove()
	}
}

// A value that looks like a placeholder stays what it is, and an option without a value is left out.
func TestFill(t *testing.T) {
	vars := map[string]string{"{id}": "{model}", "{gitdir}": "/g"}
	for _, c := range []struct{ part, want []string }{
		{[]string{"--resume", "{id}"}, []string{"--resume", "{model}"}},
		{[]string{"-m", "{model}"}, nil},
		{[]string{"a", "", "--add-dir", "{gitdir}", "", "--add-dir", "{commondir}/x"}, []string{"a", "--add-dir", "/g"}},
		{nil, nil},
	} {
		if got := fill(c.part, vars); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: got %v", c.part, got)
		}
	}
}

func TestPromptsAreNotCommands(t *testing.T) {
	for _, c := range []struct{ program, prompt, want string }{
		{"claude", "/clear", "Task:\n\n/clear"},
		{"claude", "  /clear", "Task:\n\n  /clear"},
		{"claude", "a /b mail@host (@x)", "a /b mail@host (@x)"},
		{"claude", "@f and\n@g", `\@f and` + "\n" + `\@g` + atNote},
		{"gemini", "see @f a@b", `see \@f a\@b` + atNote},
		{"gemini", `see \@f`, `see \@f`},
		{"gemini", "/quit", "Task:\n\n/quit"},
		{"codex", "/x @y", "/x @y"},
		{"opencode", "/x @y", "/x @y"},
	} {
		p, _ := ByName(c.program)
		if got := p.prompt(&Turn{Prompt: c.prompt}); got != c.want {
			t.Errorf("%s %q: got %q", c.program, c.prompt, got)
		}
	}
}

// A system prompt that is too long for an argument goes in front of the prompt.
func TestLongSystemPrompt(t *testing.T) {
	p, _ := ByName("claude")
	f := newFake(t)
	turn := f.turn("the prompt", Ref{ID: p.NewID()})
	turn.System = strings.Repeat("long ", maxArg)
	if out := f.run(p, turn); out.How != Completed {
		t.Fatalf("%+v", out)
	}
	if r := f.runs()[0]; r.System != "" || !strings.HasPrefix(r.Prompt, "long ") || !strings.HasSuffix(r.Prompt, "the prompt") {
		t.Errorf("system of %d, prompt of %d characters", len(r.System), len(r.Prompt))
	}
}

func TestScrubEnv(t *testing.T) {
	got := ScrubEnv([]string{"PATH=/bin", "A=1", "A=2", "TILTH_API_KEY=k", "TILTH_EVALUATOR_API_KEY=k", "TILTH_SESSIONS_DIR=/s", "CLAUDECODE=1", "CODEX_THREAD_ID=x",
		"COPY=Bearer the-secret", "ANTHROPIC_API_KEY=the-secret", "nonsense", "EMPTY="}, "the-secret", "")
	want := []string{"A=2", "ANTHROPIC_API_KEY=the-secret", "DISABLE_AUTOUPDATER=1", "EMPTY=", "NO_COLOR=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "PATH=/bin", "TILTH_SESSIONS_DIR=/s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if again := ScrubEnv(got); !slices.Equal(again, got) {
		t.Errorf("scrubbed twice: %q", again)
	}
}

func TestLookIn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("prog", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, ok := lookIn([]string{"PATH=.::relative"}, "prog"); ok {
		t.Errorf("found %s by a relative entry of PATH", path)
	}
	if path, ok := lookIn([]string{"PATH=" + dir}, "prog"); !ok || path != filepath.Join(dir, "prog") {
		t.Errorf("got %s", path)
	}
}
