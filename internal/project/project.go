// Package project has the facts about kinds of projects, with one row of Kinds for each. It has no behaviour.
package project

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Kind is one kind of project. Paths in it are slash-separated; names are base names, anywhere in a tree.
type Kind struct {
	Name string
	// Manifests are the files that identify a project of the kind and list its dependencies.
	Manifests []string
	// Code are the endings of its source files; there are none for a kind that is only known for its setup.
	Code []string
	// TestsIn is the suffix of files with tests; "" means any source file.
	TestsIn string
	// Test is the usual command for its tests, "" for the first of Checks that runs tests.
	Test string
	// Runners run its tests.
	Runners []Runner
	// Checks are its commands. Bin has the programs that the project installs for them; Before, which ends in "; ",
	// prepares a shell for them.
	Checks      []Check
	Bin, Before string
	// Apart: packages inside another package are checked separately. Else: only if no other kind is found.
	Apart, Else bool
	// Config are files that decide how tests run, because a check or its libraries read them by default. An ending
	// .* stands for any.
	Config []string
	// Sections are the only parts of some files that decide how tests run: tables of an ini or TOML file, members of a
	// JSON object.
	Sections map[string][]string
	// Loaded matches code that makes a runner load a test file automatically.
	Loaded pattern.Regexp
	// Locks pin the dependencies of a setup.
	Locks []Lock
	// NoLock installs the dependencies of a manifest without a lock file.
	NoLock Lock
	// SetupEnv has variables that stop setup from installing git hooks and from asking questions.
	SetupEnv []string
	// Install is the command that installs dependencies without a lock file, "" if that takes several commands.
	Install string
	// Caches are the caches of its tools.
	Caches []Cache
	// Products are directories that its tools make anywhere in a tree; Built only next to a manifest.
	Products, Built []string
	// Installed are directories of installed dependencies, which are not built from the project's own sources.
	Installed []string
	// Foreign are directories with third-party code or results that a project may track.
	Foreign []string
}

// Lock is a file that pins dependencies.
type Lock struct {
	File    string // a name, or a pattern as in path.Match
	Holds   string // text in it, if another version of the program has a file of the same name; "" for any
	Program string // the program that installs from it
	Setup   string // a shell command that installs exactly the pinned versions into the worktree, or ""
	Test    string // the command that runs a package's test script, if the programs differ in it
}

// Format is the format of a runner's report.
type Format string

// The formats.
const (
	JUnit Format = "junit" // XML, in a file, with tests by their classes
	// the same with tests by file, if it has files
	JUnitFiles Format = "junit by file"
	TRX        Format = "trx"     // .NET's XML
	RSpec      Format = "rspec"   // rspec's JSON
	DartJSON   Format = "dart"    // lines of JSON by dart and flutter
	GoTest     Format = "go test" // test2json's lines, on standard output
	Jest       Format = "jest"    // jest's JSON, which vitest writes too, in a file
	Mocha      Format = "mocha"   // mocha's JSON, in a file
	NodeLog    Format = "node"    // a line for each test, in a file, by a reporter passed to node
	// text lines on standard output, among cargo's JSON; stable Rust has no other format
	Libtest Format = "libtest"
)

// Check is a command of a kind. Of several checks with one name, the first with its signs in the tree counts.
type Check struct {
	Name    string
	Run     string // sh command that begins with the program
	Where   []Sign // one of these exists, if there are any
	Also    Sign   // this exists too
	Unless  Sign   // this does not exist
	Format  Format // format of the report; "" if the exit status counts
	Collect string // the paths of report files that it writes into the tree
	Last    bool   // only if no other check of the kind ran tests
}

// Sign is a file, by a glob below the package, with a text in it.
type Sign struct{ File, Text string }

// ReportFile is a placeholder in a runner's arguments for the report to write, Reporter for a file with code that
// writes it, CoverageDir for the directory of the coverage to write.
const (
	ReportFile  = "{report}"
	Reporter    = "{reporter}"
	CoverageDir = "{coverage}"
)

// Runner is a program that runs tests.
type Runner struct {
	Name   string
	Format Format
	Report []string // arguments for a report besides its output
	// Coverage are the ways to measure the lines that the tests run.
	Coverage []Coverage
}

