package project

import (
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Configures reports whether a file decides how tests run: as a whole, or by its sections. A runner finds a file of its
// configuration under a name in any case where the file system ignores case.
func Configures(file string) bool {
	return Mixed(file) || slices.ContainsFunc(strings.Split(strings.ToLower(file), "/"), func(part string) bool {
		stem := strings.TrimSuffix(part, path.Ext(part))
		return slices.Contains(configs, part) || stem != "" && slices.Contains(configs, stem+".*")
	})
}

// Shadows reports whether a file would be imported in place of a module of Python that pytest loads only when the tree
// can be imported from.
func Shadows(base string) bool {
	module, is := strings.CutSuffix(base, ".py")
	return is && slices.Contains([]string{"bdb", "cmd", "code", "codeop", "doctest", "getpass", "pdb", "tracemalloc",
		"unittest"}, module)
}

// Sections returns the parts of a file that decide how tests run; none if the whole file does.
func Sections(file string) []string {
	var out []string
	for _, k := range Kinds {
		out = append(out, k.Sections[strings.ToLower(path.Base(file))]...)
	}
	return out
}

// Mixed reports whether only a part of the file decides how tests run.
func Mixed(file string) bool { return len(Sections(file)) > 0 }

// IsLoaded reports whether a source file has a part that runners find in any file and run automatically.
func IsLoaded(file string, content []byte) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return MayBeLoaded(file) && k.Loaded != nil && k.Loaded().Match(content)
	})
}

// MayBeLoaded reports whether IsLoaded needs the content of a file with this name.
func MayBeLoaded(file string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return k.Loaded != nil && strings.HasSuffix(file, k.TestsIn)
	})
}

var testName = pattern.New(`(?i)(^|[/._-])(tests?|specs?)([/._-]|$)|(^|/)__tests__/|[.]bats$`)

// snapshot matches the files with the output that tests expect.
var snapshot = pattern.New(`(?i)(^|/)(__(image_)?snapshots__|[^/]+-snapshots)/|[.](snap|ambr|golden)$|` +
	`[.](approved|verified)[.]\w+$`)

// IsTest reports whether a file is a test or a snapshot of a test, by name and path.
func IsTest(file string) bool {
	return testName().MatchString(file) && !IsData(file) || snapshot().MatchString(file)
}

// dataEndings are the endings of data files next to tests.
const dataEndings = ".json .jsonl .txt .md .csv .tsv .yaml .yml .toml .xml .html .snap .golden .sql .png .lock .ini " +
	".cfg .bin .dat .log .rst .svg .jpg .gif .pdf"

// IsData reports whether a file that is named like a test is data of a test.
func IsData(file string) bool {
	return slices.Contains(strings.Fields(dataEndings), strings.ToLower(path.Ext(file)))
}
