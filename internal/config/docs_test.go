package config

import (
	"fmt"
	"os"
	"path/filepath"
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

A value is looked for in this order: flag, environment, git config, default. An empty value is the default; 0 switches a cap off;
whole numbers take k, m and g. Garbage and unknown tilth.* keys are refused before anything starts. ` + "`git tilth config`" + ` shows every
setting with its value and where it comes from.

| git config | environment | flag | default | meaning |
|---|---|---|---|---|
`)
	for _, s := range settings {
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
		help := s.Help
		if s.kind == kindList {
			help += " (repeatable)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", key, cell(s.Env, ""), cell(s.Flag, "--"), cell(s.Default, ""), strings.TrimSuffix(help, "; repeatable (repeatable)"))
	}
	b.WriteString(`
Keys are never read from git config: they come from the environment, or from ` + "`git credential`" + ` for the endpoint's URL. A key is sent only
to the host that it was given for.

Agent programs of your own are described with ` + "`tilth.agent.<name>.*`" + `, see [agents.md](agents.md). Lifecycle hooks are described in
[hooks.md](hooks.md).
`)
	return b.String()
}
