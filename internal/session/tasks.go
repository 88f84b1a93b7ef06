package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Statuses of a task in prd.json.
const (
	TaskPending = record.Pending
	TaskDone    = record.Done
	TaskFailed  = record.Failed
	TaskSkipped = record.Skipped
)

var taskID = regexp.MustCompile(`^T-[0-9]{3,}$`)

// ValidTaskID reports whether id is T- and three or more digits.
func ValidTaskID(id string) bool { return taskID.MatchString(id) }

// TaskOf returns the id of the task in a word, or "". The word is an id, T and a number, or a number.
func TaskOf(tasks []Task, word string) string {
	number := func(s string) string {
		return strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(s), "T"), "-"), "0")
	}
	same := ""
	for _, t := range tasks {
		if strings.EqualFold(t.ID, word) {
			return t.ID
		}
		if same == "" && number(t.ID) == number(word) {
			same = t.ID
		}
	}
	return same
}

// IndexOf returns the index of a task in a plan, or -1.
func IndexOf(tasks []Task, id string) int {
	return slices.IndexFunc(tasks, func(t Task) bool { return t.ID == id })
}

// Task is one entry of prd.json. Only the harness writes Status.
type Task struct {
	ID                 string   `json:"id"`
	Title              string   `json:"title"`
	Description        string   `json:"description"`
	AcceptanceCriteria []string `json:"acceptance_criteria"`
	Status             string   `json:"status"`          // one of the constants above; never empty after reading
	Needs              []string `json:"needs,omitempty"` // ids of earlier tasks that must be done first
	// Touches are patterns, as in .gitignore, of the paths that it changes. Tasks with common paths do not run in
	// parallel.
	Touches []string `json:"touches,omitempty"`
	Type    string   `json:"type,omitempty"`  // type for the commit's subject: feat, fix, ...
	Scope   string   `json:"scope,omitempty"` // scope for the commit's subject: a part of the project
	// Source is the issue, review thread or check that the task is made of: others wrote its text.
	Source string `json:"source,omitempty"`

	others map[string]json.RawMessage // the members that it has no field for
}

// PromptTitle returns the title in a prompt: in a fence if others wrote it.
func (t Task) PromptTitle() string {
	if t.Source == "" {
		return t.Title
	}
	return "`" + strings.ReplaceAll(t.Title, "`", "'") + "` (written by others)"
}

// SourceID returns the task's id in an imported list, or "" if there is none or it is the same.
func (t Task) SourceID() string { return gjson.ParseBytes(t.others["source_id"]).String() }

// MarshalJSON returns the task as an object with all members that it was read with.
func (t Task) MarshalJSON() ([]byte, error) {
	type plain Task
	p := plain(t)
	text, err := jsonl.Encode(&p)
	if err != nil || len(t.others) == 0 {
		return text, err
	}
	others, err := jsonl.Encode(t.others)
	return append(append(text[:len(text)-1], ','), others[1:]...), err
}

// UnmarshalJSON accepts any value as a status, because the file's status decides nothing.
func (t *Task) UnmarshalJSON(data []byte) error {
	type plain Task
	err := decode(data, (*plain)(t), "status")
	if status := gjson.GetBytes(data, "status"); t.Status == "" && status.Type != gjson.Null {
		t.Status = status.Raw
	}
	gjson.ParseBytes(data).ForEach(func(name, value gjson.Result) bool {
		if !taskMembers[name.String()] {
			if t.others == nil {
				t.others = map[string]json.RawMessage{}
			}
			t.others[name.String()] = json.RawMessage(value.Raw)
		}
		return true
	})
	return err
}

// taskMembers are the names of the fields of Task.
var taskMembers = func() map[string]bool {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Task]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}()

// WaitsFor lists the needs of a task that are not done, with the reason if no run can do them.
func (t Task) WaitsFor(tasks []Task) (open []string) {
	for _, need := range t.Needs {
		i := IndexOf(tasks, need)
		switch {
		case i < 0:
			need += " (not in the plan)"
		case tasks[i].Status == TaskDone:
			continue
		case tasks[i].Status == TaskFailed || tasks[i].Status == TaskSkipped:
			need += " (" + tasks[i].Status + ")"
		}
		open = append(open, need)
	}
	return open
}

// ParseTasks reads a task list: a JSON list of objects with the right types. A missing status is pending. ValidateTasks
// checks the values.
func ParseTasks(data []byte) ([]Task, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, jsonError(data, err)
	}
	if entries == nil {
		return nil, errors.New("is null, want a list")
	}
	tasks := make([]Task, len(entries))
	for i, raw := range entries {
		if err := tasks[i].UnmarshalJSON(raw); err != nil {
			name := ""
			if id := tasks[i].ID; id != "" {
				name = fmt.Sprintf(" (%s)", id)
			}
			return nil, fmt.Errorf("entry %d%s: %w", i+1, name, err)
		}
	}
	return complete(tasks), nil
}

