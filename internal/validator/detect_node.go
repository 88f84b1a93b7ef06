package validator

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
)

func init() { finders[project.Node] = node }

// nodeExts are the extensions of files that may have tests.
var nodeExts = project.ByName(project.Node).Code

// nodePackage is one package.json and the tests below it.
type nodePackage struct {
	dir     string
	scripts map[string]string
	manager []string // the command line that runs the test script

	all, required, later []string // relative to dir
}

// node runs the test script of every package.
func node(_ context.Context, p *layout) []Validator {
	dirs := p.nodePackages()
	var vs []Validator
	for _, dir := range dirs {
		n := p.nodePackage(dir, dirs)
		for _, v := range append(n.validators(), n.scriptChecks()...) {
			v.Dir = dir
			v.Env = append(v.Env, "NO_COLOR=1", p.pathTo("node_modules/.bin", dir))
			vs = append(vs, v)
		}
	}
	return vs
}

// everyPackage matches a root's test script that runs the tests of its workspace's packages.
var everyPackage = pattern.New(`\s(--workspaces|-ws|--recursive|-r)\b|\bworkspaces (foreach|run)\b|` +
	`\b(turbo|nx|lerna|wireit|moon|rush|wsrun)\b`)

// nodePackages returns the outermost packages, and those inside with a test script that no outer script runs.
func (p *layout) nodePackages() (dirs []string) {
	all := p.DirsOf("package.json")
	others := slices.Concat(p.Homes(project.ByName("deno")), p.Homes(project.ByName("bun")))
	if len(all)+len(others) == 0 && len(packages.Ending(p.required(), nodeExts...)) > 0 {
		return []string{"."}
	}
	all = slices.DeleteFunc(all, func(dir string) bool {
		return slices.Contains(others, dir) && !isTestScript(p.scripts(dir)["test"])
	})
	for _, dir := range packages.Outermost(all) {
		inner := packages.Below(all, dir)
		dirs = append(dirs, dir)
		if everyPackage().MatchString(p.scripts(dir)["test"]) {
			continue
		}
		for _, sub := range inner {
			if sub = path.Join(dir, sub); sub != dir && isTestScript(p.scripts(sub)["test"]) {
				dirs = append(dirs, sub)
			}
		}
	}
	return dirs
}

// scripts are a package.json's scripts. A damaged file has none; the test runner reports the damage.
func (p *layout) scripts(dir string) map[string]string {
	var manifest map[string]json.RawMessage // the fields of a struct would match names in any case
	var scripts map[string]string
	_ = json.Unmarshal([]byte(p.Read(path.Join(dir, "package.json"))), &manifest)
	_ = json.Unmarshal(manifest["scripts"], &scripts)
	return scripts
}

func isTestScript(script string) bool {
	return strings.TrimSpace(script) != "" && !noTestYet().MatchString(script)
}

func (p *layout) nodePackage(dir string, dirs []string) nodePackage {
	n := nodePackage{dir: dir, scripts: p.scripts(dir)}
	n.all = packages.Owned(packages.Ending(p.Files, nodeExts...), dir, dirs)
	n.required = packages.Owned(packages.Ending(p.required(), nodeExts...), dir, dirs)
	n.later = packages.Owned(packages.Ending(p.later, nodeExts...), dir, dirs)

	n.manager = []string{"npm", "test", "--"}
	kind := project.ByName(project.Node)
	kind.NoLock = project.Lock{}
	for _, at := range packages.Above(dir) {
		if lock, ok := p.Lock(kind, at); ok && packages.Has(lock.Program, p.Root, p.Env) {
			n.manager = strings.Fields(lock.Test)
			break
		}
	}
	return n
}

// scriptChecks returns the package's own scripts for other checks than tests.
func (n nodePackage) scriptChecks() (vs []Validator) {
	for _, script := range []string{"lint", "typecheck", "type-check", "check-types"} {
		if n.scripts[script] == "" {
			continue
		}
		run := n.manager[0] + " run " + script
		vs = append(vs, Validator{Name: at(run, n.dir), program: n.manager[0],
			Command: lineOf("", project.Check{Run: run}, n.later)})
	}
	return vs
}

// runner is a test runner that accepts a list of tests to run or to leave out.
type runner struct {
	name  string
	match pattern.Regexp // on the last command of the test script
	only  func(files []string) []string
	but   func(files []string) []string

	none    []string // arguments with which a run without tests passes
	nothing int      // exit code of a run without tests, if no argument makes that pass
}

