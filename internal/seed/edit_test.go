package seed

import (
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

const oldPlan = `[
  {"id":"T-001","title":"A","description":"d","acceptance_criteria":["x"],"status":"pending","owner":"me"},
  {"id":"T-002","title":"B","description":"","acceptance_criteria":["y"]}
]`

func TestEditPlan(t *testing.T) {
	files := []string{testPath(1), testPath(2)}
	cases := []struct {
		name, edited, rule string
	}{
		{"nothing", oldPlan, ""},
		{"a new title", strings.Replace(oldPlan, `"A"`, `"Another"`, 1), ""},
		{"an unknown key", strings.Replace(oldPlan, `"owner":"me"`, `"owner":"you","more":[1]`, 1), ""},
		{
			"order",
			`[{"id":"T-002","title":"B","acceptance_criteria":["y"]},{"id":"T-001","title":"A","acceptance_criteria":["x"]}]`,
			"",
		},
		{"a status", strings.Replace(oldPlan, `"pending"`, `"done"`, 1), "status"},
		{
			"a new task without a test",
			strings.Replace(oldPlan, "\n]", `,{"id":"T-003","title":"C","acceptance_criteria":["z"]}]`, 1),
			"task-without-test",
		},
		{
			"a new task that is done",
			strings.Replace(
				oldPlan,
				"\n]",
				`,{"id":"T-003","title":"C","acceptance_criteria":["z"],"status":"done"}]`,
				1,
			),
			"status",
		},
		{"a task removed", `[{"id":"T-001","title":"A","acceptance_criteria":["x"]}]`, "test-without-task"},
		{"an id changed", strings.Replace(oldPlan, "T-002", "T-2", 1), "id"},
		{"an id twice", strings.Replace(oldPlan, "T-002", "T-001", 1), "duplicate"},
		{"a key twice", strings.Replace(oldPlan, `"owner":"me"`, `"title":"Z"`, 1), "duplicate"},
		{"no criteria", strings.Replace(oldPlan, `["x"]`, `[]`, 1), "criteria"},
		{"no tasks", "[]", "no-tasks"},
		{"broken", oldPlan + "x", "shape"},
		{"empty", "", "text"},
		{"an object", "{}", "shape"},
		{"a wrong type", strings.Replace(oldPlan, `["x"]`, `"x"`, 1), "shape"},
		{"not UTF-8", oldPlan + "\xff", "text"},
		{"huge", strings.Repeat(" ", maxImportBytes+1), "text"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tasks, broken, err := EditPlan([]byte(oldPlan), []byte(c.edited), files, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.rule == "" && (len(broken) > 0 || len(tasks) != 2) {
				t.Errorf("%v", broken)
			}
			if c.rule != "" && (tasks != nil || !slices.Contains(ruleNames(broken), c.rule)) {
				t.Errorf("%v, want %s", broken, c.rule)
			}
		})
	}
	// In an imported seed some tasks have no test, so a new one needs none.
	more := strings.Replace(oldPlan, "\n]", `,{"id":"T-003","title":"C","acceptance_criteria":["z"]}]`, 1)
	if _, broken, _ := EditPlan([]byte(oldPlan), []byte(more), files[:1], nil); len(broken) > 0 {
		t.Error(broken)
	}
	// After a run, another command skips a task with a test.
	one := `[{"id":"T-001","title":"A","acceptance_criteria":["x"]}]`
	_, broken, _ := EditPlan([]byte(oldPlan), []byte(one), files, []session.Task{})
	if !strings.Contains(Explain(broken, 9), "git tilth skip T-002") {
		t.Error(broken)
	}
	tasks, _, _ := EditPlan(
		[]byte(oldPlan),
		[]byte(strings.Replace(oldPlan, `"owner":"me"`, `"owner":"you"`, 1)),
		nil, nil,
	)
	if raw, _ := session.FormatTasks(tasks[:1]); !strings.Contains(string(raw), `"owner": "you"`) {
		t.Errorf("%s", raw)
	}
	if _, _, err := EditPlan([]byte("x"), []byte(oldPlan), nil, nil); err == nil {
		t.Error("a damaged old plan was taken")
	}
}

func FuzzEditPlan(f *testing.F) {
	f.Add([]byte(oldPlan))
	f.Add([]byte("[{}]"))
	f.Add([]byte(`[{"id":"T-001","id":"T-002"}]`))
	f.Fuzz(func(t *testing.T, edited []byte) {
		tasks, broken, err := EditPlan([]byte(oldPlan), edited, nil, nil)
		if err != nil || (len(broken) == 0) != (len(tasks) > 0) {
			t.Errorf("%v %v %v", tasks, broken, err)
		}
	})
}
