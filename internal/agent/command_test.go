package agent

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// The command lines that work with the real programs.
func TestCommandLines(t *testing.T) {
	const id = "c608d775-a1e6-44af-ad14-56c828dd876b"
	full := Turn{Prompt: "p", System: "s", Model: "m", MaxTurns: 7, MaxCost: 1.25,
		GitDir: "/g/worktrees/w", CommonDir: "/g"}
	for _, c := range []struct {
		program string
		ref     Ref
		ro      bool
		bare    bool
		want    string
		stdin   string
	}{
		{"claude", Ref{ID: id}, false, false,
			"-p --output-format stream-json --verbose --include-partial-messages --permission-mode acceptEdits " +
				"--allowedTools Bash " +
				"--disallowedTools EnterWorktree,ExitWorktree,CronCreate,ScheduleWakeup --model m --max-turns 7 " +
				"--max-budget-usd 1.25 --append-system-prompt s --session-id " + id, "p"},
		{"claude", Ref{ID: id, Resume: true}, true, true,
			"-p --output-format stream-json --verbose --include-partial-messages --permission-mode default --tools " +
				"Read,Glob,Grep " +
				"--strict-mcp-config --no-session-persistence --setting-sources user --resume " + id, "p"},
		{"codex", Ref{}, false, false, "exec --json --skip-git-repo-check -c check_for_update_on_startup=false -s " +
			"workspace-write --add-dir /g/worktrees/w --add-dir /g/objects --add-dir /g/refs --add-dir /g/logs -m m -",
			"s\n\np"},
		{"codex", Ref{ID: id, Resume: true}, false, true,
			"exec --json --skip-git-repo-check -c check_for_update_on_startup=false -s workspace-write resume " + id +
				" -", "p"},
		{"codex", Ref{}, true, true,
			"exec --json --skip-git-repo-check -c check_for_update_on_startup=false -s read-only --ephemeral " +
				"--ignore-rules " +
				`-c project_doc_max_bytes=0 -c projects={"DIR"={trust_level="untrusted"}} -c skills.include_instructions=false -`, "p"},
	} {
		f := newFake(t)
		p, _ := byName(c.program)
		turn := full
		if c.bare {
			turn = Turn{Prompt: "p"}
		}
		turn.Conversation, turn.ReadOnly, turn.Env, turn.Dir = c.ref, c.ro, f.env, f.dir
		cmd, remove, err := p.build(&turn)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(strings.Join(cmd.Argv[1:], " "), f.dir, "DIR")
		stdin := strings.ReplaceAll(p.prompt(&turn), f.dir, "DIR")
		if got != c.want || stdin != c.stdin || cmd.Argv[0] != filepath.Join(f.home, "bin", p.Binary) {
			t.Errorf("%s\ngot  %s < %q\nwant %s < %q", c.program, got, stdin, c.want, c.stdin)
		}
		remove()
	}
}

// A value that looks like a placeholder is not replaced, and an option without a value is left out.
func TestFill(t *testing.T) {
	vars := map[string]string{"{id}": "{gitdir}", "{gitdir}": "/g", "{model}": "", "{commondir}": ""}
	for _, c := range []struct{ part, want []string }{
		{[]string{"--resume", "{id}"}, []string{"--resume", "{gitdir}"}},
		{[]string{"-m", "{model}"}, nil},
		{[]string{"a", "--add-dir", "{gitdir}"}, []string{"a", "--add-dir", "/g"}},
		{[]string{"--add-dir", "{commondir}/x"}, nil},
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
		{"gemini", "/quit @f", "Task:\n\n/quit @f"},
		{"codex", "/x @y", "/x @y"},
	} {
		p, _ := byName(c.program)
		if got := p.prompt(&Turn{Prompt: c.prompt}); got != c.want {
			t.Errorf("%s %q: got %q", c.program, c.prompt, got)
		}
		if p = acpRowOf(p); c.program == "claude" && p.prompt(&Turn{Prompt: c.prompt}) != c.want {
			t.Errorf("%s by ACP is told %q", c.program, p.prompt(&Turn{Prompt: c.prompt}))
		}
	}
}

