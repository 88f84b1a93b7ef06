package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Sessions of a repository that is gone cost a list here about what they cost a list of all: their place is looked at
// once.
func TestListBesideSessionsOfARepositoryThatIsGone(t *testing.T) {
	dir := t.TempDir()
	repo, root := filepath.Join(dir, "repo"), filepath.Join(dir, "sessions")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range 1500 {
		id := fmt.Sprintf("20260101-%06d-%06x", i, i)
		if err := os.MkdirAll(filepath.Join(root, id), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"checkpoint.json": fmt.Sprintf(`{"session_id":%q,"source":"/no/such/repo","git_common_dir":"/no/such/repo/.git","workspace":"%s/%s/workspace",`+
				`"branch":"session/%s","status":"all_done"}`, id, root, id, id),
			"prd.json":     "[]",
			"events.jsonl": `{"ts":"2026-01-01T00:00:00Z","type":"stop","payload":{"reason":"all_done"}}` + "\n",
		} {
			if err := os.WriteFile(filepath.Join(root, id, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := &process{ctx: t.Context(), dir: repo, environ: append(os.Environ(), "TILTH_SESSIONS_DIR="+root),
		stderr: os.Stderr}
	least := map[bool]time.Duration{}
	for range 5 {
		for _, all := range []bool{false, true} {
			w, err := p.enter("", nil)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			found, err := w.overviews(all)
			took := time.Since(start)
			if err != nil || len(found) != map[bool]int{false: 0, true: 1500}[all] {
				t.Fatalf("%d sessions, %v", len(found), err)
			}
			if least[all] == 0 || took < least[all] {
				least[all] = took
			}
		}
	}
	if least[false] > 3*least[true] {
		t.Errorf("a list in the repository takes %s, of all %s", least[false], least[true])
	}
	t.Logf("here %s, all %s", least[false], least[true])
}
