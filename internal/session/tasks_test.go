package session

import (
	"reflect"
	"strings"
	"testing"
)

const editedPlan = `[
  {"id": "T-001", "title": "Add", "description": "d", "priority": 3, "acceptance_criteria": ["a", "b"]},
  {"id": "T-0012", "title": "Caf\u00e9", "description": "", "acceptance_criteria": ["c"], "status": "failed", "notes": {"z": 1}}
]
`

func TestPlan(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(TasksFile), editedPlan)
	tasks, err := s.StoredTasks()
	must(t, err)
	if broken := ValidateTasks(tasks); broken != nil {
		t.Error(broken)
	}
	if tasks[0].Status != TaskPending || tasks[1].Status != TaskFailed || tasks[1].Title != "Café" ||
		string(tasks[0].others["priority"]) != "3" {
		t.Errorf("%+v", tasks)
	}
	must(t, s.SaveTasks(tasks))
	if got := read(t, s.Path(TasksFile)); strings.Count(got, "status") != 2 || !strings.Contains(got, `"priority": 3`) {
		t.Errorf("a rewrite of the same:\n%s", got)
	}
	tasks[0].Status = TaskDone
	tasks = append(tasks, Task{ID: "T-013", Title: "new"})
	must(t, s.SaveTasks(tasks))
	got := read(t, s.Path(TasksFile))
	again, err := s.StoredTasks()
	must(t, err)
	if again[0].Status != TaskDone || string(again[1].others["notes"]) == "" || again[2].Status != TaskPending || !strings.Contains(got, `"acceptance_criteria": []`) {
		t.Errorf("after a change:\n%s", got)
	}
}

func TestParsePlanErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "is empty",
		"{}":                                "is an object, want a list",
		"[5]":                               "entry 1: is a number, want an object",
		`[{}, {"id": "T-002", "title": 5}]`: `entry 2 (T-002): "title" is a number, want a string`,
		`[{"acceptance_criteria": "x"}]`:    `"acceptance_criteria" is a string, want a list`,
		`[{"acceptance_criteria": [5]}]`:    `"acceptance_criteria" is a number, want a string`,
		"[{},]":                             "line 1, column 5",
	} {
		if _, err := ParseTasks([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	s := newSession(t)
	write(t, s.Path(TasksFile), "[")
	if _, err := s.Tasks(); err == nil || !strings.Contains(err.Error(), s.Path(TasksFile)) {
		t.Errorf("the error does not name the file: %v", err)
	}
}

func TestValidatePlan(t *testing.T) {
	ok := Task{ID: "T-001", Title: "x", AcceptanceCriteria: []string{"y"}}
	with := func(change func(*Task)) []Task {
		c := ok
		change(&c)
		return []Task{c}
	}
	for name, c := range map[string]struct {
		tasks []Task
		want  string
	}{
		"good":            {[]Task{ok}, ""},
		"none":            {nil, "there is no task"},
		"short id":        {with(func(t *Task) { t.ID = "T-1" }), "three or more digits"},
		"id with newline": {with(func(t *Task) { t.ID = "T-001\n" }), "three or more digits"},
		"path as id":      {with(func(t *Task) { t.ID = "../T-001" }), "three or more digits"},
		"no id":           {with(func(t *Task) { t.ID = "" }), `entry 1: id ""`},
		"twice":           {[]Task{ok, ok}, "T-001: id is used by entry 1 and entry 2"},
		"no title":        {with(func(t *Task) { t.Title = " " }), "title is empty"},
		"long title":      {with(func(t *Task) { t.Title = "a\nb" }), "more than one line"},
		"no criteria":     {with(func(t *Task) { t.AcceptanceCriteria = nil }), "acceptance_criteria is empty"},
		"blank criterion": {with(func(t *Task) { t.AcceptanceCriteria = []string{"a", ""} }), "criterion 2 is empty"},
		"odd status":      {with(func(t *Task) { t.Status = "doing" }), `status "doing"`},
	} {
		got := strings.Join(ValidateTasks(c.tasks), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if n := len(ValidateTasks([]Task{{}, {}})); n != 6 {
		t.Errorf("%d broken rules of two empty tasks", n)
	}
}

// A plan without titles is valid if its tasks have different ids.
func TestValidateIDs(t *testing.T) {
	for want, tasks := range map[string][]Task{
		"": {{ID: "T-001"}, {ID: "T-002"}}, "there is no task": nil,
		`entry 1: id "1" is not T- and three or more digits`: {{ID: "1"}},
		"T-001: id is used by entry 1 and entry 2":           {{ID: "T-001"}, {ID: "T-001"}},
	} {
		if got := strings.Join(ValidateIDs(tasks), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(editedPlan))
	f.Add([]byte(`[{"id":null,"status":null,"acceptance_criteria":null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tasks, err := ParseTasks(data)
		if err != nil {
			return
		}
		ValidateTasks(tasks)
		once, err := FormatTasks(tasks)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseTasks(once)
		if err != nil || len(again) != len(tasks) {
			t.Fatalf("%v\n%s", err, once)
		}
		twice, err := FormatTasks(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("a second rewrite changed\n%s\nto\n%s", once, twice)
		}
	})
}

func TestSeedMeta(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(SeedMetaFile), `{"interviewer_model": "m", "tokens": {"prompt": 10}, "tldr": "- do it", "blockers": null,
	  "scope_notes": ["a"], "rounds": 7}`)
	m, err := s.SeedMeta()
	must(t, err)
	if m.Tokens != 0 || m.TLDR != "- do it" || m.Blockers != nil || !reflect.DeepEqual(m.ScopeNotes, []string{"a"}) {
		t.Errorf("%+v", m)
	}
	must(t, s.SaveSeedMeta(&SeedMeta{TLDR: "x"}))
	if text := read(t, s.Path(SeedMetaFile)); !strings.Contains(text, `"blockers": []`) {
		t.Error(text)
	}
}