// StoredTasks reads prd.json unchanged. Errors name the file and the fault in it.
func (s *Session) StoredTasks() ([]Task, error) {
	return readJSON(s.Path(TasksFile), ParseTasks)
}

// complete fills in missing statuses.
func complete(tasks []Task) []Task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Status = cmp.Or(tasks[i].Status, TaskPending)
	}
	return tasks
}

// FormatTasks returns a task list in the form of prd.json.
func FormatTasks(tasks []Task) ([]byte, error) { return indent(jsonl.Encode(complete(tasks))) }

// SaveTasks replaces prd.json. Before Sync a power cut may bring the old one back.
func (s *Session) SaveTasks(tasks []Task) error {
	data, err := FormatTasks(tasks)
	if err != nil {
		return err
	}
	return jsonl.Put(s.Path(TasksFile), data, true)
}

// ValidateIDs lists invalid and duplicate ids, one line each.
func ValidateIDs(tasks []Task) (broken []string) {
	if len(tasks) == 0 {
		return []string{"there is no task"}
	}
	seen := map[string]int{}
	for i, t := range tasks {
		switch first := seen[t.ID]; {
		case !ValidTaskID(t.ID):
			broken = append(broken, fmt.Sprintf("entry %d: id %q is not T- and three or more digits", i+1, t.ID))
		case first > 0:
			broken = append(broken, fmt.Sprintf("%s: id is used by entry %d and entry %d", t.ID, first, i+1))
		default:
			seen[t.ID] = i + 1
		}
	}
	return broken
}

// ValidateTasks lists every rule that the tasks break, one line each, with the entry that breaks it.
func ValidateTasks(tasks []Task) []string {
	broken := ValidateIDs(tasks)
	for i, t := range tasks {
		name := fmt.Sprintf("entry %d", i+1)
		if ValidTaskID(t.ID) {
			name = t.ID
		}
		rule := func(format string, args ...any) {
			broken = append(broken, name+": "+fmt.Sprintf(format, args...))
		}
		if strings.TrimSpace(t.Title) == "" {
			rule("title is empty")
		} else if strings.ContainsFunc(t.Title, unicode.IsControl) {
			rule("title is more than one line of text")
		}
		if len(t.AcceptanceCriteria) == 0 {
			rule("acceptance_criteria is empty")
		}
		for n, c := range t.AcceptanceCriteria {
			if strings.TrimSpace(c) == "" {
				rule("acceptance criterion %d is empty", n+1)
			}
		}
		switch t.Status {
		case "", TaskPending, TaskDone, TaskFailed, TaskSkipped:
		default:
			rule("status %q is not pending, done, failed or skipped", t.Status)
		}
	}
	return broken
}

// Tasks returns the entries of prd.json with their statuses in the record. If the user set a status to failed or
// pending while no run was active, that counts; done and skipped in the file do not. Errors name the file and its
// fault.
func (s *Session) Tasks() ([]Task, error) {
	tasks, _, err := s.settledTasks()
	return tasks, err
}

// ByHand returns the statuses that the user set in prd.json, by task. They differ from the record and have to be
// recorded.
func (s *Session) ByHand() (map[string]string, error) {
	_, byHand, err := s.settledTasks()
	return byHand, err
}

func (s *Session) settledTasks() ([]Task, map[string]string, error) {
	tasks, err := s.StoredTasks()
	if err != nil {
		return nil, nil, err
	}
	state, err := s.State()
	if err != nil {
		return tasks, nil, nil // readers of the record report its fault
	}
	check, err := s.StoredCheckpoint()
	if err != nil {
		check = &Checkpoint{}
	}
	tasks, byHand := settled(tasks, state, check.Statuses)
	return tasks, byHand, nil
}

// settled gives tasks from prd.json their effective statuses. written are the statuses that this program wrote last,
// nil if unknown.
func settled(tasks []Task, state *record.State, written map[string]string) (_ []Task, byHand map[string]string) {
	byHand = map[string]string{}
	for i := range tasks {
		t := &tasks[i]
		recorded := state.StatusOf(t.ID)
		edited := written != nil && t.Status != cmp.Or(written[t.ID], TaskPending) &&
			(t.Status == TaskFailed || t.Status == TaskPending)
		switch {
		case t.Status == recorded:
		case edited:
			byHand[t.ID] = t.Status
		default:
			t.Status = recorded
		}
	}
	return tasks, byHand
}

// ProgressLine returns a line of progress.txt.
func ProgressLine(task, state, title string) string {
	return text.OneLine(task) + "\t" + text.OneLine(state) + "\t" + text.VisibleLine(text.OneLine(title))
}

// WriteProgress rewrites progress.txt if it does not consist of these lines.
func (s *Session) WriteProgress(lines []string) error {
	want := strings.Join(append(lines, ""), "\n")
	have, err := jsonl.ReadFile(s.Path(ProgressFile))
	if string(have) == want && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	if want == "" {
		return os.Remove(s.Path(ProgressFile))
	}
	return jsonl.Put(s.Path(ProgressFile), []byte(want), false)
}
