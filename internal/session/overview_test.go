package session

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

func TestOverview(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(CheckpointFile), futureCheckpoint)
	write(t, s.Path(TasksFile), editedPlan)
	write(t, s.Path(RecordFile), wholeRun+`{"torn`)
	o := s.Overview()
	if o.ID != testID || o.Status != Running || o.Source != "/home/u/répo" || o.TokensUsed != 316 || o.Cost != 1.25 ||
		o.Label != "T-001: Add" ||
		o.Tasks != (TaskCounts{Total: 2, Done: 1, Pending: 1}) || o.LastStop != "all_done" ||
		o.LastStopAt != record.FormatTime(testNow.Add(24e9)) ||
		!strings.HasPrefix(o.StartedAt, "2026-06-01T") || o.State() != "stopped" || o.Busy != nil || o.Problems != nil {
		t.Errorf("%+v", o)
	}
	unlock, err := s.Lock(testNow)
	must(t, err)
	defer unlock()
	write(t, s.Path(RecordFile), wholeRun+script(`session_resume {"last_stop":"wall_clock"}`))
	if o := s.Overview(); o.Busy == nil || o.Busy.PID != os.Getpid() || o.LastStop != "" || o.State() != "running" {
		t.Errorf("while running: %+v", o)
	}
}

func TestOverviewOfDamagedSessions(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		problem string // of "file: what"
	}{
		"nothing there":     {nil, "checkpoint.json: is missing"},
		"empty checkpoint":  {map[string]string{CheckpointFile: ""}, "checkpoint.json: is empty"},
		"torn checkpoint":   {map[string]string{CheckpointFile: `{"status": "run`}, "checkpoint.json: is not JSON: line 1"},
		"list":              {map[string]string{CheckpointFile: "[]"}, "checkpoint.json: is a list, want an object"},
		"torn plan":         {map[string]string{CheckpointFile: `{"status":"failed"}`, TasksFile: `[{"id":`}, "prd.json: is not JSON"},
		"plan is an object": {map[string]string{CheckpointFile: `{"status":"failed"}`, TasksFile: `{}`}, "prd.json: is an object"},
		"no plan yet":       {map[string]string{CheckpointFile: `{"status":"failed"}`}, ""},
		"odd plan entries":  {map[string]string{CheckpointFile: `{"status":"failed"}`, TasksFile: `[{"status": 7}, null]`}, "prd.json: entry 2: is null"},
		"rubbish record":    {map[string]string{CheckpointFile: `{"status":"failed"}`, RecordFile: "5\n\x00\n[]\n{\"type\":7}\n"}, ""},
		"deep":              {map[string]string{CheckpointFile: `{"a":` + strings.Repeat("[", 1<<20), TasksFile: strings.Repeat("[", 1<<20)}, "checkpoint.json: is not JSON"},
	} {
		s := newSession(t)
		for file, text := range c.files {
			write(t, s.Path(file), text)
		}
		o := s.Overview()
		got := strings.Join(o.Problems, "; ")
		if (got == "") != (c.problem == "") || !strings.Contains(got, c.problem) {
			t.Errorf("%s: %q, want %q", name, got, c.problem)
		}
	}
}

func TestOverviewFiltersBySource(t *testing.T) {
	st := Store{Root: t.TempDir()}
	var ids []string
	for i, checkpoint := range []string{
		`{"status":"failed","source":"/a","git_common_dir":"/a/.git"}`, `{"status":"failed","source":"/b"}`, `{"status":"failed","source":"/a","git_common_dir":"/a/.git"}`, `broken`,
	} {
		id := "20260601-10203" + string(rune('0'+i)) + "-abcdef"
		s, err := st.Create(id)
		must(t, err)
		write(t, s.Path(CheckpointFile), checkpoint)
		write(t, s.Path(WorkspaceDir, ".git"), "gitdir: /a/.git/worktrees/workspace3\n")
		ids = append(ids, id)
	}
	var mu sync.Mutex
	var asked []string
	got := st.Overview(ids, func(s *Session, source, common, linked string) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, source+"|"+common+"|"+linked)
		return common == "/a/.git" || s.ID == ids[3]
	})
	var names []string
	for _, o := range got {
		names = append(names, o.ID)
	}
	slices.Sort(asked)
	if !slices.Equal(names, []string{ids[0], ids[2], ids[3]}) ||
		!slices.Equal(asked, []string{"/a|/a/.git|/a/.git", "/a|/a/.git|/a/.git", "/b||/a/.git", "||/a/.git"}) {
		t.Errorf("%v, asked %v", names, asked)
	}
	if none := st.Overview(nil, nil); len(none) != 0 {
		t.Error(none)
	}
}