func each(flag string) func([]string) []string {
	return func(files []string) []string {
		var out []string
		for _, f := range files {
			out = append(out, flag, f)
		}
		return out
	}
}

// runners are the runners that accept arguments after the script's own.
var runners = []runner{{
	name:  "jest",
	match: pattern.New(`(^|[\s/])(jest(\.js)?|react-scripts test)(\s|$)`),
	only:  func(files []string) []string { return append([]string{"--runTestsByPath"}, files...) },
	but: func(files []string) []string {
		out := []string{"--testPathIgnorePatterns", "/node_modules/"}
		for _, f := range files {
			out = append(out, "/"+regexp.QuoteMeta(f)+"$")
		}
		return out
	},
	none: []string{"--passWithNoTests"},
}, {
	name:  "vitest",
	match: pattern.New(`(^|[\s/])vitest(\s|$)`),
	only:  slices.Clone[[]string],
	but:   each("--exclude"),
	none:  []string{"--passWithNoTests"},
}, {
	name:  "bun test",
	match: pattern.New(`(^|\s)bun test(\s|$)`),
	only:  slices.Clone[[]string],
	but:   each("--path-ignore-patterns"),
}, {name: "mocha", match: pattern.New(`(^|[\s/])mocha(\s|$)`), but: each("--ignore"), nothing: 1}}

var (
	nodeTest = pattern.New(`^(?:\w+=\S+\s+)*(?:cross-env\s+(?:\w+=\S+\s+)*)?(?:c8\s(?:.*\s)?)?` +
		`(?:node|tsx)\s(?:.*\s)?--test(?:\s|$)`)
	noTestYet = pattern.New(`no test specified`)
)

// validators returns the checks of one package: its acceptance tests, and the rest of its suite.
func (n nodePackage) validators() []Validator {
	script := strings.TrimSpace(n.scripts["test"])
	if !isTestScript(script) {
		return n.bare()
	}
	name := at(n.manager[0]+" test", n.dir)
	before, last := lastCommand(script)
	if nodeTest().MatchString(last) {
		return n.ownRunner(name, before, last)
	}
	for _, r := range runners {
		if r.match().MatchString(last) && !strings.ContainsAny(last, "|;<>`&\n") {
			return n.known(name, r)
		}
	}
	run := strings.TrimSuffix(strings.Join(n.manager, " "), " --")
	return []Validator{{Name: name, Command: lineOf("", project.Check{Run: run}, n.later), program: n.manager[0],
		given: n.given()}}
}

// given returns the package's acceptance tests that a run must report.
func (n nodePackage) given() []given { return givens(n.dir, n.required, joinedTo(n.dir)) }

// others reports whether the package has tests besides the acceptance tests.
func (n nodePackage) others() bool {
	return slices.ContainsFunc(packages.Without(packages.Without(n.all, n.later), n.required), someTest().MatchString)
}

var someTest = pattern.New(`(?i)test|spec`)

// known returns the checks of a package with a known runner, which accepts a list of tests.
func (n nodePackage) known(name string, r runner) []Validator {
	v := Validator{Name: name, runner: project.ByName(project.Node).Runner(r.name), base: n.manager}
	all := v
	all.Argv = slices.Concat(n.manager, r.none)
	if r.only == nil || len(n.required) == 0 {
		if len(n.later) > 0 {
			all.Argv = append(all.Argv, r.but(n.later)...)
		}
		if all.given = n.given(); len(n.required) == 0 && !n.others() {
			all.nothing = r.nothing
		}
		return []Validator{all}
	}
	v.Argv, v.given = slices.Concat(n.manager, r.only(n.required)), n.given()
	if !n.others() {
		return []Validator{v}
	}
	all.Name = rest(name)
	all.Argv = append(all.Argv, r.but(slices.Concat(n.required, n.later))...)
	return []Validator{v, all}
}

