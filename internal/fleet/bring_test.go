package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// pushed is a place with a session that is on its remote.
func pushed(t *testing.T) (Remote, *session.Session) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "--bare", "remote.git")
	git("init", "-q", "repo")
	git("-C", "repo", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x")
	repo := filepath.Join(dir, "repo")
	p := Remote{Deps: held.Deps{Git: gitx.New(os.Environ(), false, nil), Now: time.Now},
		Store:    session.Store{Root: filepath.Join(dir, "sessions")},
		Location: gitx.Location{Source: repo, CommonDir: filepath.Join(repo, ".git")},
		Remote:   filepath.Join(dir, "remote.git")}
	h, err := lifecycle.Create(t.Context(), p.Deps, lifecycle.New{Store: p.Store, Location: p.Location,
		Base: git("-C", "repo", "rev-parse", "HEAD")})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	tasks := []session.Task{{ID: "T-001", Title: "x", AcceptanceCriteria: []string{"x"}, Status: session.TaskPending}}
	if err := h.S.SaveTasks(tasks); err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.CommitSeed(t.Context(), h, 1, 0, record.SessionPrepared{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Push(t.Context(), h.S); err != nil {
		t.Fatal(err)
	}
	return p, h.S
}

// TestBringBesideAPush: files of a push in another process are not taken for leftovers of a kill.
func TestBringBesideAPush(t *testing.T) {
	p, s := pushed(t)
	unlock, err := s.Lock(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	temp := s.Path(session.TravelDir, ".checkpoint.json.tmp-1")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	claims, err := p.Remotes(t.Context())
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	if got, err := p.Bring(t.Context(), claims[0]); err != nil || got.ID != s.ID {
		t.Error(got, err)
	}
	if _, err := os.Lstat(temp); err != nil {
		t.Error(err)
	}
}

// TestBringOfAnOldList: after the remote was listed, the session was run and pushed here, and later work could not be
// pushed.
func TestBringOfAnOldList(t *testing.T) {
	p, s := pushed(t)
	claims, err := p.Remotes(t.Context())
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	write := func(line string) {
		f, err := os.OpenFile(s.Path(session.RecordFile), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"ts":"2026-06-01T10:20:30Z","type":"stop","payload":{"reason":"interrupted"}}`)
	if err := p.Push(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	write(`{"ts":"2026-06-01T10:20:31Z","type":"session_resume","payload":{}}`)
	if _, err := p.Bring(t.Context(), claims[0]); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.Path(session.RecordFile))
	if err != nil || !strings.Contains(string(text), "session_resume") {
		t.Errorf("what was not pushed is gone: %s %v", text, err)
	}
}

// TestMakeRoomGone: the existing session is deleted before it is locked.
func TestMakeRoomGone(t *testing.T) {
	root := t.TempDir()
	s, err := session.Store{Root: root}.Create("20260601-102030-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	p := Remote{Store: session.Store{Root: root}, Deps: held.Deps{Git: gitx.New(os.Environ(), false, nil),
		Now: func() time.Time { _ = os.Remove(s.Dir); return time.Now() }}}
	if err := p.makeRoom(t.Context(), s.ID, false); err != nil {
		t.Error(err)
	}
}