// Coverage makes a runner write the lines that its tests run, in the directory CoverageDir.
type Coverage struct {
	Where []Sign   // a sign shows that the project measures it
	Own   bool     // the project's own test command measures it
	Args  []string // further arguments of the runner
	Part  []string // arguments of a partial run, which ignore the project's threshold
	Env   []string // KEY=value
	After string   // a line for sh that writes the lines after the tests
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

// Tests returns the acceptance test files that the kind's checks run.
func (k Kind) Tests(files []string) (out []string) {
	for _, f := range files {
		if slices.Contains(k.Code, path.Ext(f)) && strings.HasSuffix(f, k.TestsIn) {
			out = append(out, f)
		}
	}
	return out
}

// TestCommand returns the usual command that runs the tests of the kind, "" for none.
func (k Kind) TestCommand() string {
	at := slices.IndexFunc(k.Checks, func(c Check) bool { return strings.Contains(c.Name, "test") })
	if k.Test != "" || at < 0 {
		return k.Test
	}
	return k.Checks[at].Name
}

// Runner returns one of the kind's runners.
func (k Kind) Runner(name string) Runner {
	return k.Runners[slices.IndexFunc(k.Runners, func(r Runner) bool { return r.Name == name })]
}

// IsLock reports whether a file pins dependencies.
func IsLock(file string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return k.IsLock(file) })
}

// IsLock reports whether a file pins the kind's dependencies.
func (k Kind) IsLock(file string) bool {
	base := path.Base(file)
	return slices.ContainsFunc(k.Locks, func(l Lock) bool { return Named(base, l.File) })
}

// Named reports whether a base name matches one of the names, which may be patterns as in path.Match.
func Named(base string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		is := name == base
		if !is && strings.Contains(name, "*") { // thousands of names are compared with each
			is, _ = path.Match(name, base)
		}
		return is
	})
}

// IsUnlocked reports whether setup installs from a manifest because no lock file of its kind is next to it or above it.
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
func IsManifest(file string) bool { return Named(path.Base(file), manifests...) }

// IsInstalled reports whether a directory has installed dependencies, such as a virtual environment of any name.
func IsInstalled(dir string) bool {
	venv, _ := filepath.Glob(filepath.Join(text.GlobQuote(dir), "pyvenv.cfg"))
	below, _ := filepath.Glob(filepath.Join(text.GlobQuote(dir), "*", "pyvenv.cfg"))
	return slices.Contains(installed, filepath.Base(dir)) || len(venv)+len(below) > 0
}

// IsCode reports whether a file is a source file of some kind.
func IsCode(file string) bool { return slices.Contains(code, path.Ext(file)) }

// IsProduct reports whether tools make a directory of this name, anywhere in a tree.
func IsProduct(base string) bool { return slices.Contains(Products, base) }

// IsBuilt reports whether a directory in a tree is made by tools of the project next to it. there reports whether the
// tree has a file.
func IsBuilt(dir string, there func(file string) bool) bool {
	base := path.Base(dir)
	return slices.ContainsFunc(Kinds, func(k Kind) bool {
		return slices.Contains(k.Built, base) && slices.ContainsFunc(k.Manifests, func(m string) bool {
			return there(path.Join(path.Dir(dir), m))
		})
	})
}

// OnDisk returns a function that reports whether a directory has a file. The file's name may be a pattern.
func OnDisk(top string) func(file string) bool {
	return func(file string) bool {
		dir := filepath.Join(top, filepath.FromSlash(path.Dir(file)))
		found, _ := filepath.Glob(filepath.Join(text.GlobQuote(dir), path.Base(file)))
		return len(found) > 0
	}
}

// IsForeign reports whether a directory of this name has third-party code or results.
func IsForeign(base string) bool { return slices.Contains(foreign, base) }

// Vendored returns the directory of vendored code above a file of a tree, or the file in its place, or "".
func Vendored(file string) string {
	at := ""
	for part := range strings.SplitSeq(file, "/") {
		if at = path.Join(at, part); IsForeign(part) || IsProduct(part) {
			return at
		}
	}
	return ""
}

// Leftovers are patterns, as of path.Match, of files that tools leave anywhere in a tree.
var Leftovers = []string{".DS_Store", "Thumbs.db", ".coverage", ".coverage.*", "npm-debug.log*", "yarn-debug.log*",
	"yarn-error.log*", ".pnpm-debug.log*"}

// IsLeftover reports whether a file of this name is left by a tool.
func IsLeftover(base string) bool { return Named(base, Leftovers...) }

// Products and Built are the names of directories that tools make anywhere in a tree, and next to a manifest.
var (
	Products  = all(func(k Kind) []string { return k.Products })
	Built     = all(func(k Kind) []string { return k.Built })
	manifests = all(func(k Kind) []string { return k.Manifests })
	configs   = all(func(k Kind) []string { return strings.Fields(strings.ToLower(strings.Join(k.Config, " "))) })
	code      = all(func(k Kind) []string { return k.Code })
	installed = all(func(k Kind) []string { return k.Installed })
	foreign   = all(func(k Kind) []string { return k.Foreign })
)

// all returns the names that the kinds have, sorted, each once.
func all(of func(Kind) []string) []string {
	var out []string
	for _, k := range Kinds {
		out = append(out, of(k)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
