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

// customKeys are the settings of tilth.agent.<name>.*. Names are compared without case, as git's are.
var customKeys = []string{
	"acp", "args", "auth", "done", "env", "format", "mode", "model", "notfound", "path", "presetid", "readonlymode",
	"resume", "start", "turnlimit", "usagelimit",
}

// spelled are the keys as they are documented.
var spelled = map[string]string{"notfound": "notFound", "presetid": "presetId", "readonlymode": "readOnlyMode",
	"turnlimit": "turnLimit", "usagelimit": "usageLimit"}

// Key is a key of a program as it is documented.
func Key(name, key string) string {
	key = strings.ToLower(key)
	return "tilth.agent." + name + "." + cmp.Or(spelled[key], key)
}

// Named returns the program of a name: a row of the table, or what settings, those of tilth.agent.<name>.* by the last
// part of their keys, describe or change. nil means that there are none.
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

// KnownKeys refuses a key of tilth.agent.<name>.* that means nothing. Nobody need use the program.
func KnownKeys(name string, settings map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(customKeys, strings.ToLower(k)) {
			return fmt.Errorf("tilth.agent.%s.%s is not known (known are %s)", name, k, strings.Join(customKeys, ", "))
		}
	}
	return nil
}

// custom returns the program that tilth.agent.<name>.* describes. settings maps the last part of each key to its
// value. With the name of a row of the table it is that row with another path or more arguments. Errors name the key.
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
			return nil, fmt.Errorf("tilth.agent.%s.env: %q is no name of a variable", name, v)
		}
	}
	delete(set, "env")
	delete(set, "model") // the caller's
	p, err := rowOf(name, set)
	if err == nil {
		p.keyVars = append(p.keyVars, env...)
	}
	return p, err
}

// variable matches the name of a variable of the environment.
var variable = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func rowOf(name string, set map[string]string) (*Program, error) {
	row, ok := byName(name)
	byACP, err := boolOf(name, "acp", set)
	if err != nil {
		return nil, err
	}
	speaks := ok && row.acp != nil
	if speaks && set["acp"] != "" && !byACP {
		return nil, fmt.Errorf("%s: %s speaks nothing else", Key(name, "acp"), name)
	}
	if byACP || speaks {
		return acpRowFor(name, row, set)
	}
	for _, key := range []string{"auth", "mode", "readonlymode"} {
		if set[key] != "" {
			return nil, fmt.Errorf("%s means something only with %s=true", Key(name, key), Key(name, "acp"))
		}
	}
	delete(set, "acp")
	if ok {
		return adjustRow(row, set)
	}
	for _, key := range []string{"path", "args"} {
		if set[key] != "" {
			return nil,
				fmt.Errorf("tilth.agent.%s.%s: %s is no row of the table; describe it with tilth.agent.%s.start",
					name, key, name, name)
		}
	}
	if strings.TrimSpace(set["start"]) == "" {
		return nil, fmt.Errorf("tilth.agent.%s.start is not set; it is the shell command for one turn", name)
	}
	return describe(name, set)
}

// acpRowFor makes the row of a program that speaks the Agent Client Protocol: a known one, or one of the user's.
func acpRowFor(name string, row *Program, set map[string]string) (p *Program, err error) {
	for _, key := range []string{"done", "format", "notfound", "presetid", "resume", "turnlimit", "usagelimit"} {
		if set[key] != "" {
			return nil, fmt.Errorf("%s means nothing with %s=true", Key(name, key), Key(name, "acp"))
		}
	}
	mode, readOnlyMode, auth := set["mode"], set["readonlymode"], set["auth"]
	for _, key := range []string{"acp", "auth", "mode", "readonlymode"} {
		delete(set, key)
	}
	switch {
	case row != nil:
		p, err = adjustRow(acpRowOf(row), set)
	case set["path"] != "" || set["args"] != "":
		key := "path"
		if set["path"] == "" {
			key = "args"
		}
		return nil, fmt.Errorf("%s: %s is no row of the table; put it into %s", Key(name, key), name,
			Key(name, "start"))
	case strings.TrimSpace(set["start"]) == "":
		return nil, fmt.Errorf("%s: there is no command; set %s to the shell command that starts it", Key(name, "acp"),
			Key(name, "start"))
	default:
		p = byACP(&Program{Name: name, Title: name, Binary: "/bin/sh"}, acpRow{command: []string{"-c", set["start"]}})
	}
	if err == nil {
		p.acp.mode, p.acp.readOnlyMode, p.acp.auth = mode, readOnlyMode, auth
	}
	return p, err
}

