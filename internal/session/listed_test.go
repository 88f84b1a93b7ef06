package session

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// The cached list is the list that the files give, whatever changed since.
func TestListedIsWhatTheFilesSay(t *testing.T) {
	defer func(d time.Duration) { settles = d }(settles)
	settles = -time.Hour
	st := manySessions(t, fewListed+50)
	ids, err := st.IDs()
	must(t, err)
	at := func(i int) *Session { return st.session(ids[i]) }
	check := func(what string) {
		t.Helper()
		var want []Overview
		for i := range ids {
			want = append(want, at(i).Overview())
		}
		got := st.Overview(ids, nil)
		for i := range min(len(got), len(want)) {
			if stop := want[i].Summary.State.Stopped; stop != nil && !record.ReasonOf(stop.Reason).Calm {
				if !reflect.DeepEqual(got[i].Summary.State, want[i].Summary.State) {
					t.Errorf("%s: %s has another state", what, ids[i])
				}
			}
			got[i].Summary, want[i].Summary = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the list is not that of the files", what)
		}
	}
	st.Overview(ids, nil)
	cached := st.listedLines()
	if len(cached) != len(ids) {
		t.Fatalf("%d lines in the cache", len(cached))
	}
	check("cached")

	must(t, jsonl.AppendOnce(at(0).Path(RecordFile),
		[]byte(`{"ts":"2026-06-02T10:00:00.000Z","type":"session_resume","payload":{"last_stop":"wall_clock"}}`)))
	write(t, at(1).Path(TasksFile), `[{"id":"T-001","title":"Other","description":"","acceptance_criteria":["c"]}]`)
	write(t, at(2).Path(CheckpointFile), `{"status":"failed"}`)
	write(t, at(3).Path(WorkspaceDir, ".git"), "gitdir: /a/.git/worktrees/workspace3\n")
	write(t, at(4).Path(ResetMarkFile), "")
	must(t, at(5).SaveRequest(&Request{Number: 3, State: RequestOpen}, testNow))
	must(t, os.Remove(at(6).Path(RecordFile)))
	for i := 7; i < 12; i++ { // each fifth session is a stopped one
		unlock, err := at(i).Lock(testNow)
		must(t, err)
		defer unlock()
	}
	check("changed files")

	cache := filepath.Join(st.Root, listedFile)
	for _, text := range []string{"", "\n\n", ids[0] + " x\n", ids[0] + " " + cached[ids[0]][:60]} {
		write(t, cache, text)
		check("damaged cache")
	}
	must(t, os.Remove(cache))
	must(t, os.Mkdir(cache, 0o700))
	check("a directory in its place")
}
