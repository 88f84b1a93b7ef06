package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSettingsAreDocumented keeps docs/settings.md equal to the table. TILTH_WRITE_DOCS=1 writes it.
func TestSettingsAreDocumented(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "settings.md")
	want := settingsPage()
	if os.Getenv("TILTH_WRITE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says; TILTH_WRITE_DOCS=1 go test ./internal/config writes it", path)
	}
}

func settingsPage() string {
	var b strings.Builder
	b.WriteString(`# Settings

Precedence: flag, environment, git config, default. An empty value means the default, and 0 turns a cap off. Whole numbers take the
suffixes k, m and g. An invalid value or an unknown tilth.* key is refused before anything starts. ` + "`git tilth config`" + ` shows every
setting with its value and its origin. A session always uses the settings of its repository, also for a command typed elsewhere. The
` + "`config.worktree`" + ` of a linked worktree applies to commands typed in it; that of a session's worktree is ignored.

`)
	first := []string{"tilth.worker.agent", "tilth.worker.model", "tilth.baseUrl", "tilth.apiKey",
		"tilth.evaluator.model", "tilth.maxWallClockMinutes",
		"tilth.maxTokens", "tilth.maxCost", "tilth.onFailure", "tilth.validator",
		"tilth.setup", "tilth.commitSubject"}
	row := map[string]Setting{}
	for _, s := range settings {
		row[s.Name] = s
	}
	b.WriteString("The twelve most used:\n\n" + settingsHead)
	for _, name := range first {
		b.WriteString(settingsRow(row[name]))
	}
	b.WriteString("\nThe rest:\n\n" + settingsHead)
	for _, s := range settings {
		if !slices.Contains(first, s.Name) {
			b.WriteString(settingsRow(s))
		}
	}
	b.WriteString(`
API keys are never read from git config. They come from the environment, or from ` + "`git credential`" + ` for the endpoint's URL, and are sent
only to that host.

Tokens, dollars and wall clock are checked before every model call and every turn of an agent program. At a cap the run stops (exit 5), and
the task stays pending with its work in its worktree. One call, or one turn of a program without a limit, can therefore exceed a cap (one
for each lane). Claude Code gets the rest of the dollars as its own limit. If the endpoint reports no cost for a call, git-tilth uses the
price in the endpoint's list of models, or in ` + "`git config tilth.price.<model> '3 15'`" + `: dollars per million tokens of prompt and of
answer (` + "`tilth.price.<model>.usd`" + ` for a name with a slash or a dot). The caps do not apply to an interview.

Describe your own agent programs with ` + "`tilth.agent.<name>.*`" + `, see [agents.md](agents.md). For lifecycle hooks, see
[hooks.md](hooks.md).
`)
	return b.String()
}

const settingsHead = "| git config | environment | flag | default | meaning |\n|---|---|---|---|---|\n"

func settingsRow(s Setting) string {
	key := "`" + s.Name + "`"
	if s.envOnly {
		key = "-"
	}
	cell := func(text, pre string) string {
		if text == "" {
			return ""
		}
		return "`" + pre + text + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", key, cell(s.Env, ""), cell(s.Flag, "--"), cell(s.Default, ""),
		s.Help)
}

// TestSettingsNameTheirValues expects the description of a setting to name each value that it takes.
func TestSettingsNameTheirValues(t *testing.T) {
	for _, s := range settings {
		for _, value := range s.values {
			if !strings.Contains(s.Help, value) {
				t.Errorf("%s does not name its value %s", s.Name, value)
			}
		}
	}
}
