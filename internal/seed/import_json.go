package seed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// planList reads a prd.json: a list of tasks in the shape of a session's plan.
func (im *Imported) planList(name string, data []byte) error {
	if err := checkJSON(name, data); err != nil {
		return err
	}
	elements, _ := listElements(data, 0)
	im.Format = formatPlan
	seen := newIDs()
	for _, e := range elements {
		t, err := planTask(name, e)
		if err != nil {
			return err
		}
		if before, ok := seen.claim(t.ID, e.line); !ok {
			return idTwice(name, e.line, t.ID, before)
		}
		switch t.Status {
		case session.TaskDone, session.TaskSkipped:
			im.done[t.ID] = t.Status == session.TaskDone
			im.drop("%s %s: its status is %s", t.ID, t.Title, t.Status)
			continue
		case session.TaskFailed:
			im.recognise("%s is taken as pending; its status was failed", t.ID)
		case session.TaskPending:
		default:
			return importError(name, e.line, "use pending, done, failed or skipped, or leave it out",
				"%s has the unknown status %s", t.ID, quoteShort(t.Status))
		}
		t.Status = session.TaskPending
		im.lines[t.ID] = e.line
		im.Tasks = append(im.Tasks, t)
	}
	im.recognise("%s with %s", formatPlan, text.Plural(len(im.Tasks), "task"))
	return nil
}

// planTask reads one entry and holds it to the shape of prd.json. Unknown keys stay with the task.
func planTask(name string, e element) (t session.Task, err error) {
	const shape = "an entry is {id, title, description, acceptance_criteria}"
	if _, err := objectFields(e.raw); err != nil {
		return t, importError(name, e.line, shape, "an entry is no JSON object")
	}
	if t, err = parseTask(e.raw); err != nil {
		return t, importError(name, e.line, shape, "an entry has not the shape of a task: %s", err)
	}
	switch {
	case t.ID == "":
		err = importError(name, e.line, "give it an id like "+taskIDExample, "an entry has no id")
	case !validID(t.ID):
		err = importError(name, e.line, formIDFix, "the id %s is not T- and 3 or more digits", quoteShort(t.ID))
	case strings.TrimSpace(t.Title) == "":
		err = importError(name, e.line, "give it one", "%s has no title", t.ID)
	case len(t.AcceptanceCriteria) == 0:
		err = importError(name, e.line, "give it a list with at least one", "%s has no acceptance_criteria", t.ID)
	}
	return t, err
}

// parseTask reads one entry of a task list.
func parseTask(raw []byte) (session.Task, error) {
	tasks, err := session.ParseTasks(slices.Concat([]byte("["), raw, []byte("]")))
	if err != nil {
		return session.Task{}, errors.Unwrap(err) // without the entry's number
	}
	return tasks[0], nil
}

// object tells the formats that are one JSON object apart.
func (im *Imported) object(name string, data []byte) error {
	if err := checkJSON(name, data); err != nil {
		return err
	}
	top := fieldsOf(gjson.ParseBytes(data))
	for _, f := range top {
		switch f.key {
		case "userStories":
			return im.stories(name, data, top, f.at)
		case "prd_entries":
			return im.bundleFile(name, data)
		}
	}
	return importError(name, 1, formatsHint, "it is a JSON object without userStories or prd_entries")
}

// bundleFile takes a bundle that was written down in write_seed's own shape.
func (im *Imported) bundleFile(name string, data []byte) error {
	b, err := parseBundle(data)
	if err == nil && len(b.faults) > 0 {
		err = errors.New(b.faults[0].String())
	}
	if err != nil {
		return importError(name, 0, "mend the bundle and run it again", "%s", err)
	}
	b.Meta.Source = im.Meta.Source
	im.Format, im.Bundle = formatBundle, *b
	im.Overview = cmp.Or(im.Overview, b.Meta.TLDR)
	im.recognise("%s with %s and %s", formatBundle, text.Plural(len(b.Tasks), "task"),
		text.Plural(len(b.TestFiles), "test file"))
	return nil
}

// story is an entry of a Ralph-style prd.json.
type story struct {
	ID                 any      `json:"id"`
	Title              string   `json:"title"`
	Description        string   `json:"description"`
	AcceptanceCriteria []string `json:"acceptanceCriteria"`
	Priority           *float64 `json:"priority"`
	Passes             bool     `json:"passes"`
	Notes              string   `json:"notes"`

	keys     fields
	original string // the id as text
}

