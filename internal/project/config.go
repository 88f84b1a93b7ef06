package project

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Configures reports whether a file decides how tests run: as a whole, or by its sections.
func Configures(file string) bool {
	if Mixed(file) {
		return true
	}
	parts := strings.Split(file, "/")
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(k.Config, part) })
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
		return MayBeLoaded(file) && k.Loaded != "" && bytes.Contains(content, []byte(k.Loaded))
	})
}

// MayBeLoaded reports whether the name of a file is that of one of which IsLoaded wants to see the content.
func MayBeLoaded(file string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return k.LoadedIn != "" && strings.HasSuffix(file, k.LoadedIn)
	})
}

var testName = pattern.New(`(?i)(^|[/._-])(tests?|specs?)([/._-]|$)|(^|/)__tests__/`)

// IsTest reports whether a file is one of a project's tests, by its name and its place.
func IsTest(file string) bool {
	ext := path.Ext(file)
	return testName().MatchString(file) && slices.ContainsFunc(Kinds, func(k Kind) bool {
		return slices.Contains(k.Code, ext)
	})
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
	rest, own := split(change, of)
	_, theirs := split(seed, of)
	if bytes.Equal(own, theirs) {
		return change
	}
	if len(rest) > 0 && rest[len(rest)-1] != '\n' {
		rest = append(rest, '\n')
	}
	return append(rest, theirs...)
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

// split parts an ini or TOML file into tables of these names, with those below them, and the rest.
func split(data []byte, tables []string) (rest, of []byte) {
	var names []string
	for _, t := range tables {
		names = append(names, regexp.QuoteMeta(t))
	}
	header := regexp.MustCompile(`^\s*\[+\s*(?:` + strings.Join(names, "|") + `)\s*[\].:]`)
	inside := false
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
			inside = header.Match(line)
		}
		if inside {
			of = append(of, line...)
		} else {
			rest = append(rest, line...)
		}
	}
	if n := len(of); n > 0 && of[n-1] != '\n' {
		of = append(of, '\n')
	}
	return rest, of
}
