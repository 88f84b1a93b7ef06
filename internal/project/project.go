// Package project has the facts about kinds of projects, a row of Kinds each. It does nothing by itself.
package project

import (
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Kind is one kind of project. Paths in it are slash-separated; names are base names, wherever in a tree they lie.
type Kind struct {
	Name string
	// Manifests are the files that identify a project of the kind and list its dependencies.
	Manifests []string
	// Code are the endings of its source files; there are none for a kind that is only known for its setup.
	Code []string
	// Runners run its tests.
	Runners []Runner
	// Config are files that a check or its libraries read without being told, so that they decide how tests run.
	// Manifests decide too, as Sections says.
	Config []string
	// Sections are the parts of files that decide how tests run, where the rest of the file does not: tables of an ini
	// or TOML file, members of a JSON object.
	Sections map[string][]string
	// Loaded matches code that makes a runner load a source file by itself, in files with the suffix LoadedIn.
	Loaded   pattern.Regexp
	LoadedIn string
	// Locks pin the dependencies of a setup.
	Locks []Lock
	// NoLock installs what a manifest names where no lock file pins it.
	NoLock Lock
	// SetupEnv keeps a setup from installing git hooks and from asking.
	SetupEnv []string
	// Install is the command that installs dependencies without a lock file, "" if that takes several commands.
	Install string
	// Caches are filled by its tools on the way.
	Caches []Cache
	// Products are directories that its tools make in a tree, wherever they lie; Built those that are theirs only
	// beside a manifest.
	Products, Built []string
	// Foreign are directories with other people's code or results that a project may have tracked.
	Foreign []string
}

// Lock is a file that pins dependencies.
type Lock struct {
	File    string // a name, or a pattern as in path.Match
	Holds   string // what it holds where another version of the program has a file of the same name; "" for anything
	Program string // what installs by it
	Setup   string // a line for sh that installs exactly what the file says, into the worktree; "" for none
	Test    string // runs a package's test script, where each of these programs has its own way
}

// Format is the form in which a runner reports its tests to programs.
type Format string

// The formats.
const (
	JUnit   Format = "junit"   // XML, in a file
	GoTest  Format = "go test" // test2json's lines, on standard output
	Jest    Format = "jest"    // jest's JSON, which vitest writes too, in a file
	Mocha   Format = "mocha"   // mocha's JSON, in a file
	NodeLog Format = "node"    // a line for each test, in a file, by a reporter that is handed to node
	// lines for people, on standard output, which nothing else replaces in a stable Rust, among cargo's JSON
	Libtest Format = "libtest"
)

// ReportFile stands in the arguments of a runner for the file that it is to write, Reporter for one with code that
// writes it.
const (
	ReportFile = "{report}"
	Reporter   = "{reporter}"
)

// Runner is a program that runs tests.
type Runner struct {
	Name   string
	Format Format
	Report []string // arguments that make it report, besides what it prints
}

// The names of kinds that checks are known for.
const (
	Python = "python"
	Go     = "go"
	Node   = "node"
	Rust   = "rust"
)

// ByName returns a kind of the table.
func ByName(name string) Kind {
	return Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })]
}

// Runner returns one of the kind's runners.
func (k Kind) Runner(name string) Runner {
	return k.Runners[slices.IndexFunc(k.Runners, func(r Runner) bool { return r.Name == name })]
}

// IsLock reports whether a file pins dependencies.
func IsLock(file string) bool {
	base := path.Base(file)
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return slices.ContainsFunc(k.Locks, func(l Lock) bool { return l.Is(base) })
	})
}

// Is reports whether a file of this name is the lock.
func (l Lock) Is(base string) bool {
	if !strings.Contains(l.File, "*") { // thousands of names are held against each
		return l.File == base
	}
	ok, err := path.Match(l.File, base)
	return ok && err == nil
}

// IsUnlocked reports whether setup installs from a manifest because no lock file of its kind lies beside or above it.
// there reports whether the tree has a file.
func IsUnlocked(file string, there func(file string) bool) bool {
	for _, k := range Kinds {
		if k.NoLock.File != path.Base(file) {
			continue
		}
		for dir := path.Dir(file); ; dir = path.Dir(dir) {
			if slices.ContainsFunc(k.Locks, func(l Lock) bool { return there(path.Join(dir, l.File)) }) {
				return false
			}
			if dir == "." {
				return true
			}
		}
	}
	return false
}

// IsManifest reports whether a file identifies the kind of the project next to it.
func IsManifest(file string) bool {
	base := path.Base(file)
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return slices.Contains(k.Manifests, base) })
}

// IsProduct reports whether a directory of this name is made by tools, wherever it lies.
func IsProduct(base string) bool { return slices.Contains(Products, base) }

// IsBuilt reports whether a directory in a tree is made by tools of the project beside it. there reports whether the
// tree has a file.
func IsBuilt(dir string, there func(file string) bool) bool {
	base := path.Base(dir)
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return slices.Contains(k.Built, base) && slices.ContainsFunc(k.Manifests, func(m string) bool {
			return there(path.Join(path.Dir(dir), m))
		})
	})
}

// IsForeign reports whether a directory of this name holds other people's code or results.
func IsForeign(base string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return slices.Contains(k.Foreign, base) })
}

// Products are the names of directories that tools make in a tree, wherever they lie.
var Products = all(func(k Kind) []string { return k.Products })

// Built are the names of directories that tools make beside a manifest.
var Built = all(func(k Kind) []string { return k.Built })

// all are the names that the kinds have, sorted, each once.
func all(of func(Kind) []string) []string {
	var out []string
	for _, k := range Kinds {
		out = append(out, of(k)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// endings are a name with each of the endings, which a blank separates.
func endings(name, exts string) []string {
	var out []string
	for _, ext := range strings.Fields(exts) {
		out = append(out, name+ext)
	}
	return out
}