// ownRunner returns the checks of a package with node's own test runner.
func (n nodePackage) ownRunner(name, before, last string) []Validator {
	v := Validator{Name: name, runner: project.ByName(project.Node).Runner("node --test")}
	var vs []Validator
	command, own := n.nodeTest(before, last)
	after := n.hook("posttest", " && %s")
	if len(n.required) > 0 {
		given := v
		given.Command, given.given = command+operands(n.required...)+after, n.given()
		vs, v.Name = append(vs, given), rest(name)
	}
	others := packages.Without(packages.Without(n.tests(own), n.later), n.required)
	switch {
	case len(others) > 0:
		v.Command = command + operands(others...) + after
		vs = append(vs, v)
	case len(vs) == 0:
		vs = append(vs, Validator{Name: name, Skip: "there are no tests to run yet"})
	}
	return vs
}

// bare returns the check of a package without a test script: acceptance tests that node runs by itself.
func (n nodePackage) bare() (vs []Validator) {
	files := packages.Ending(n.required, ".js", ".mjs", ".cjs")
	if others := packages.Without(n.required, files); len(others) > 0 {
		n.required = others
		vs = append(vs, Validator{Name: at("npm test", n.dir), given: n.given(),
			Skip: "package.json has no test script that would run " + strings.Join(others, ", ")})
	}
	if len(files) > 0 {
		n.required = files
		vs = append(vs, Validator{Name: at("node --test", n.dir), Command: "node --test " + reportArgs + " " +
			operands(files...), runner: project.ByName(project.Node).Runner("node --test"), given: n.given()})
	}
	return vs
}

// lastCommand splits `a && b && c` before the last command, which gets the arguments of a script.
func lastCommand(script string) (before, last string) {
	if i := strings.LastIndex(script, "&&"); i >= 0 {
		return script[:i+2] + " ", strings.TrimSpace(script[i+2:])
	}
	return "", script
}

// nodeValued are options of node that take the next word as their value.
var nodeValued = []string{"--import", "--require", "-r", "--loader", "--experimental-loader", "--test-reporter",
	"--test-reporter-destination", "--test-name-pattern", "--conditions", "-C", "--env-file", "--test-concurrency",
	"--test-timeout", "--tsconfig"}

// hook returns the command that runs a script before or after the tests in a form, "" if there is no such script.
func (n nodePackage) hook(script, form string) string {
	if n.scripts[script] == "" {
		return ""
	}
	return fmt.Sprintf(form, n.manager[0]+" run "+script)
}

// nodeTest returns a test script of node's own runner up to its files, and the files that it names. It includes the
// script pretest, and replaces the reporters with ours.
func (n nodePackage) nodeTest(before, last string) (command string, own []string) {
	words := strings.Fields(last)
	var kept []string
	program := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		option, _, joined := strings.Cut(w, "=")
		valued := !joined && slices.Contains(nodeValued, w) && i+1 < len(words)
		switch {
		case !program:
			program = w == "node" || w == "tsx"
			if program && strings.Contains(last, "c8 ") && len(n.required)+len(n.later) > 0 {
				kept = append(kept, "--check-coverage=false") // no run has all tests
			}
			kept = append(kept, w)
		case strings.HasPrefix(option, "--test-reporter"):
			if valued {
				i++
			}
		case strings.HasPrefix(w, "-"):
			kept = append(kept, w)
			if valued {
				i++
				kept = append(kept, words[i])
			}
		default:
			own = append(own, strings.Trim(w, `"'`))
		}
	}
	return n.hook("pretest", "%s && ") + before + strings.Join(kept, " ") + " " + reportArgs + " ", own
}

// byName matches the files that node's runner runs as tests by default.
var byName = pattern.New(`^(?:test|test-.+|.+[._-]test)\.[cm]?[jt]s$`)

// tests returns the files that a test script on node's runner would run.
func (n nodePackage) tests(own []string) []string {
	return slices.DeleteFunc(slices.Clone(n.all), func(f string) bool {
		if len(own) == 0 {
			inTest := slices.Contains(strings.Split(path.Dir(f), "/"), "test")
			return !inTest && !byName().MatchString(path.Base(f))
		}
		return !slices.ContainsFunc(own, func(pattern string) bool { return covers(pattern, f) })
	})
}

// covers reports whether a path or pattern in a test script includes a file. An unknown pattern includes all files.
func covers(glob, file string) bool {
	glob = path.Clean(glob)
	if glob == "." || file == glob || strings.HasPrefix(file, glob+"/") || pattern.Endless(glob) {
		return true
	}
	ok, err := doublestar.Match(glob, file)
	return err == nil && ok
}
