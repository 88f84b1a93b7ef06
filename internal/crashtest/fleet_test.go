//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// remotes serves the bare repositories of all worlds. Like another machine, it is not killed with a world's processes.
type remotes struct {
	*httptest.Server
	mu   sync.Mutex
	open map[net.Conn]chan struct{}
}

func serveRemotes() (*remotes, error) {
	exe, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	backend := filepath.Join(strings.TrimSpace(string(exe)), "git-http-backend")
	r := &remotes{open: map[net.Conn]chan struct{}{}}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/" {
			serveGit(backend, w, req)
		}
	}))
	r.Config.ConnState = r.connState
	r.Start()
	return r, nil
}

// serveGit answers one request, and returns when its last process has ended. git-http-backend dies with its client;
// its children may not.
func serveGit(backend string, w http.ResponseWriter, req *http.Request) {
	held, inherited, err := os.Pipe()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer held.Close()
	h := cgi.Handler{Path: backend, Stderr: inherited,
		Env: []string{"GIT_PROJECT_ROOT=/", "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nowhere"}}
	said := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, held)
		close(said)
	}()
	h.ServeHTTP(w, req)
	_ = inherited.Close()
	<-said
}

func (r *remotes) connState(c net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch state {
	case http.StateNew:
		r.open[c] = make(chan struct{})
	case http.StateClosed:
		close(r.open[c])
		delete(r.open, c)
	}
}

// settle waits until all earlier requests are answered. Connections are accepted in order, so an answer to a new one
// shows that the earlier ones are known.
func (r *remotes) settle() error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(r.URL)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	r.mu.Lock()
	open := slices.Collect(maps.Values(r.open))
	r.mu.Unlock()
	for _, closed := range open {
		<-closed
	}
	return nil
}

// travelling creates the worlds with a session to push, pushed, and to fetch. The user's settings have the remote, so
// that the repository equals that of the other worlds.
func (f *fixtures) travelling(r *remotes) (err error) {
	w, err := f.copy(f.failed)
	if err != nil {
		return err
	}
	f.pushable, w.remotes = w, r
	config := "[remote \"origin\"]\n\turl = " + r.URL + w.dir + "/remote.git\n"
	own, err := os.ReadFile(filepath.Join(w.dir, "home/.gitconfig"))
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, "home/.gitconfig"), append(own, config...), 0o644)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(w.dir, "away/home"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, "away/home/.gitconfig"), own, 0o644)
	}
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "--bare", "--template=", "../remote.git"},
		{"--git-dir=../remote.git", "config", "http.receivepack", "true"}, {"push", "-q", "origin", "main"},
		{"clone", "-q", "--template=", "-c", "tilth.validator=check=test -f hello.txt",
			r.URL + w.dir + "/remote.git", "../away/repo"},
	} {
		if _, err = w.git(args...); err != nil {
			return err
		}
	}
	if f.pushed, err = f.copy(w); err != nil {
		return err
	}
	if _, err = f.pushed.expect([]int{0}, "push"); err != nil {
		return err
	}
	if f.fetchable, err = f.copy(f.pushed); err == nil {
		f.fetchable.arriving = true
		_, err = f.fetchable.expect([]int{0}, "reset", "-y")
	}
	return err
}

func pushable(f *fixtures) *world  { return f.pushable }
func pushed(f *fixtures) *world    { return f.pushed }
func fetchable(f *fixtures) *world { return f.fetchable }

// away is the other machine of a world: a clone with its own sessions.
func (w *world) away() *world {
	other := *w
	other.dir = filepath.Join(w.dir, "away")
	return &other
}

// isArriving reports whether a fetched session is still incomplete.
func (w *world) isArriving() bool {
	_, err := os.Lstat(w.file("reset"))
	return err == nil && w.arriving
}

// onRemote runs git in the remote.
func (w *world) onRemote(args ...string) (string, error) {
	return w.git(append([]string{"--git-dir=../remote.git"}, args...)...)
}

// remoteWhole checks that the remote has a complete state of the session, or none.
func (w *world) remoteWhole() error {
	if err := w.remotes.settle(); err != nil {
		return err
	}
	refs, err := w.onRemote("for-each-ref", "--format=%(refname)=%(objectname)", "refs/heads/session", "refs/tilth")
	if err != nil || refs == "" {
		return err
	}
	at := map[string]string{}
	for line := range strings.Lines(refs) {
		name, sha, _ := strings.Cut(strings.TrimSpace(line), "=")
		at[name] = sha
	}
	claim, err := w.claim()
	if len(at) != 3 || claim.Get("tip").Str != at["refs/heads/session/"+w.id] ||
		claim.Get("state").Str != at["refs/tilth/sessions/"+w.id] {
		return fmt.Errorf("the remote has\n%s%s%w", refs, claim, err)
	}
	_, err = w.onRemote("fsck", "--connectivity-only", "--no-dangling")
	return err
}

