package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
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

// TaskOf is the id of the task that a word names, "" for none: its id, or T and its number, or the number alone.
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

// IndexOf is where a plan has a task, -1 for nowhere.
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
	Needs              []string `json:"needs,omitempty"` // ids of earlier tasks without which this one is not begun
	// Touches are patterns, as in .gitignore, of the paths that it is about: by them tasks are kept from running beside
	// each other.
	Touches []string `json:"touches,omitempty"`
	Type    string   `json:"type,omitempty"`  // for the subject of its commit: feat, fix and the like
	Scope   string   `json:"scope,omitempty"` // for the subject as well: the part of the project

	others extra
}

func (t Task) MarshalJSON() ([]byte, error) { return encode(&t, t.others) }

// UnmarshalJSON accepts any value as a status, because the status in the file decides nothing.
func (t *Task) UnmarshalJSON(data []byte) error {
	err := decode(data, t, &t.others, "status")
	if status := gjson.GetBytes(data, "status"); t.Status == "" && status.Type != gjson.Null {
		t.Status = status.Raw
	}
	return err
}

// WaitsFor lists the needs of a task that are not done, with why not where no run will do them by itself.
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

// ParseTasks reads a task list: a JSON list of objects with the right types. A missing status is pending. What the
// entries say is ValidateTasks's affair.
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

// StoredTasks reads prd.json as it is. Errors name the file and the fault in it.
func (s *Session) StoredTasks() ([]Task, error) {
	return readJSON(s.Path(TasksFile), ParseTasks)
}

// complete fills in the status, which no entry has to say.
func complete(tasks []Task) []Task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Status = cmp.Or(tasks[i].Status, TaskPending)
	}
	return tasks
}

// FormatTasks is a task list as prd.json has it.
func FormatTasks(tasks []Task) ([]byte, error) { return indent(jsonl.Encode(complete(tasks))) }

// SaveTasks replaces prd.json. Before Sync a power cut may bring the old one back.
func (s *Session) SaveTasks(tasks []Task) error {
	data, err := FormatTasks(tasks)
	return save(s.Path(TasksFile), data, err, true)
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
			rule("status %q is none of pending, done, failed and skipped", t.Status)
		}
	}
	return broken
}
