package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The key variable that a program's settings name is kept for that program only.
func TestKeysOfItsSettings(t *testing.T) {
	home := t.TempDir()
	for file, text := range map[string]string{
		".codex/config.toml": "[model_providers.own]\nenv_key = \"OWN_API_KEY\" # not OTHER_API_KEY\n" +
			"# env_key = \"OLD_API_KEY\"\n[mcp_servers]\nx = { bearer_token_env_var = 'MCP_TOKEN' }\n",
		".config/opencode/opencode.json": `{"provider":{"own":{"options":{"apiKey":"{env:OWN_API_KEY}"}}}}`,
	} {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"HOME=" + home, "OWN_API_KEY=k", "OLD_API_KEY=k", "OTHER_API_KEY=k", "MCP_TOKEN=k"}
	for _, c := range []struct {
		p    *Program
		want []string
	}{{codex(), []string{"MCP_TOKEN=k", "OWN_API_KEY=k"}}, {opencode(), []string{"OWN_API_KEY=k"}}, {claude(), nil}} {
		var got []string
		for _, entry := range c.p.Environ(environ, nil) {
			if slices.Contains(environ[1:], entry) {
				got = append(got, entry)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s keeps %v", c.p.Name, got)
		}
	}
}
