package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// toolDef is one row of the table of tools.
type toolDef struct {
	name        string
	description string
	params      []param
	writes      bool                                       // may change something; left out of read-only tools
	check       func(b *BuiltinTools, in *arguments) error // checks the policy before the call
	run         func(b *BuiltinTools, ctx context.Context, in arguments) (ToolAnswer, error)
}

// param is one argument of a tool. Its kind is a JSON schema type.
type param struct {
	name        string
	kind        string
	description string
	optional    bool
}

// tools returns the table of tools.
func tools() []toolDef {
	path := param{name: "path", kind: "string", description: "path relative to the top of the worktree"}
	return []toolDef{{
		name:        "read_file",
		description: "Read a text file. Very long files are cut, and the answer says so.",
		params:      []param{path},
		check:       checkPath, run: (*BuiltinTools).readFile,
	}, {
		name:        "write_file",
		description: "Write a whole file, with the directories it needs. What was in it is replaced.",
		params:      []param{path, {name: "content", kind: "string", description: "the whole content of the file"}},
		writes:      true, check: checkPath, run: (*BuiltinTools).writeFile,
	}, {
		name: "edit_file",
		description: "Replace one piece of a file. old_string must occur exactly once, white space included; " +
			"give enough of the lines around it to make it unique.",
		params: []param{path,
			{name: "old_string", kind: "string", description: "the exact text to replace"},
			{name: "new_string", kind: "string", description: "the text to put in its place"}},
		writes: true, check: checkPath, run: (*BuiltinTools).editFile,
	}, {
		name: "glob",
		description: "List files whose path matches a pattern, sorted: * and ? within a name, ** across directories, " +
			"{a,b} for alternatives. Dependencies and build products (node_modules, .venv, ...) are left out " +
			"unless the pattern names them.",
		params: []param{{name: "pattern", kind: "string", description: "for example **/*.go or src/*.{ts,tsx}"}},
		check:  checkGlob("pattern"), run: (*BuiltinTools).glob,
	}, {
		name: "grep",
		description: "Search text files line by line with a regular expression (RE2 syntax). Answers path:line:text. " +
			"Dependencies and build products are left out unless path_glob names them.",
		params: []param{{
			name: "pattern", kind: "string",
			description: "the regular expression; (?i) at its start ignores case",
		}, {
			name: "path_glob", kind: "string", optional: true,
			description: "which files to search: a pattern as for glob, a file, a directory, " +
				"or *.py for that ending anywhere",
		}},
		check: checkPathGlob, run: (*BuiltinTools).grep,
	}, {
		name: "bash",
		description: "Run a command with bash in the worktree. It has no input and a time limit; " +
			"what it leaves in the background is ended when it returns. The answer begins with its exit code.",
		params: []param{{name: "command", kind: "string", description: "the command line"},
			{name: "timeout", kind: "number", description: "time limit in seconds", optional: true}},
		writes: true, check: checkCommand, run: (*BuiltinTools).bash,
	}}
}

// spec returns the tool in the shape of an OpenAI-style request.
func (t *toolDef) spec() any {
	props := map[string]any{}
	required := []string{}
	for _, p := range t.params {
		props[p.name] = map[string]any{"type": p.kind, "description": p.description}
		if !p.optional {
			required = append(required, p.name)
		}
	}
	return map[string]any{"type": "function", "function": map[string]any{
		"name":        t.name,
		"description": t.description,
		"parameters": map[string]any{
			"type": "object", "properties": props, "required": required, "additionalProperties": false,
		},
	}}
}

// usage returns the tool's arguments on one line: read_file {path: string}.
func (t *toolDef) usage() string {
	parts := make([]string, len(t.params))
	for i, p := range t.params {
		opt := ""
		if p.optional {
			opt = "?"
		}
		parts[i] = p.name + opt + ": " + p.kind
	}
	return t.name + " {" + strings.Join(parts, ", ") + "}"
}

// arguments are the decoded and checked arguments of a call.
type arguments struct {
	text  map[string]string
	num   map[string]float64
	rel   string // the resolved path set by check, and the pattern's query
	query query
}

// decode reads the arguments of a call, which may be any bytes. It ignores unknown arguments, because other programs'
// tools of the same name have more.
func decode(t *toolDef, args string) (arguments, error) {
	in := arguments{text: map[string]string{}, num: map[string]float64{}}
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(args), &fields); err != nil {
		return in, fmt.Errorf("the arguments of %s are not one JSON object (%w); expected %s", t.name, err, t.usage())
	}
	for _, p := range t.params {
		value, is := fields[p.name]
		text, isText := value.(string)
		number, isNumber := value.(float64)
		switch {
		case p.optional && value == nil:
		case !is:
			return in, fmt.Errorf("the argument %q is missing; expected %s", p.name, t.usage())
		case isText && p.kind == "string":
			in.text[p.name] = text
		case isNumber && p.kind == "number":
			in.num[p.name] = number
		default:
			return in, fmt.Errorf("the argument %q must be a %s; expected %s", p.name, p.kind, t.usage())
		}
	}
	return in, nil
}
