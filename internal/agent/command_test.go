package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/proc"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// The command lines, as they were seen to work.
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
		{"gemini", Ref{ID: id}, false, false, "-o stream-json --skip-trust --approval-mode yolo -m m --session-id " +
			id, "s\n\np"},
		{"gemini", Ref{ID: id, Resume: true}, true, true,
			"-o stream-json --approval-mode default --policy POLICY --resume " + id, "p"},
		{"opencode", Ref{}, false, false, "run --format json --print-logs -m m", "s\n\np"},
		{"opencode", Ref{ID: "ses_1", Resume: true}, true, true, "run --format json --print-logs --session ses_1",
			"The working tree that this is about is DIR. Name its files by their absolute paths.\n\np"},
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
		for _, arg := range cmd.Argv {
			if strings.HasSuffix(arg, "policy.toml") {
				if _, err := os.Stat(arg); err != nil {
					t.Error(err)
				}
				got = strings.ReplaceAll(got, arg, "POLICY")
			}
		}
		if got != c.want || stdin != c.stdin || cmd.Argv[0] != filepath.Join(f.home, "bin", p.Binary) {
			t.Errorf("%s\ngot  %s < %q\nwant %s < %q", c.program, got, stdin, c.want, c.stdin)
		}
		remove()
	}
}

// A program that judges gets nothing from the tree but what it reads there by itself. What each of these makes of it
// is in testdata/agents, with the real programs.
func TestJudgesTakeNothingFromTheTree(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t)
		settings := filepath.Join(f.home, ".gemini", "settings.json")
		if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
			t.Fatal(err)
		}
		theirs := `{"security": {"auth": {"selectedType": "x"}, "folderTrust": {"enabled": true}}}`
		for path, text := range map[string]string{
			settings: theirs, filepath.Join(f.home, ".gemini", "oauth_creds.json"): "{}"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		turn := f.turn("judge", Ref{ID: p.NewID()})
		turn.ReadOnly, turn.Private = true, filepath.Join(f.home, "private")
		cmd, remove, err := p.build(&turn)
		if err != nil {
			t.Fatal(err)
		}
		if (cmd.Dir == f.dir) == p.judgesFromOutside {
			t.Errorf("it is started in %s", cmd.Dir)
		}
		if p.Name == "gemini" {
			home := filepath.Join(proc.Getenv(cmd.Env, "GEMINI_CLI_HOME"), ".gemini")
			data, err := os.ReadFile(filepath.Join(home, "settings.json"))
			want := `{"security":{"auth":{"selectedType":"x"},"folderTrust":{"enabled":false}}}`
			if string(data) != want || proc.Getenv(cmd.Env, "GEMINI_CLI_TRUST_WORKSPACE") != "false" {
				t.Errorf("settings %s (%v)", data, err)
			}
			if _, err := os.Stat(filepath.Join(home, "oauth_creds.json")); err != nil {
				t.Error(err)
			}
		}
		remove()
		if _, err := os.Stat(turn.Private); !os.IsNotExist(err) {
			t.Errorf("its files are still there (%v)", err)
		}
	})
}

// A value that looks like a placeholder stays what it is, and an option without a value is left out.
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
		{"gemini", "see @f a@b", `see \@f a\@b` + atNote},
		{"gemini", `see \@f`, `see \@f`},
		{"gemini", "/quit", "Task:\n\n/quit"},
		{"codex", "/x @y", "/x @y"},
		{"opencode", "/x @y", "/x @y"},
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

// A system prompt that is too long for an argument goes in front of the prompt.
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
	if own := append(got, environ[1]); !slices.Contains(ScrubEnv(own), environ[1]) {
		t.Error("a program does not find the lane that it is started in")
	}
}

// Within our sandbox Codex cannot start its own, without which it runs no command.
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

// An agent by ACP judges a tree in which it is not opened: its row says how it may read there, and only read.
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
		if !strings.Contains(got, want) || strings.Contains(got, "GEMINI_CLI_HOME") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
