package gitx

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/config"
)

// TestLocalVarsAreDropped asks the installed git which variables are local.
func TestLocalVarsAreDropped(t *testing.T) {
	out, err := exec.Command("git", "rev-parse", "--local-env-vars").Output()
	must(t, err)
	for _, name := range strings.Fields(string(out)) {
		kept := slices.Contains(newEnvironment([]string{name + "=x"}).plain, name+"=x")
		equal(t, name+" kept", kept, name == "GIT_CONFIG_PARAMETERS" || name == "GIT_CONFIG_COUNT")
	}
}

// Hooks and filters of the harness's git get no setting of git-tilth.
func TestSettingsAreDropped(t *testing.T) {
	env := newEnvironment([]string{"TILTH_BASE_URL=http://localhost/v1", "TILTH_WORKER_MODEL=m", "TILTH_FUTURE=x",
		"TILTH_INSIDE=s", "TILTH_SESSIONS_DIR=/s"})
	for _, env := range [][]string{env.own, env.hooks, env.plain} {
		var kept []string
		for _, entry := range env {
			if strings.HasPrefix(entry, "TILTH_") {
				kept = append(kept, entry)
			}
		}
		equal(t, "kept", strings.Join(kept, " "), "TILTH_INSIDE=s TILTH_SESSIONS_DIR=/s")
	}
}

// leaks are the variables that git exports to a hook of the user's repository.
func (w *world) leaks() []string {
	return []string{
		"GIT_DIR=" + w.common, "GIT_WORK_TREE=" + w.repo, "GIT_INDEX_FILE=" + filepath.Join(w.common, "index"),
		"GIT_COMMON_DIR=" + w.common, "GIT_PREFIX=sub/", "GIT_OBJECT_DIRECTORY=" + filepath.Join(w.common, "objects"),
		"GIT_LITERAL_PATHSPECS=1", "GIT_EXTERNAL_DIFF=false", "GIT_REFLOG_ACTION=rebase",
		"GIT_QUARANTINE_PATH=/nowhere",
	}
}

func TestLeakedVariablesDoNotSteer(t *testing.T) {
	w := newWorld(t)
	write(t, w.repo, "a.txt", "the user's change\n")
	w.sh(w.repo, "add", "-A")
	userHead, userIndex := w.sh(w.repo, "rev-parse", "HEAD"), read(t, w.common, "index")
	w.restart(w.leaks()...)

	write(t, w.path, "a.txt", "changed\n", "b.txt", "b\n")
	tree, _ := w.stage()
	sha, _, err := w.commit(ctx, w.wt(), "T-001: x", false)
	must(t, err)
	equal(t, "tree", w.sh(w.repo, "rev-parse", sha+"^{tree}"), tree)
	patch, _, err := w.git.Diff(ctx, w.common, w.base, tree, 0)
	must(t, err)
	if !strings.Contains(string(patch), "+changed") {
		t.Errorf("patch: %s", patch)
	}
	must(t, rewind(w.git, w.wt(), w.base))
	equal(t, "branch", w.sh(w.repo, "rev-parse", branch), w.base)
	equal(t, "user's HEAD", w.sh(w.repo, "rev-parse", "HEAD"), userHead)
	equal(t, "user's index", read(t, w.common, "index"), userIndex)
	equal(t, "user's file", read(t, w.repo, "a.txt"), "the user's change\n")
}

func TestEnvironOfChildren(t *testing.T) {
	w := newWorld(t)
	w.restart(w.leaks()...)
	cmd := exec.Command("git", "commit", "-q", "--allow-empty", "-m", "the worker's")
	cmd.Dir = w.path
	cmd.Env = w.git.Environ(ctx, w.path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	equal(t, "user's HEAD", w.sh(w.repo, "rev-parse", "HEAD"), w.base)
	workers, err := w.git.WorkerCommits(ctx, w.common, branch)
	must(t, err)
	tip := w.sh(w.repo, "rev-parse", branch)
	equal(t, "worker's commit marked", workers[tip], true)
	equal(t, "base marked", workers[w.base], false)

	own, err := w.git.CommitTree(ctx, w.wt(), TreeCommit{
		Tree:    w.sh(w.repo, "rev-parse", tip+"^{tree}"),
		Parent:  tip,
		Message: "FAILED (iter_cap): T-001 x\n",
		Reflog:  "tilth: placeholder",
	})
	must(t, err)
	workers, err = w.git.WorkerCommits(ctx, w.common, branch)
	must(t, err)
	equal(t, "placeholder marked", workers[own], false)
}

func TestEnvironDoesNotClimb(t *testing.T) {
	// A plain directory in the place of the worktree, inside of a repository.
	w := newWorld(t)
	plain := filepath.Join(w.repo, "sub", "workspace")
	write(t, plain, "x.txt", "x\n")
	cmd := exec.Command("git", "rev-parse", "--show-toplevel")
	cmd.Dir = plain
	cmd.Env = w.git.Environ(ctx, plain)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("git works in %s", out)
	}
}