// boolOf reads a key that is true or false.
func boolOf(name, key string, set map[string]string) (bool, error) {
	switch strings.ToLower(set[key]) {
	case "true", "yes", "on", "1":
		return true, nil
	case "", "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%s: %q is no boolean", Key(name, key), set[key])
}

// adjustRow changes where a row's program is and what more it is told.
func adjustRow(row *Program, set map[string]string) (*Program, error) {
	for key, value := range set {
		if key != "path" && key != "args" && value != "" {
			return nil,
				fmt.Errorf("tilth.agent.%s.%s: %s is a row of the table, of which only path, args and env can be set",
					row.Name, key, row.Name)
		}
	}
	if path := set["path"]; path != "" {
		if strings.Contains(path, "/") && !filepath.IsAbs(path) {
			return nil, fmt.Errorf("tilth.agent.%s.path: %s would be a file of the worktree; make it absolute",
				row.Name, path)
		}
		row.Binary = path
	}
	row.Args = append(row.Args, strings.Fields(set["args"])...)
	return row, nil
}

// describe makes a row from the user's settings.
func describe(name string, set map[string]string) (*Program, error) {
	p := &Program{
		Name: name, Title: name, Binary: "/bin/sh", base: []string{"-c", set["start"]}, shellCommands: true,
		Terminal: "exit status 0 after a line of output", read: readText, finish: finishText,
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
			return nil, fmt.Errorf("tilth.agent.%s.%s: %w", name, key, err)
		}
		forms[key] = func() *regexp.Regexp { return form }
	}
	own := []rule{{how: TurnLimit, text: forms["turnlimit"]}, {how: UsageLimit, text: forms["usagelimit"]},
		{how: NotFound, text: forms["notfound"]}}
	p.rules = append(slices.DeleteFunc(own, func(r rule) bool { return r.text == nil }), p.rules...)
	if p.done = forms["done"]; p.done != nil {
		p.Terminal = "a line that matches tilth.agent." + name + ".done"
	}
	return p, nil
}

// borrow takes the way to read events, and what goes with it, from a row of the table.
func (p *Program) borrow(name, format string) error {
	if format == "" || format == "text" {
		return nil
	}
	rowName, isEvents := strings.CutSuffix(format, "-json")
	row, ok := byName(rowName)
	if !isEvents || !ok {
		return fmt.Errorf("tilth.agent.%s.format: %q is not known (text, claude-json, codex-json, gemini-json, "+
			"opencode-json)", name, format)
	}
	p.read, p.watch, p.finish, p.Terminal, p.rules = row.read, row.watch, nil, row.Terminal, row.rules
	p.countsTurns, p.keyVars, p.Login, p.state = row.countsTurns, row.keyVars, row.Login, row.state
	return nil
}

// shellVars hands the turn to the user's shell commands, as git hands files to its merge tools.
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

// maxText is how much of a text program's output is kept as its message.
const maxText = 256 << 10

// readText takes the output of a program without events: all of it is the message.
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

// conversationLine is how a program without events can say its conversation's id.
var conversationLine = pattern.New(`^TILTH_CONVERSATION=(\S+)\s*$`)

// finishText ends the message of a program without events. Without a line of its own that says so, there is only the
// exit status to go by, and that it said anything at all.
func finishText(s *stream, _ *history) {
	s.turns = 1
	s.flush()
	if s.program.done == nil && s.text != "" {
		s.success = true
	}
}

// tailOf keeps the end of a text, beginning with a whole line where it has one. It only acts at twice the length, so
// that adding to the text stays cheap.
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