// stories reads {project, description, userStories: [...]} of Ralph. Stories run in
// the order of their priority; those that pass already are dropped.
func (im *Imported) stories(name string, data []byte, top fields, list int) error {
	elements, ok := listElements(data, list)
	if !ok {
		return importError(name, lineAt(data, list), formatsHint, "userStories is no list")
	}
	im.Format, im.Overview = formatRalph, cmp.Or(im.Overview, ralphOverview(top))
	var stories []story
	seen := newIDs()
	for _, e := range elements {
		s, err := readStory(name, e)
		if err != nil {
			return err
		}
		im.dropKeys("the key %s of stories", s.keys, "id", "title", "description", "acceptanceCriteria", "priority",
			"passes", "notes")
		if before, ok := seen.claim(s.original, e.line); !ok {
			return importError(name, e.line, "give each story an id of its own",
				"the story id %s was given in line %d already", quoteShort(s.original), before)
		}
		if s.Passes {
			im.done[s.original] = true
			im.drop("%s %s: it passes already", s.original, text.OneLine(s.Title))
			continue
		}
		stories = append(stories, s)
	}
	slices.SortStableFunc(stories, func(a, b story) int { return cmp.Compare(a.priority(), b.priority()) })
	count := fmt.Sprintf("%d stories", len(stories))
	if len(stories) == 1 {
		count = "1 story"
	}
	im.recognise("%s with %s to do", formatRalph, count)
	im.dropKeys("the key %s", top, "project", "description", "userStories")
	if len(stories) <= maxTasks {
		im.addStories(stories)
	}
	return nil
}

// dropKeys says which keys mean nothing here, each of them once.
func (im *Imported) dropKeys(format string, given fields, known ...string) {
	for _, f := range given {
		line := fmt.Sprintf(format, quoteShort(f.key))
		if !slices.Contains(known, f.key) && !slices.Contains(im.Dropped, line) {
			im.drop("%s", line)
		}
	}
}

// priority puts stories without one behind all that have one.
func (s story) priority() float64 {
	if s.Priority == nil {
		return math.Inf(1)
	}
	return *s.Priority
}

func readStory(name string, e element) (s story, err error) {
	const shape = "a story is {id, title, description, acceptanceCriteria, priority, passes}"
	if s.keys, err = objectFields(e.raw); err != nil {
		return s, importError(name, e.line, shape, "a story is no JSON object")
	}
	if err := json.Unmarshal(e.raw, &s); err != nil {
		return s, importError(name, e.line, shape, "a story has an unexpected shape: %s", err)
	}
	switch id := s.ID.(type) {
	case string:
		s.original = strings.TrimSpace(id)
	case float64:
		s.original = fmt.Sprint(id)
	}
	switch shown := quoteShort(s.original); {
	case s.original == "":
		err = importError(name, e.line, "give it an id like US-001", "a story has no id")
	case strings.TrimSpace(s.Title) == "":
		err = importError(name, e.line, "give it one", "%s has no title", shown)
	case len(s.AcceptanceCriteria) == 0 && !s.Passes:
		err = importError(name, e.line, "give it a list with at least one", "%s has no acceptanceCriteria", shown)
	}
	return s, err
}

var trailingNumber = pattern.New(`([0-9]{1,9})$`)

// addStories turns stories into tasks. US-007 becomes T-007 as long as all
// stories have numbers of their own; else they are numbered in their order.
func (im *Imported) addStories(stories []story) {
	taken := newIDs()
	numbered := make([]string, len(stories))
	all := true
	for i, s := range stories {
		m := trailingNumber().FindString(s.original)
		n, _ := strconv.Atoi(m)
		numbered[i] = taskID(n)
		if _, ok := taken.claim(numbered[i], 0); !ok || m == "" {
			all = false
		}
	}
	for i, s := range stories {
		id := numbered[i]
		if !all {
			id = taskID(i + 1)
		}
		im.Tasks = append(im.Tasks, storyTask(id, s))
		if id != s.original {
			im.recognise("%s is story %s", id, s.original)
		}
	}
}

// storyTask keeps fields without a place in a task under their own keys: users look for the original id later.
func storyTask(id string, s story) session.Task {
	entry := map[string]any{
		"id": id, "title": text.OneLine(s.Title), "description": s.Description,
		"acceptance_criteria": s.AcceptanceCriteria, "status": session.TaskPending, "source_id": s.original,
	}
	if s.Priority != nil {
		entry["source_priority"] = *s.Priority
	}
	if notes := strings.TrimSpace(s.Notes); notes != "" {
		entry["description"] = strings.TrimSpace(s.Description + "\n\nNotes: " + notes)
	}
	raw, _ := json.Marshal(entry)
	t, _ := parseTask(raw) // keys that session.Task does not know stay with it
	return t
}

func ralphOverview(top fields) string {
	var project, description string
	_ = json.Unmarshal(top.get("project"), &project)
	_ = json.Unmarshal(top.get("description"), &description)
	return strings.Trim(project+": "+description, ": ")
}
