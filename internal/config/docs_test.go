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
setting with its value and its origin. A session uses the settings of its repository, whichever directory a command is typed in. The
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

With ` + "`tilth.capMode` = `strict`" + ` (` + "`--strict-caps`" + `) a model call that could pass the session's token or dollar cap is not made: the task stays
pending with its work in the worktree, and the run stops as at that cap (exit 5). What a call can take is its prompt, with no more
tokens than bytes, and ` + "`tilth.maxAnswerTokens`" + `, which is sent as max_tokens. A dollar cap needs prices: those of the endpoint's list of
models, or ` + "`git config tilth.price.<model> '3 15'`" + `, the dollars for a million tokens of prompt and of answer (` + "`tilth.price.<model>.usd`" + ` for
a name with a slash or a dot). An attempt that broke off without saying what it took counts as the most it can have taken until the run
ends. Agent programs make their calls themselves: strict caps refuse them. An interview is not held to the caps.

Agent programs of your own are described with ` + "`tilth.agent.<name>.*`" + `, see [agents.md](agents.md). Lifecycle hooks are described in
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
