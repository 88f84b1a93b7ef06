package seed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/session"
)

// jsonList reads a list of tasks in the form of a session's plan, or of issues. A plan has our ids, or our key for
// criteria.
func (im *Imported) jsonList(name string, data []byte) error {
	elements, err := readJSON(name, data, 1)
	if err != nil {
		return err
	}
	im.Format = formatIssues
	if len(elements) > 0 {
		o := elements[0].value
		ours := strings.HasPrefix(o.Get("id").Str, "T-") && !o.Get("passes").Exists()
		if ours || o.Get("acceptance_criteria").IsArray() {
			im.Format = formatPlan
		}
	}
	return im.objects(name, elements)
}

// parseTask reads one entry of a task list.
func parseTask(raw []byte) (session.Task, error) {
	var t session.Task
	err := t.UnmarshalJSON(raw)
	t.Status = cmp.Or(t.Status, session.TaskPending)
	return t, err
}

// jsonObject reads the formats that begin with a JSON object: a bundle, stories, the tasks of task-master, which may be
// below a tag, one issue, and issues of beads, one per line.
func (im *Imported) jsonObject(name string, data []byte) error {
	if first, rest, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n")); len(rest) > 0 && json.Valid(first) {
		return im.jsonLines(name, data)
	}
	top, err := readJSON(name, data, 1)
	if err != nil {
		return err
	}
	if top.get("prd_entries").Exists() {
		return im.bundleFile(name, data)
	}
	im.Format = formatTaskMaster
	tagged := slices.IndexFunc(top, func(tag field) bool { return tag.value.Get("tasks").IsArray() })
	if tagged >= 0 { // the tasks of task-master below a tag
		within := fieldsOf(top[tagged].value, top[tagged].line)
		im.dropKeys(name, slices.Delete(top, tagged, tagged+1))
		list, _ := listIn(within)
		return im.objects(name, fieldsOf(list.value, list.line))
	}
	if f, ok := listIn(top); ok {
		if !f.value.IsArray() {
			return importError(name, f.line, formatsHint, "%s is not a list", f.key)
		}
		if normalKey(f.key) != "tasks" {
			im.Format = formatRalph
		}
		im.Meta.TLDR = cmp.Or(im.Meta.TLDR, overviewOf(top))
		im.dropKeys(name, slices.DeleteFunc(top, func(o field) bool {
			return o.key == f.key || o.key == "metadata" || slices.Contains(overviewKeys, normalKey(o.key))
		}))
		return im.objects(name, fieldsOf(f.value, f.line))
	}
	if top.get("title").Type == gjson.String {
		im.Format = formatIssues
		return im.objects(name, fields{{value: gjson.ParseBytes(data), line: 1}})
	}
	return importError(name, 1, `put the list of tasks below userStories: [{"id", "title", "acceptanceCriteria"}]`,
		"it is a JSON object without userStories, tasks or prd_entries")
}

var (
	// listKeys are the keys of a list of tasks; groupKeys are those of a list of epics or phases with such lists.
	listKeys  = []string{"userstories", "stories", "tasks", "features", "issues", "items", "todos"}
	groupKeys = []string{"epics", "phases", "milestones", "sprints"}
)

// listIn returns the list of tasks in an object, else the list of groups. It prefers a list that is not empty,
// and one of groups.
func listIn(top fields) (list field, ok bool) {
	deep := false
	for _, keys := range [][]string{listKeys, groupKeys} {
		for _, f := range top {
			if !slices.Contains(keys, normalKey(f.key)) {
				continue
			}
			_, nested := listIn(fieldsOf(f.value.Get("0"), 1))
			if !ok || list.value.Raw == "[]" || nested && !deep {
				list, ok, deep = f, true, nested
			}
		}
		if ok && list.value.Raw != "[]" {
			break
		}
	}
	return list, ok
}

// groups reports whether an object groups tasks like an epic: it has a list of tasks and no criteria.
func groups(el field) bool {
	members := fieldsOf(el.value, el.line)
	list, ok := listIn(members)
	return ok && list.value.Get("0").IsObject() && !slices.ContainsFunc(members, func(f field) bool {
		return taskKeys[normalKey(f.key)] == "criteria"
	})
}

// grouped reads the tasks of a group. Its texts are context.
func (im *Imported) grouped(name string, el field, depth int) ([]entry, error) {
	members := fieldsOf(el.value, el.line)
	list, _ := listIn(members)
	e, err := im.readTask(name, el.line, slices.DeleteFunc(members, func(f field) bool { return f.key == list.key }))
	if err != nil {
		return nil, err
	}
	if e.left != "" || len(e.needs) > 0 {
		im.drop("%s: %s: the status and the needs of a group of tasks", e.at(), e.name())
	}
	im.note(filepath.Base(name), strings.TrimSpace(e.title+"\n\n"+e.body))
	read, err := im.entries(name, fieldsOf(list.value, list.line), depth)
	for i := range read {
		read[i].phase = cmp.Or(read[i].phase, list.line)
	}
	return read, err
}

// jsonLines reads issues, one per line.
func (im *Imported) jsonLines(name string, data []byte) error {
	im.Format = formatLines
	var elements fields
	line := 0
	for l := range bytes.Lines(data) {
		line++
		if l = bytes.TrimSpace(l); len(l) == 0 {
			continue
		}
		if _, err := readJSON(name, l, line); err != nil {
			return err
		}
		elements = append(elements, field{value: gjson.ParseBytes(l), line: line})
	}
	return im.objects(name, elements)
}

// bundleFile reads a bundle in the form of write_seed's arguments.
func (im *Imported) bundleFile(name string, data []byte) error {
	b, err := parseBundle(data)
	if err == nil && len(b.faults) > 0 {
		err = errors.New(b.faults[0].String())
	}
	if err != nil {
		return importError(name, 0, "correct the bundle and run it again", "%s", err)
	}
	b.Meta.Source = im.Meta.Source
	im.Format, im.Bundle = formatBundle, *b
	return nil
}

// dropKeys reports the unused keys of a task, each key once, in one line per entry.
func (im *Imported) dropKeys(name string, given fields) {
	var keys []string
	line, noun := 0, "key"
	for _, f := range given {
		empty := slices.Contains([]string{"", `""`, "[]", "{}", "null", "false", "0"}, f.value.Raw)
		if !empty && !im.keys[f.key] {
			line, im.keys[f.key] = cmp.Or(line, f.line), true
			keys = append(keys, quoteShort(f.key))
		}
	}
	if len(keys) > 1 {
		noun = "keys"
	}
	if len(keys) > 0 {
		im.drop("%s:%d: the %s %s", filepath.Base(name), line, noun, strings.Join(keys, ", "))
	}
}

var overviewKeys = []string{"project", "projectname", "feature", "title", "name", "description"}

// overviewOf returns the title of a list of stories.
func overviewOf(top fields) string {
	var said []string
	for _, f := range top {
		if slices.Contains(overviewKeys, normalKey(f.key)) && f.value.Type == gjson.String && f.value.Str != "" {
			said = append(said, f.value.Str)
		}
	}
	return strings.Join(said, ": ")
}
