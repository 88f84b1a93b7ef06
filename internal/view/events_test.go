package view

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

// structOf is the struct of a type of event.
func structOf(typ string) reflect.Type { return reflect.TypeOf(record.Decode(typ, nil)).Elem() }

// membersOf is the names that a struct has in JSON.
func membersOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// sizeMembers stand for an event that is too big for a page.
var sizeMembers = []string{"text"}

var used = regexp.MustCompile(`\b([a-z])\.([a-z_$]\w*)\b`)

// expectMembers compares the members that a script reads from the variable v with the existing ones.
func expectMembers(t *testing.T, where, script, v string, there []string) {
	t.Helper()
	for _, m := range used.FindAllStringSubmatch(script, -1) {
		if m[1] == v && !slices.Contains(there, m[2]) && !slices.Contains(sizeMembers, m[2]) {
			t.Errorf("%s takes %s.%s, which the struct has not", where, v, m[2])
		}
	}
}

// functionOf is the source of a function of a script.
func functionOf(t *testing.T, script, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?sm)^function ` + name + `\(.*?^}`).FindString(script)
	if m == "" {
		t.Fatalf("no function %s", name)
	}
	return m
}

// The page knows every type of event, and no field that its struct lacks.
func TestPageKnowsEveryEvent(t *testing.T) {
	script := readPage("event.js") + readPage("folds.js")
	types := record.Labels()
	for typ, label := range types {
		if label == "" {
			t.Errorf("%s has no label", typ)
		}
	}
	draws := regexp.MustCompile(`(?s)const RENDER = \{\n(.*?)\n\};`).FindStringSubmatch(script)
	if draws == nil {
		t.Fatal("no RENDER")
	}
	members := map[string][]string{} // of all types with the same display
	for row := range strings.Lines(draws[1]) {
		typ, draw, _ := strings.Cut(strings.TrimSpace(row), ": ")
		if types[typ] == "" {
			t.Errorf("the page draws %s, which is no type of event", typ)
			continue
		}
		if !strings.Contains(draw, "=>") {
			draw = functionOf(t, script, strings.TrimSuffix(draw, ","))
		}
		members[draw] = append(members[draw], membersOf(structOf(typ))...)
	}
	for draw, there := range members {
		expectMembers(t, strings.SplitN(draw, "\n", 2)[0], draw, "p", there)
	}
	for _, group := range strings.Split(functionOf(t, script, "metaOf"), "    case ")[1:] {
		typ := strings.Trim(strings.SplitN(group, "\n", 2)[0], `": {`)
		if strings.Contains(group, "return") {
			expectMembers(t, "the heading of "+typ, group, "p", membersOf(structOf(typ)))
		}
	}
	result, channel := reflect.TypeFor[record.ValidatorResult](), reflect.TypeFor[record.Channel]()
	expectMembers(t, "validatorRun", functionOf(t, script, "validatorRun"), "r", membersOf(result))
	expectMembers(t, "memoryLoad", functionOf(t, script, "memoryLoad"), "c", append(membersOf(channel), "name"))
	for _, name := range []string{"groups.js", "live.js"} {
		expectMembers(t, name, readPage(name), "f", membersOf(reflect.TypeFor[facts]()))
	}
}