// A list is read while sessions are created, run and removed.
func TestOverviewOfWhatChanges(t *testing.T) {
	s := newSession(t)
	st := Store{Root: filepath.Dir(s.Dir)}
	all := func(meanwhile func()) []Overview {
		return st.Overview([]string{s.ID}, func(*Session, string, string, string) bool { meanwhile(); return true })
	}
	unlock, err := s.Lock(testNow)
	must(t, err)
	made := all(func() {})
	if len(made) != 1 || made[0].State() != "running" || len(made[0].Problems) > 0 {
		t.Errorf("while it is made: %+v", made)
	}
	write(t, s.Path(CheckpointFile), `{"status":"running"}`)
	ended := all(func() {
		write(t, s.Path(RecordFile), script(`stop {"reason":"all_done"}`))
		write(t, s.Path(CheckpointFile), `{"status":"all_done"}`)
		unlock()
	})
	if len(ended) != 1 || ended[0].State() != "all_done" {
		t.Errorf("whose run has ended meanwhile: %+v", ended)
	}
	write(t, s.Path(CheckpointFile), `{"status":"running"}`)
	if gone := all(func() { must(t, os.RemoveAll(s.Dir)) }); len(gone) != 0 {
		t.Errorf("removed meanwhile: %+v", gone)
	}
}

// A cost that no JSON can say would keep `list --json` from saying anything.
func TestOverviewOfACostBeyondNumbers(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(CheckpointFile), `{"status":"failed","usage":{"worker":{"cost":1e999},"evaluator":{"cost":"NaN"},
		"interview":{"cost":1e308},"self_improve":{"cost":1e308}}}`)
	o := s.Overview()
	if _, err := json.Marshal(o); err != nil || o.Cost != math.MaxFloat64 {
		t.Errorf("%v: %v", o.Cost, err)
	}
}

// The files of many sessions are read into the same memory. The next session must not overwrite an overview.
func TestOverviewOfMany(t *testing.T) {
	st := Store{Root: t.TempDir()}
	var ids []string
	var want []Overview
	for i := range 20 {
		s, err := st.Create(fmt.Sprintf("20260601-1020%02d-abcdef", i))
		must(t, err)
		x := strings.Repeat(string(rune('a'+i)), 1+i*500)
		write(t, s.Path(CheckpointFile), fmt.Sprintf(`{"status":"failed","source":"/%s","git_common_dir":"/%[1]s/.git",
			"workspace":"/w/%[1]s","branch":"b%[1]s","label":%q,"forked_from":"f%[1]s","started_at":"2026-%[1]s"}`,
			x, map[bool]string{true: "l" + x}[i%2 == 0]))
		write(t, s.Path(TasksFile), fmt.Sprintf(`[{"id":"T-001","title":"t%s","status":"done","description":%q}]`, x,
			strings.Repeat("d", 5000*i)))
		write(t, s.Path(RecordFile), fmt.Sprintf(`{"ts":"%s","type":"stop","payload":{"reason":"r%[1]s"}}`, x))
		ids, want = append(ids, s.ID), append(want, s.Overview())
	}
	if got := st.Overview(ids, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// A list changes nothing: it creates no lock file, and holds none afterwards.
func TestOverviewLeavesNoTrace(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(CheckpointFile), `{"status":"running"}`)
	s.Overview()
	left, err := filepath.Glob(s.Path("*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
}
