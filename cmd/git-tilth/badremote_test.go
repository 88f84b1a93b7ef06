package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// moods are the remote's behaviours, one from each task's work on.
var moods = []string{"cut", "ok", "full", "refuse", "drip", "lost", "gone", "ok"}

// TestABadRemoteByHTTP runs a session with a remote that cuts off pushes, is full, refuses, answers a few bytes at a
// time, loses its answers and disappears: the run continues, prints each problem once, and pushes later.
func TestABadRemoteByHTTP(t *testing.T) {
	t.Parallel()
	home := newPlace(t)
	dir := filepath.Dir(home.repo)
	remote := filepath.Join(dir, "remote.git")
	home.git("init", "-q", "--bare", remote)
	home.git("-C", remote, "config", "http.receivepack", "true")
	server := moodyGit(t, dir)
	home.git("remote", "add", "origin", server+"/remote.git")
	home.git("push", "-q", "origin", "HEAD")
	home.git("clone", "-q", server+"/remote.git", "../away")
	// A worker changes the remote; the sandbox is off for that.
	home.env = append(home.env, "TILTH_SANDBOX=off", "TILTH_PROVIDER_ATTEMPTS=1")
	model := writes()
	var names []string
	for i, mood := range moods {
		name := fmt.Sprintf("%d-%s", i, mood)
		names = append(names, name)
		model.Worker = append(model.Worker, scripted.Step{WhenLast: scripted.Strings{"Write " + name},
			Tools: []scripted.Tool{
				{Name: "bash", Args: fmt.Appendf(nil, `{"command": "echo %s >>file; echo %s >../../../mood"}`, name, mood)},
				{Name: "submit_case", Args: []byte(`{"summary": "wrote it"}`)}}})
	}
	home.model(model)
	home.tasks("../tasks.json", "", names...)
	home.git("tilth", "prep", "--from", "../tasks.json")
	id := home.newest().ID
	home.git("tilth", "push")
	out, code := home.try("git", "tilth", "run")
	if code != 0 || strings.Count(out, "cannot be pushed now, retrying later") != 3 ||
		strings.Count(out, "can be pushed again") != 3 || strings.Contains(out, "could not be pushed at its end") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	home.git("-C", remote, "fsck", "--connectivity-only", "--no-dangling")

	away := *home
	away.repo = filepath.Join(dir, "away")
	away.store.Root = filepath.Join(dir, "away-sessions")
	away.env = append(home.env[:len(home.env):len(home.env)], "TILTH_SESSIONS_DIR="+away.store.Root)
	if out := away.git("tilth", "list", "--remote"); !strings.Contains(out, id+"  all_done  8/8  free") {
		t.Errorf("list --remote: %s", out)
	}
	away.git("tilth", "fetch", id)
	away.git("tilth", "verify")
	if file := away.git("show", "session/"+id+":file"); file != strings.Join(names, "\n") {
		t.Errorf("the work there: %s", file)
	}
}

// moodyGit serves the bare repositories in a directory, according to the file mood in it at each request.
func moodyGit(t *testing.T, dir string) string {
	backend := gitBackend(t, dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, _ := os.ReadFile(filepath.Join(dir, "mood"))
		mood := strings.TrimSpace(string(said))
		pushes := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
		switch {
		case mood == "gone":
			panic(http.ErrAbortHandler)
		case mood == "refuse" && strings.Contains(r.URL.String(), "git-receive-pack"):
			http.Error(w, "no more today", http.StatusForbidden)
		case mood == "full" && pushes:
			http.Error(w, "the quota is used up", http.StatusInsufficientStorage)
		case mood == "cut" && pushes:
			// Git's server gets only the beginning. With a length that never arrives it would wait for ever.
			r.Body, r.ContentLength = io.NopCloser(io.LimitReader(r.Body, 400)), 400
			backend.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case mood == "lost" && pushes:
			backend.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case mood == "drip":
			backend.ServeHTTP(dripping{w}, r)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// dripping answers a few bytes at a time.
type dripping struct{ http.ResponseWriter }

func (d dripping) Write(p []byte) (n int, err error) {
	out := http.NewResponseController(d.ResponseWriter)
	for n < len(p) && err == nil {
		var m int
		if m, err = d.ResponseWriter.Write(p[n:min(n+16, len(p))]); err == nil {
			err = out.Flush()
		}
		n += m
	}
	return n, err
}
