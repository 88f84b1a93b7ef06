package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// rig is one real program, installed in a scratch directory, with a home directory and a stub of its API.
type rig struct {
	box     *sandbox.Box // sandbox of the program; nil if the system has none
	program *agent.Program
	version string
	home    string
	env     []string
	stub    *stub
	model   string
	verbose bool
	chosen  *regexp.Regexp  // the checks to do, by name
	ctx     context.Context // ends the program that is running
}

// setup points a program to a stub: its API, its environment, and files in its home directory.
type setup struct {
	dialect dialect
	model   string
	env     func(url string) map[string]string
	files   func(url string) map[string]string
	forget  func(r *rig, id string) error // deletes the transcript of a conversation
	limit   func(reset time.Time) answer  // the API's answer at a usage limit
}

var setups = map[string]setup{
	"claude": {
		dialect: anthropic, model: "claude-sonnet-4-5",
		env: func(url string) map[string]string {
			return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "stub-key",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
		},
		forget: forgetFiles(".claude/projects/*/{id}*"),
		limit:  anthropicLimit,
	},
	"codex": {
		dialect: responses, model: "gpt-5",
		env: func(url string) map[string]string { return map[string]string{"STUB_KEY": "stub-key"} },
		files: func(url string) map[string]string {
			return map[string]string{
				".codex/config.toml": fmt.Sprintf(
					"model = \"gpt-5\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\n"+
						"base_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\nrequest_max_retries "+
						"= 0\nstream_max_retries = 0\n", url)}
		},
		forget: forgetFiles(".codex/sessions/*/*/*/*{id}*"),
		limit:  openAILimit,
	},
	"gemini": {
		dialect: generative,
		env: func(url string) map[string]string {
			return map[string]string{"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "stub-key",
				"GEMINI_TELEMETRY_ENABLED": "false"}
		},
		files: func(string) map[string]string {
			return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`}
		},
	},
	"opencode": {
		dialect: completions,
		env:     func(string) map[string]string { return map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1"} },
		files: func(url string) map[string]string {
			return map[string]string{".config/opencode/opencode.json": fmt.Sprintf(`{"autoupdate":false,"provider":{"stub":{"npm":"@ai-sdk/openai-compatible",`+
				`"name":"stub","options":{"baseURL":"%s/v1","apiKey":"stub-key"},"models":{"stub":{"name":"stub","tool_call":true,`+
				`"limit":{"context":200000,"output":8000}}}}},"model":"stub/stub"}`, url)}
		},
	},
	"qwen": {
		dialect: completions,
		env: func(url string) map[string]string {
			return map[string]string{"OPENAI_BASE_URL": url + "/v1", "OPENAI_API_KEY": "stub-key",
				"OPENAI_MODEL": "stub"}
		},
		files: func(string) map[string]string {
			return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}}}`}
		},
	},
	"copilot": {
		dialect: completions,
		env: func(url string) map[string]string {
			return map[string]string{"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": url + "/v1",
				"COPILOT_PROVIDER_API_KEY": "stub-key", "COPILOT_MODEL": "stub"}
		},
	},
}

// newRig installs a program, and creates its home and stub.
func newRig(name, scratch, version string, byACP bool) (*rig, error) {
	var set map[string]string
	if byACP {
		set = map[string]string{"acp": "true"}
	}
	return rigOf(name, scratch, version, set)
}

func rigOf(name, scratch, version string, keys map[string]string) (*rig, error) {
	p, err := agent.Named(name, keys)
	if err != nil {
		return nil, err
	}
	bin, err := install(p, scratch, version)
	if err != nil {
		return nil, err
	}
	p.Binary = bin
	set := setups[name]
	r := &rig{program: p, stub: startStub(set.dialect), model: set.model}
	if p.SpeaksACP() {
		r.model = "" // an agent's list of models differs from the API's names
	}
	if r.home, err = os.MkdirTemp("", "git-tilth-"+name+"-"); err != nil {
		return nil, err
	}
	// macOS and some Linux systems have a link in the name of the temporary directory.
	if r.home, err = filepath.EvalSymlinks(r.home); err != nil {
		return nil, err
	}
	vars := set.env(r.stub.URL)
	vars["HOME"], vars["PATH"] = r.home, os.Getenv("PATH")
	vars["NO_PROXY"], vars["no_proxy"], vars["TERM"] = "127.0.0.1,localhost", "127.0.0.1,localhost", "dumb"
	for k, v := range vars {
		r.env = append(r.env, k+"="+v)
	}
	if sandbox.Probe().Err == nil {
		temp := filepath.Join(r.home, "tmp")
		if err := os.Mkdir(temp, 0o700); err != nil {
			return nil, err
		}
		none := func(string) bool { return false }
		r.box = sandbox.Default(sandbox.Config{Getenv: func(name string) string { return vars[name] }, Installed: none,
			Root: filepath.Join(r.home, "sessions"), Read: []string{scratch}}).In(temp)
	}
	if set.files == nil {
		return r, r.ask()
	}
	if err := writeFiles(r.home, set.files(r.stub.URL)); err != nil {
		return nil, err
	}
	return r, r.ask()
}

// ask learns the program's version.
func (r *rig) ask() error {
	if r.program.SpeaksACP() {
		info, err := r.program.Initialize(context.Background(), r.env, nil)
		r.version = strings.TrimSpace(info.Name + " " + info.Version + ", resumes by " + info.Resume)
		return err
	}
	cmd := exec.Command(r.program.Binary, "--version")
	cmd.Env = r.env
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", r.program.Binary, err)
	}
	r.version = strings.TrimSpace(string(out))
	return nil
}

func (r *rig) close() {
	r.stub.CloseClientConnections()
	r.stub.Close()
	os.RemoveAll(r.home)
}

// install installs the program's npm package into scratch, unless it is installed.
func install(p *agent.Program, scratch, version string) (string, error) {
	prefix := filepath.Join(scratch, p.Name+"-"+version)
	bin := filepath.Join(prefix, "node_modules", ".bin", p.Binary)
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(prefix, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("npm", "install", "--prefix", prefix, "--no-audit", "--no-fund", "--no-save",
		p.Package+"@"+version).CombinedOutput()
	if err != nil {
		os.RemoveAll(prefix)
		return "", fmt.Errorf("npm install %s@%s: %w\n%s", p.Package, version, err, lastLines(string(out), 5))
	}
	return bin, nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// forgetFiles deletes the files below the home directory that match a pattern.
func forgetFiles(pattern string) func(*rig, string) error {
	return func(r *rig, id string) error {
		p := strings.ReplaceAll(pattern, "{id}", id)
		found, err := filepath.Glob(filepath.Join(r.home, p))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("no transcript at %s", p)
		}
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
		return nil
	}
}