// A system prompt that is too long for an argument is put before the prompt.
func TestLongSystemPrompt(t *testing.T) {
	p, _ := byName("claude")
	f := newFake(t)
	turn := f.turn("the prompt", Ref{ID: p.NewID()})
	turn.System = strings.Repeat("long ", maxArg)
	if out := f.run(p, turn); out.How != Completed {
		t.Fatalf("%+v", out)
	}
	if r := f.runs()[0]; r.System != "" || !strings.HasPrefix(r.Prompt, "long ") ||
		!strings.HasSuffix(r.Prompt, "the prompt") {
		t.Errorf("system of %d, prompt of %d characters", len(r.System), len(r.Prompt))
	}
}

func TestScrubEnv(t *testing.T) {
	got := ScrubEnv([]string{"PATH=/bin", "A=1", "A=2", "TILTH_API_KEY=k", "TILTH_EVALUATOR_API_KEY=k",
		"TILTH_SESSIONS_DIR=/s", "CLAUDECODE=1", "CODEX_THREAD_ID=x", "NO_COLOR=", "ANTHROPIC_API_KEY=the-secret",
		"nonsense", "EMPTY="})
	want := []string{"A=2", "ANTHROPIC_API_KEY=the-secret", "DISABLE_AUTOUPDATER=1", "EMPTY=", "NO_COLOR=1",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "PATH=/bin", "TILTH_SESSIONS_DIR=/s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if again := ScrubEnv(got); !slices.Equal(again, got) {
		t.Errorf("scrubbed twice: %q", again)
	}
}

func TestToolEnvKeepsNoLane(t *testing.T) {
	environ := []string{"A=1", "TILTH_LANE_NUMBER=3", "TILTH_TASK=T-001"}
	got := ToolEnv(environ, []string{"TILTH_LANE_NUMBER", "TILTH_TASK"})
	if slices.Contains(got, environ[1]) || !slices.Contains(got, environ[2]) {
		t.Errorf("got %q", got)
	}
	if !slices.Contains(got, "CI=true") {
		t.Errorf("no CI: %q", got)
	}
	if own := ToolEnv([]string{"CI=false"}, nil); !slices.Contains(own, "CI=false") || slices.Contains(own, "CI=true") {
		t.Errorf("not the user's CI: %q", own)
	}
	if own := append(got, environ[1]); !slices.Contains(ScrubEnv(own), environ[1]) {
		t.Error("a program does not find the lane that it is started in")
	}
}

// In our sandbox Codex cannot start its own, without which it runs no command.
func TestCodexWithinASandbox(t *testing.T) {
	f := newFake(t)
	for _, readOnly := range []bool{false, true} {
		p, _ := byName("codex")
		turn := f.turn("p", Ref{})
		turn.Box, turn.ReadOnly = &sandbox.Box{}, readOnly
		cmd, remove, err := p.build(&turn)
		if err != nil {
			t.Fatal(err)
		}
		remove()
		got := strings.Join(cmd.Argv, " ")
		if !strings.Contains(got, " -s danger-full-access ") || strings.Count(got, " -s ") != 1 ||
			strings.Contains(got, "--add-dir") {
			t.Errorf("read-only %v: %s", readOnly, got)
		}
	}
}

// An ACP agent judges a tree outside of its directory. Its row has the options for read-only access.
func TestACPJudges(t *testing.T) {
	f := newFake(t)
	for name, want := range map[string]string{
		"gemini": "--include-directories " + f.dir, "opencode": `"external_directory":{"*":"deny","` + f.dir + `/*":"allow"}`,
		"claude": "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
	} {
		turn := f.turn("p", Ref{})
		turn.ReadOnly = true
		cmd, remove, err := byACPName(t, name, nil).build(&turn)
		if err != nil {
			t.Fatal(err)
		}
		remove()
		got := strings.Join(append(cmd.Argv, cmd.Env...), " ")
		if !strings.Contains(got, want) || cmd.Dir == f.dir {
			t.Errorf("%s in %s: %s", name, cmd.Dir, got)
		}
	}
}