func (w *world) claim() (gjson.Result, error) {
	text, err := w.onRemote("log", "-1", "--format=%B", "refs/tilth/claims/"+w.id)
	return gjson.Parse(text), err
}

// wholeHere checks the local session, if it exists.
func wholeHere(f *fixtures, w *world) error {
	if _, err := os.Lstat(w.file("checkpoint.json")); err == nil && !w.isArriving() {
		return consistent(f, w)
	}
	return nil
}

// wholeThere checks the local session, if it exists, and the one on the remote.
func wholeThere(f *fixtures, w *world) error {
	if err := wholeHere(f, w); err != nil {
		return err
	}
	return w.remoteWhole()
}

// remoteHas checks that the session has no holder, and the number of its finished tasks on the remote.
func (w *world) remoteHas(done int64) error {
	if err := w.remoteWhole(); err != nil {
		return err
	}
	claim, err := w.claim()
	if err == nil && (claim.Get("tasks.done").Int() != done || claim.Get("holder").Str != "") {
		err = fmt.Errorf("the remote has %s", claim)
	}
	return err
}

// takenUp continues with the remote's state on another machine, after the dead machine's claim has expired.
func (w *world) takenUp() error {
	claim, err := w.claim()
	if err != nil {
		return err
	}
	other := w.away()
	if claim.Get("holder").Str != "" {
		if _, err := other.expect([]int{4}, "fetch", w.id); err != nil {
			return err
		}
		if err := w.timePasses(claim); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"fetch", w.id}, {"resume"}} {
		if _, err := other.expect([]int{0}, args...); err != nil {
			return err
		}
	}
	return errors.Join(other.allDone(), w.remoteHas(3))
}

// timePasses makes the remote's claim expire.
func (w *world) timePasses(claim gjson.Result) error {
	text := strings.Replace(claim.Raw, claim.Get("expires").Str, "2026-01-01T00:00:00.000Z", 1)
	sha, err := w.onRemote("commit-tree", "-m", text, "refs/tilth/claims/"+w.id+"^{tree}")
	if err == nil {
		_, err = w.onRemote("update-ref", "refs/tilth/claims/"+w.id, strings.TrimSpace(sha))
	}
	return err
}

// pushedAgain continues after a killed push: with the same command and then on the other machine, or with a resume.
func pushedAgain(f *fixtures, w *world, turn int) error {
	if turn%2 == 1 {
		if err := resumed(f, w, turn); err != nil {
			return err
		}
		if _, err := w.expect([]int{0}, "push"); err != nil {
			return err
		}
		return w.remoteHas(3)
	}
	if _, err := w.expect([]int{0}, "push"); err != nil {
		return err
	}
	return errors.Join(w.remoteHas(1), w.takenUp())
}

// fetchedAgain continues after a killed fetch: with another fetch, or with a reset before it.
func fetchedAgain(f *fixtures, w *world, turn int) error {
	if turn%2 == 1 {
		if _, err := w.expect([]int{0, 2}, "reset", "-y", w.id); err != nil {
			return err
		}
		if err := w.gone(); err != nil {
			return err
		}
	}
	if _, err := w.expect([]int{0}, "fetch", w.id); err != nil {
		return err
	}
	left, _ := filepath.Glob(filepath.Join(w.dir, "sessions/.travel-*"))
	if len(left) > 1 {
		return fmt.Errorf("left of a fetch: %q", left)
	}
	return errors.Join(resumed(f, w, turn), w.remoteHas(3))
}

// claimedAgain continues after a killed run with a claim: here at once, or on another machine from the last push, and
// then here again.
func claimedAgain(f *fixtures, w *world, turn int) error {
	if turn%2 == 0 {
		return errors.Join(resumed(f, w, turn), w.remoteHas(3))
	}
	if err := w.takenUp(); err != nil {
		return err
	}
	if _, err := w.expect([]int{0, 2}, "push"); err != nil {
		return err
	}
	for _, args := range [][]string{{"reset", "-y"}, {"fetch", w.id}} {
		if _, err := w.expect([]int{0}, args...); err != nil {
			return err
		}
	}
	return errors.Join(w.allDone(), w.remoteHas(3))
}
