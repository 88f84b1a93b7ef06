package project

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Configures reports whether a file decides how tests run: as a whole, or by its sections.
func Configures(file string) bool {
	if Mixed(file) {
		return true
	}
	return slices.ContainsFunc(strings.Split(file, "/"), func(part string) bool {
		return slices.Contains(versions, part) ||
			slices.ContainsFunc(Kinds, func(k Kind) bool { return slices.Contains(k.Config, part) })
	})
}

// sections are the parts of a file that decide how tests run, none where the whole file does.
func sections(file string) []string {
	var out []string
	for _, k := range Kinds {
		out = append(out, k.Sections[path.Base(file)]...)
	}
	return out
}

// Mixed reports whether only a part of the file decides how tests run.
func Mixed(file string) bool { return len(sections(file)) > 0 }

// IsLoaded reports whether a source file has a part that a runner looks for in all of them and runs by itself.
func IsLoaded(file string, content []byte) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return MayBeLoaded(file) && k.Loaded != nil && k.Loaded().Match(content)
	})
}

// MayBeLoaded reports whether IsLoaded needs the content of a file with this name.
func MayBeLoaded(file string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return k.LoadedIn != "" && strings.HasSuffix(file, k.LoadedIn)
	})
}

var testName = pattern.New(`(?i)(^|[/._-])(tests?|specs?)([/._-]|$)|(^|/)__tests__/|[.]bats$`)

// IsTest reports whether a file is one of a project's tests, by its name and its place.
func IsTest(file string) bool { return testName().MatchString(file) && !IsData(file) }

// dataEndings are those of files that lie beside tests and are none.
const dataEndings = ".json .jsonl .txt .md .csv .tsv .yaml .yml .toml .xml .html .snap .golden .sql .png .lock .ini " +
	".cfg .bin .dat .log .rst .svg .jpg .gif .pdf"

// IsData reports whether a file that is called as tests are goes with one and is none itself.
func IsData(file string) bool {
	return slices.Contains(strings.Fields(dataEndings), strings.ToLower(path.Ext(file)))
}

// Restore is a file with the rest of its content as a change has it, and with the configuration of the seed's. Where
// all of it is configuration, that is the seed's content.
func Restore(file string, change, seed []byte) []byte {
	of := sections(file)
	switch {
	case len(of) == 0 || change == nil:
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

// parts are those of an ini or TOML file: tables of some names, with those below them; keys of TOML that lie in such a
// table without its header, by their whole names; and the rest.
type parts struct{ keys, tables, rest string }

var (
	tableHeader = pattern.New(`^\[+((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\]"'])*)\]`)
	keyValue    = pattern.New(`^((?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+|\s*\.\s*)+)\s*=(.*)`)
	namePart    = pattern.New(`"(?:[^"\\]|\\.)*"|'[^']*'|[^\s."']+`)
)

// split parts a file.
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

// dotted is the name of a table or a key without quotes and blanks.
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
