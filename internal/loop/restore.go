package loop

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
)

// restoreConfig returns a file's content with the seed's configuration and the rest of the change. If the whole file
// is configuration, it returns the seed's content.
func restoreConfig(file string, change, seed []byte) []byte {
	of := project.Sections(file)
	switch {
	// Python ends a line also at a lone carriage return, and no other part could be told from the configuration.
	case len(of) == 0 || change == nil || bytes.Count(change, []byte("\r")) != bytes.Count(change, []byte("\r\n")):
		return seed
	case path.Ext(file) == ".json":
		return restoreJSON(change, seed, of)
	}
	now, was := split(file, change, of), split(file, seed, of)
	if now.keys == was.keys && now.tables == was.tables {
		return change
	}
	if now.rest != "" && !strings.HasSuffix(now.rest, "\n") {
		now.rest += "\n"
	}
	return []byte(was.keys + now.rest + was.tables)
}

func restoreJSON(change, seed []byte, members []string) []byte {
	var now, was map[string]json.RawMessage
	if json.Unmarshal(change, &now) != nil {
		return seed
	}
	_ = json.Unmarshal(seed, &was) // a seed without the file has no configuration
	out := maps.Clone(now)
	for _, m := range members {
		delete(out, m)
		if v, ok := was[m]; ok {
			out[m] = v
		}
	}
	if maps.EqualFunc(out, now, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return change
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return seed
	}
	return append(data, '\n')
}

// parts are the parts of an ini or TOML file: the named tables with their subtables; dotted TOML keys of such a table;
// and the rest.
type parts struct{ keys, tables, rest string }

var (
	tableHeader = pattern.New(`^\[+((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\]"'])*)\]`)
	keyValue    = pattern.New(`^((?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+|\s*\.\s*)+)\s*=(.*)`)
	namePart    = pattern.New(`"(?:[^"\\]|\\.)*"|'[^']*'|[^\s."']+`)
)

// split splits a file into parts.
func split(file string, data []byte, tables []string) (p parts) {
	below := func(name, table string) bool {
		rest, ok := strings.CutPrefix(name, table)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == ':')
	}
	to, table, whole := &p.rest, "", false
	for line := range strings.Lines(string(data)) {
		trimmed := strings.TrimSpace(line)
		if m := tableHeader().FindStringSubmatch(trimmed); m != nil {
			table, to = dotted(m[1]), &p.rest
			if whole = slices.ContainsFunc(tables, func(t string) bool { return below(table, t) }); whole {
				to = &p.tables
			}
		} else if m := keyValue().FindStringSubmatch(trimmed); m != nil && !whole && path.Ext(file) == ".toml" {
			key := strings.TrimPrefix(table+"."+dotted(m[1]), ".")
			to = &p.rest
			if slices.ContainsFunc(tables, func(t string) bool { return below(key, t) || below(t, key) }) {
				to, line = &p.keys, key+" ="+m[2]+"\n"
			}
		}
		*to += line
	}
	for _, s := range []*string{&p.keys, &p.tables} {
		if *s != "" && !strings.HasSuffix(*s, "\n") {
			*s += "\n"
		}
	}
	return p
}

// dotted returns the name of a table or key without quotes and blanks.
func dotted(name string) string {
	var out []string
	for _, part := range namePart().FindAllString(name, -1) {
		if plain, err := strconv.Unquote(part); err == nil {
			part = plain
		}
		out = append(out, strings.Trim(part, "'"))
	}
	return strings.Join(out, ".")
}
