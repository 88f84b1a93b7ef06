package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// kind is the kind of a named agent. Each setting of tilth.agent.<name>.* applies to some kinds.
type kind int

const (
	aRow kind = 1 << iota
	aRowByACP
	own
	ownByACP
	byAny = aRow | aRowByACP | own | ownByACP
)

var kindWords = map[kind]string{aRow: "a row of the table", aRowByACP: "a row of the table that speaks ACP",
	own: "a program of your own", ownByACP: "a program of your own that speaks ACP"}

// customKeys are the documented settings. As in git, names are compared without case.
var customKeys = []struct {
	name string
	of   kind
}{
	{"acp", byAny}, {"args", aRow | aRowByACP}, {"auth", aRowByACP | ownByACP}, {"done", own}, {"env", byAny},
	{"format", own}, {"mode", aRowByACP | ownByACP}, {"model", byAny}, {"notFound", own}, {"path", aRow | aRowByACP},
	{"presetId", own}, {"readOnlyMode", aRowByACP | ownByACP}, {"resume", own}, {"start", own | ownByACP},
	{"turnLimit", own}, {"usageLimit", own},
}

// keysOf returns the keys that apply to some kind.
func keysOf(some kind) (names []string) {
	for _, k := range customKeys {
		if k.of&some != 0 {
			names = append(names, k.name)
		}
	}
	return names
}

// Key returns the documented spelling of a program's key.
func Key(name, key string) string {
	for _, k := range customKeys {
		if strings.EqualFold(k.name, key) {
			key = k.name
		}
	}
	return "tilth.agent." + name + "." + key
}

// Named returns the program with a name: a row of the table, or a program that settings describe or change. settings
// maps the last part of each tilth.agent.<name>.* key to its value.
func Named(name string, settings map[string]string) (*Program, error) {
	if settings != nil {
		return custom(name, settings)
	}
	var known []string
	for _, p := range allPrograms() {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	return nil, fmt.Errorf("unknown agent program %q; known are %s, and those described in tilth.agent.<name>", name,
		strings.Join(known, ", "))
}

// KnownKeys refuses an unknown key of tilth.agent.<name>.*, also of an unused program.
func KnownKeys(name string, settings map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		if !has(keysOf(byAny), k) {
			return fmt.Errorf("%s is not known (known are %s)", Key(name, k), strings.Join(keysOf(byAny), ", "))
		}
	}
	return nil
}

// has reports whether a list has a key.
func has(names []string, key string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, key) })
}

// custom returns the program that tilth.agent.<name>.* describes. settings maps the last part of each key to its
// value. If the name is a row of the table, it returns that row with another path or more arguments. Errors name the
// key.
func custom(name string, settings map[string]string) (*Program, error) {
	if err := KnownKeys(name, settings); err != nil {
		return nil, err
	}
	set := map[string]string{}
	for k, v := range settings {
		set[strings.ToLower(k)] = v
	}
	env := strings.Fields(set["env"])
	for _, v := range env {
		if !variable().MatchString(v) {
			return nil, fmt.Errorf("%s: %q is not the name of a variable", Key(name, "env"), v)
		}
	}
	p, err := rowOf(name, set)
	if err == nil {
		p.keyVars = append(p.keyVars, env...)
	}
	return p, err
}

// variable matches the name of an environment variable.
var variable = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// rowOf returns the row that settings describe or change. The caller sets the model.
func rowOf(name string, set map[string]string) (*Program, error) {
	row, isRow := byName(name)
	speaks, err := boolOf(name, "acp", set)
	if err != nil {
		return nil, err
	}
	of := own
	switch always := isRow && row.acp != nil; {
	case always && set["acp"] != "" && !speaks:
		return nil, fmt.Errorf("%s: %s speaks only ACP", Key(name, "acp"), name)
	case isRow && (always || speaks):
		of = aRowByACP
	case isRow:
		of = aRow
	case speaks:
		of = ownByACP
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if set[key] != "" && !has(keysOf(of), key) {
			return nil, fmt.Errorf("%s has no effect: %s is %s; its keys are %s", Key(name, key), name,
				kindWords[of], strings.Join(keysOf(of), ", "))
		}
	}
	p, start, path := row, strings.TrimSpace(set["start"]), set["path"]
	switch {
	case of == own && start == "":
		return nil, fmt.Errorf("%s is not set; it is the shell command for one turn", Key(name, "start"))
	case of == ownByACP && start == "":
		return nil, fmt.Errorf("%s: there is no command; set %s to the shell command that starts it", Key(name, "acp"),
			Key(name, "start"))
	case strings.Contains(path, "/") && !filepath.IsAbs(path):
		return nil, fmt.Errorf("%s: %s names a file in the worktree; use an absolute path", Key(name, "path"), path)
	case of == own:
		return describe(name, set)
	case of == ownByACP:
		p = byACP(&Program{Name: name, Title: name, Binary: "/bin/sh"}, acpRow{command: []string{"-c", set["start"]}})
	case of == aRowByACP:
		p = acpRowOf(row)
	}
	p.Binary, p.Args = cmp.Or(path, p.Binary), append(p.Args, strings.Fields(set["args"])...)
	if p.acp != nil {
		p.acp.mode, p.acp.readOnlyMode, p.acp.auth = set["mode"], set["readonlymode"], set["auth"]
	}
	return p, nil
}

