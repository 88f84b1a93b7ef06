package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// TestASessionTravelsByHTTP moves a session over a remote with a login to another user's machine with other settings,
// and continues it there. The commits are the same as at home.
func TestASessionTravelsByHTTP(t *testing.T) {
	t.Parallel()
	home := newPlace(t)
	dir := filepath.Dir(home.repo)
	home.git("init", "-q", "--bare", filepath.Join(dir, "remote.git"))
	home.git("-C", filepath.Join(dir, "remote.git"), "config", "http.receivepack", "true")
	remote := serveGit(t, dir)
	home.git("remote", "add", "origin", remote+"/remote.git")
	home.git("config", "credential.helper", "!echo username=me; echo password=open-sesame; :")
	home.env = append(home.env, "TILTH_SANDBOX=off",
		"GIT_AUTHOR_DATE=2026-06-11T22:04:10Z", "GIT_COMMITTER_DATE=2026-06-11T22:04:10Z", "GIT_AUTHOR_NAME=Night",
		"GIT_COMMITTER_NAME=Night", "GIT_AUTHOR_EMAIL=n@example.com", "GIT_COMMITTER_EMAIL=n@example.com")
	home.model(writes("a", "b", "c"))
	home.git("push", "-q", "origin", "HEAD")
	home.tasks("../tasks.json", "here", "a", "b", "c")
	home.git("tilth", "prep", "--from", "../tasks.json")
	id := home.newest().ID
	if out, code := home.try("git", "tilth", "run", "--max-tokens", "200"); code != exitCap {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	home.write("../sessions/"+id+"/workspace/half.txt", "half\n")
	home.git("init", "-q", "--bare", "../before.git")
	home.git("tilth", "push", "--remote", "../before.git")
	home.git("tilth", "push", "--remote", "origin")

	// Another user's machine: other paths, another name, and settings that change git's behaviour and output.
	away := *home
	away.repo = filepath.Join(dir, "elsewhere", "a clone")
	away.store.Root = filepath.Join(dir, "elsewhere", "sessions")
	away.env = append(home.env[:len(home.env):len(home.env)], "HOME="+filepath.Join(dir, "elsewhere"),
		"TILTH_SESSIONS_DIR="+away.store.Root)
	home.write("../elsewhere/.gitconfig", `[user]
	name = Somebody Else
	email = else@example.com
[credential]
	helper = "!echo username=me; echo password=open-sesame; :"
[color]
	ui = always
[core]
	quotePath = false
	autocrlf = input
	abbrev = 40
[diff]
	noprefix = true
	mnemonicPrefix = true
	renames = copies
[status]
	showUntrackedFiles = no
[fetch]
	prune = true
	pruneTags = true
	writeCommitGraph = true
	output = compact
	all = true
[push]
	default = nothing
	followTags = true
	autoSetupRemote = true
[remote]
	pushDefault = nowhere
[transfer]
	fsckObjects = true
	hideRefs = refs/heads/session
[log]
	showSignature = true
	decorate = full
[pull]
	rebase = true
[gc]
	auto = 1
[index]
	version = 4
[protocol]
	version = 0
[advice]
	detachedHead = true
`)
	if out, code := home.try("git", "-c", "credential.helper=!echo username=me; echo password=open-sesame; :",
		"clone", "-q", remote+"/remote.git", away.repo); code != 0 {
		t.Fatal(out)
	}
	before := away.git("for-each-ref", "--format=%(refname)")
	if out := away.git("tilth", "list", "--remote"); !strings.Contains(out, id+"  stopped (token_cap)  1/3  free") {
		t.Errorf("list --remote: %s", out)
	}
	away.git("tilth", "fetch", id)
	if b, err := os.ReadFile(filepath.Join(away.store.Root, id, "workspace/half.txt")); err != nil ||
		string(b) != "half\n" {
		t.Errorf("the uncommitted work is %q, %v", b, err)
	}
	away.git("tilth", "verify")
	out := away.git("tilth", "resume")
	if !strings.Contains(out, "all_done") {
		t.Errorf("resume: %s", out)
	}
	away.git("tilth", "verify")
	after := away.git("for-each-ref", "--format=%(refname)")
	if after != before+"\nrefs/heads/session/"+id && after != "refs/heads/main\nrefs/heads/session/"+id+
		strings.TrimPrefix(before, "refs/heads/main") {
		t.Errorf("refs:\n%s", after)
	}

	// At home it continues from its state there.
	if out, code := home.try("git", "tilth", "resume"); code != exitRefused ||
		!strings.Contains(out, "git tilth fetch "+id) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, code := home.try("git", "tilth", "fetch", id); code != 0 {
		t.Errorf("fetch: %s", out)
	}
	home.git("tilth", "verify")
	// A commit's message has a hash of the record with its times; everything else is the same on all machines.
	commits := func(p place) string {
		log := p.git("log", "--format=%an %ae %ad %cn %ce %cd %T%n%B", "session/"+id)
		return regexp.MustCompile(`(?m)^Tilth-Record: .*\n`).ReplaceAllString(log, "")
	}
	travelled := commits(away)
	if commits(*home) != travelled || !strings.Contains(travelled, "Tilth-Task: T-003") {
		t.Errorf("%s\n%s", commits(*home), travelled)
	}

	// A run at home from the state before the first push has the same result.
	for _, args := range [][]string{{"reset", "-y", id}, {"fetch", "--remote", "../before.git"}, {"resume", id}} {
		home.git(append([]string{"tilth"}, args...)...)
	}
	if stayed := commits(*home); stayed != travelled {
		t.Errorf("at home:\n%s\nelsewhere:\n%s", stayed, travelled)
	}

	// Without the password nothing starts, no prompt appears, and no password is shown.
	wrong := strings.Replace(remote, "http://", "http://me:wrong-guess@", 1)
	for _, args := range [][]string{{"push", "--remote", wrong + "/remote.git"},
		{"push", "-n", "--remote", wrong + "/x"}} {
		out, _ := home.try("git", append([]string{"-c", "credential.helper=", "tilth"}, args...)...)
		if strings.Contains(out, "wrong-guess") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

// serveGit serves the bare repositories in a directory with a password.
func serveGit(t *testing.T, dir string) string {
	backend := gitBackend(t, dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "open-sesame" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// gitBackend is git's own server for the bare repositories in a directory.
func gitBackend(t *testing.T, dir string) http.Handler {
	exe, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(exe)), "git-http-backend"), Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=me", "GIT_CONFIG_NOSYSTEM=1",
			"HOME=" + dir}}
}

// writes is a model that writes the file of any of these tasks.
func writes(names ...string) *scripted.Script {
	script := &scripted.Script{Evaluator: []scripted.Step{{Tools: []scripted.Tool{{Name: "submit_verdict",
		Args: []byte(`{"verdict": "accept"}`)}}, Repeat: -1}}}
	for _, name := range names {
		script.Worker = append(script.Worker, scripted.Step{Repeat: -1,
			WhenLast: scripted.Strings{"Write " + name + ".txt"}, Tools: []scripted.Tool{
				{Name: "write_file", Args: []byte(`{"path": "` + name + `.txt", "content": "` + name + `\n"}`)},
				{Name: "submit_case", Args: []byte(`{"summary": "wrote it"}`)}}})
	}
	return script
}

// tasks writes a task list that asks for these files.
func (p *place) tasks(path, where string, names ...string) {
	var list []map[string]any
	for i, name := range names {
		list = append(list, map[string]any{"id": fmt.Sprintf("T-%03d", i+1), "title": name,
			"description": "Write " + name + ".txt " + where, "acceptance_criteria": []string{"it is there"}})
	}
	data, err := json.Marshal(list)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(path, string(data))
}

// serveList returns the live page's list of sessions in a place.
func serveList(t *testing.T, at *place) []byte {
	t.Helper()
	serve := exec.Command("git-tilth", "visualize", "--serve", "--addr", "127.0.0.1:0")
	serve.Dir, serve.Env = at.repo, at.env
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill(); _ = serve.Wait() }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(live(url) + "sessions.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	rows, _ := io.ReadAll(answer.Body)
	return rows
}

// live is the list's place of a page that may be a session's.
func live(url string) string {
	list, _, _ := strings.Cut(strings.TrimSpace(url), "s/2")
	return list
}

// TestTheLiveListKnowsWhatWasTaken: the live page's list shows the same state of a session as git tilth list.
func TestTheLiveListKnowsWhatWasTaken(t *testing.T) {
	t.Parallel()
	home := newPlace(t)
	home.model(writes("a"))
	home.tasks("../tasks.json", "here", "a")
	home.git("tilth", "run", "--from", "../tasks.json")
	state := func() string { return gjson.GetBytes(serveList(t, home), "0.state").Str }
	was := state()
	home.git("tilth", "take")
	taken := state()
	home.git("tilth", "cleanse")
	if now := state(); was != "all_done" || taken != "taken" || now != "cleansed" {
		t.Errorf("done, taken, cleansed: %q, %q, %q", was, taken, now)
	}
}