func TestCommandLineConfigIsKept(t *testing.T) {
	w := newWorld(t)
	for _, env := range [][]string{
		{"GIT_CONFIG_PARAMETERS='tilth.maxcost'='5' 'tilth.apikey'='k-1'"},
		{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=tilth.maxcost", "GIT_CONFIG_VALUE_0=5",
			"GIT_CONFIG_KEY_1=tilth.apikey", "GIT_CONFIG_VALUE_1=k-1"},
	} {
		w.restart(env...)
		entries, err := w.git.ConfigList(ctx, w.common)
		must(t, err)
		for key, value := range map[string]string{"tilth.maxcost": "5", "tilth.apikey": "k-1"} {
			want := config.Entry{Key: key, Value: value, Origin: "command line:", Scope: "command"}
			if !slices.Contains(entries, want) {
				t.Errorf("%v: %s is not in %v", env, key, entries)
			}
		}
		for _, e := range entries {
			if e.Key == "gc.auto" {
				t.Error("the harness's own settings are listed as the user's")
			}
		}
		// The harness's own settings outrank the user's.
		w.restart("GIT_CONFIG_PARAMETERS='commit.gpgsign'='true' 'gpg.program'='false'")
		_, _, err = w.commit(ctx, w.wt(), "unsigned", false)
		must(t, err)
	}
}

func TestNothingAsks(t *testing.T) {
	w := newWorld(t)
	env := w.git.Environ(ctx, w.path)
	for _, want := range []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_PAGER=cat", "GCM_INTERACTIVE=never",
		"SSH_ASKPASS_REQUIRE=force"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in the environment of children", want)
		}
	}
	if slices.Contains(env, "LC_ALL=C") {
		t.Error("children lose the user's locale")
	}
	// A helper that would ask is never reached, and git does not ask itself.
	w.sh(w.home, "config", "--global", "core.askPass", "/bin/echo asked")
	w.restart()
	if out, err := w.fill("https://example.invalid/x"); err == nil {
		t.Errorf("a password out of nowhere: %s", out)
	}
}

func TestEditor(t *testing.T) {
	w := newWorld(t)
	w.sh(w.home, "config", "--global", "core.editor", "printf '%s' edited >")
	for want, environ := range map[string][]string{
		"printf '%s' edited >": w.environ, "mine": with(w.environ, "GIT_EDITOR=mine"),
	} {
		c := InRepo(w.common, "var", "GIT_EDITOR")
		c.Environ = environ
		name, err := w.git.Line(ctx, c)
		must(t, err)
		equal(t, "editor", name, want)
	}
}

// TestNoKeyReachesGit: neither hooks nor filters get a credential; a credential helper keeps its environment.
func TestNoKeyReachesGit(t *testing.T) {
	w := newWorld(t)
	w.restart("TILTH_API_KEY=k-1", "TILTH_EVALUATOR_API_KEY=k-2", "X_TOKEN=k-3", "X_SECRET=k-4", "SSH_AUTH_SOCK=k-5")
	seen := filepath.Join(w.home, "seen")
	write(t, w.common, "hooks/pre-commit", "#!/bin/sh\nenv >>"+seen+"\n")
	w.sh(w.repo, "config", "filter.f.clean", "env >>"+seen+"; cat")
	write(t, w.path, ".gitattributes", "* filter=f\n", "new", "x\n")
	w.stage()
	_, _, err := w.commit(ctx, w.wt(), "x", false)
	must(t, err)
	if env := read(t, seen); !strings.Contains(env, "HOME=") || strings.Contains(env, "k-") {
		t.Errorf("they saw:\n%s", env)
	}
	w.sh(w.home, "config", "--global", "credential.helper", `!f() { echo password=$TILTH_API_KEY; }; f`)
	out, err := w.fill("https://me@example.invalid")
	must(t, err)
	if !strings.Contains(out, "\npassword=k-1\n") {
		t.Errorf("the helper did not have the key: %s", out)
	}
}

// fill asks the credential helpers for a URL's password.
func (w *world) fill(url string) (string, error) {
	out, err := w.git.Read(ctx, Command{Dir: "/", Args: []string{"credential", "fill"}, Keys: true,
		Stdin: []byte("url=" + url + "\n\n")})
	return string(out), err
}