// boolOf reads a key that is true or false.
func boolOf(name, key string, set map[string]string) (bool, error) {
	switch strings.ToLower(set[key]) {
	case "true", "yes", "on", "1":
		return true, nil
	case "", "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%s: %q is not a boolean", Key(name, key), set[key])
}

// describe makes a row from the user's settings.
func describe(name string, set map[string]string) (*Program, error) {
	p := &Program{
		Name: name, Title: name, Binary: "/bin/sh", base: []string{"-c", set["start"]}, shellCommands: true,
		Terminal: "a line of output", read: readText, finish: finishText,
	}
	if err := p.borrow(name, set["format"]); err != nil {
		return nil, err
	}
	var err error
	if p.preset, err = boolOf(name, "presetid", set); err != nil {
		return nil, err
	}
	if set["resume"] != "" {
		p.CanResume, p.resume = true, []string{"-c", set["resume"]}
	}
	forms := map[string]pattern.Regexp{}
	for _, key := range []string{"notfound", "usagelimit", "turnlimit", "done"} {
		if set[key] == "" {
			continue
		}
		form, err := regexp.Compile(set[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Key(name, key), err)
		}
		forms[key] = func() *regexp.Regexp { return form }
	}
	own := []rule{{how: TurnLimit, text: forms["turnlimit"]}, {how: UsageLimit, text: forms["usagelimit"]},
		{how: NotFound, text: forms["notfound"]}}
	p.rules = append(slices.DeleteFunc(own, func(r rule) bool { return r.text == nil }), p.rules...)
	if p.done = forms["done"]; p.done != nil {
		p.Terminal = "a line that matches " + Key(name, "done")
	}
	return p, nil
}

// borrow copies the event reader and related fields from a row of the table.
func (p *Program) borrow(name, format string) error {
	if format == "" || format == "text" {
		return nil
	}
	rowName, isEvents := strings.CutSuffix(format, "-json")
	row, ok := byName(rowName)
	if !isEvents || !ok || row.acp != nil {
		return fmt.Errorf("%s: %q is not known (text, claude-json, codex-json)", Key(name, "format"), format)
	}
	p.read, p.watch, p.finish, p.Terminal, p.rules = row.read, row.watch, nil, row.Terminal, row.rules
	p.countsTurns, p.keyVars, p.Login, p.state = row.countsTurns, row.keyVars, row.Login, row.state
	return nil
}

// shellVars passes the turn to the user's shell commands in variables, as git passes files to its merge tools.
func shellVars(t *Turn) []string {
	turns, readOnly := "", ""
	if t.MaxTurns > 0 {
		turns = strconv.Itoa(t.MaxTurns)
	}
	if t.ReadOnly {
		readOnly = "1"
	}
	return []string{"TILTH_CONVERSATION=" + t.Conversation.ID, "TILTH_MODEL=" + t.Model, "TILTH_MAX_TURNS=" + turns,
		"TILTH_READ_ONLY=" + readOnly}
}

// maxText limits the kept output of a text program.
const maxText = 256 << 10

// readText reads the output of a program without events, all of which is its message.
func readText(s *stream, line []byte) {
	text := string(line)
	if id := conversationLine().FindStringSubmatch(text); id != nil {
		s.id(id[1])
		return
	}
	if s.program.done != nil && s.program.done().MatchString(text) {
		s.success = true
	}
	s.partial = tailOf(append(append(s.partial, line...), '\n'), maxText)
}

// conversationLine matches the line that names the conversation of a program without events.
var conversationLine = pattern.New(`^TILTH_CONVERSATION=(\S+)\s*$`)

// finishText ends the message of a program without events. Without a line that reports success, the exit status and
// the presence of output decide.
func finishText(s *stream, _ *history) {
	s.turns = 1
	s.say(string(s.partial))
	if s.program.done == nil && s.text != "" {
		s.success = true
	}
}

// tailOf keeps the end of a text, from the start of a line if possible. It acts only at twice the length, so that
// appending stays cheap.
func tailOf(text []byte, n int) []byte {
	if len(text) <= 2*n {
		return text
	}
	tail := text[len(text)-n:]
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
		tail = tail[i+1:]
	}
	return append([]byte(nil), tail...)
}
